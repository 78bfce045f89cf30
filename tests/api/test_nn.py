"""nn.dot_product_attention against JAX's own function, and where it differs on purpose."""

import inspect
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import IMPLEMENTATIONS
from sweeps import swept

from jax_fa import nn
from jax_fa._contract.tolerance import lse_tolerance, out_tolerance

B, T, S, N, K, H = 2, 37, 53, 6, 2, 16
LENGTHS = {
    "query_seq_lengths": jnp.array([20, 37], jnp.int32),
    "key_value_seq_lengths": jnp.array([53, 11], jnp.int32),
}
OPTIONS = {
    "plain": {},
    "scale": {"scale": 0.11},
    "causal": {"is_causal": True},
    "window": {"local_window_size": (5, 3)},
    "symmetric window": {"local_window_size": 4},
    "causal window": {"is_causal": True, "local_window_size": (7, 9)},
    "key lengths": {"key_value_seq_lengths": LENGTHS["key_value_seq_lengths"]},
    "query lengths": {"query_seq_lengths": LENGTHS["query_seq_lengths"]},
    "causal lengths": {"is_causal": True, **LENGTHS},
    "window lengths": {"local_window_size": (3, 50), **LENGTHS},
}
BIAS_SHAPES = [
    (B, N, T, S),
    (1, N, T, S),
    (B, 1, T, S),
    (B, N, 1, S),
    (1, 1, T, 1),
    (1, 1, 1, S),
    (T, S),
    (S,),
]


def normal(seed, *shape, dtype=jnp.float32):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape), dtype)


def operands(t=T, s=S, h=H, dtype=jnp.float32):
    return (
        normal(1, B, t, N, h, dtype=dtype),
        normal(2, B, s, K, h, dtype=dtype),
        normal(3, B, s, K, h, dtype=dtype),
    )


def visible_rows(lse):
    """Rows that see a key, by jax.nn's residual: a large negative number where there is none."""
    return np.asarray(lse) > -1e30


def check(actual, expected, value, implementation="xla", dtype=jnp.float32):
    (out, lse), (jax_out, jax_lse) = actual, expected
    rows = visible_rows(jax_lse)
    assert rows.any()
    out, lse, jax_out, jax_lse = (np.asarray(x, np.float32) for x in (out, lse, jax_out, jax_lse))
    assert np.abs(out - jax_out)[rows].max() <= out_tolerance(value)
    assert (
        np.abs(lse - jax_lse)[rows] <= lse_tolerance(jax_lse, dtype, implementation)[rows]
    ).all()
    assert (out[~rows] == 0).all()
    assert (lse[~rows] == -np.inf).all()


def check_with_gradients(ours, theirs, arguments):
    """Gradients too: jax.nn's through the rows that see a key, ours through all."""
    weight = normal(9, B, T, N, H)

    def run(f, *arguments):
        def loss(*arguments):
            out, lse = f(*arguments)
            counts = (lse > -1e30) | jnp.isneginf(lse)
            return jnp.sum(out * jnp.where(counts[..., None], weight, 0)), (out, lse)

        every = tuple(range(len(arguments)))
        return jax.value_and_grad(loss, every, has_aux=True)(*arguments)

    run = jax.jit(run, static_argnums=0)
    (_, actual), gradients = run(ours, *arguments)
    (_, expected), expected_gradients = run(theirs, *arguments)
    check(actual, expected, arguments[2])
    for a, e in zip(gradients, expected_gradients, strict=True):
        assert a.dtype == e.dtype
        np.testing.assert_allclose(a, e, atol=2e-5 * max(1, float(jnp.abs(e).max())))


def ours_and_theirs(**options):
    def ours(q, k, v, bias=None, mask=None):
        return nn.dot_product_attention(q, k, v, bias, mask, return_residual=True, **options)

    def theirs(q, k, v, bias=None, mask=None):
        return jax.nn.dot_product_attention(q, k, v, bias, mask, return_residual=True, **options)

    return ours, theirs


def test_signature_is_jax_nns():
    ours = inspect.signature(nn.dot_product_attention).parameters.values()
    theirs = inspect.signature(jax.nn.dot_product_attention).parameters.values()
    describe = lambda ps: [(p.name, p.kind, p.default) for p in ps]  # noqa: E731
    assert describe(ours) == describe(theirs)


@pytest.mark.parametrize(
    "name", swept(OPTIONS, ["plain", "scale", "causal", "symmetric window", "window lengths"])
)
def test_options_mean_what_they_mean_in_jax_nn(name):
    ours, theirs = ours_and_theirs(**OPTIONS[name])
    arguments = operands()
    check_with_gradients(ours, theirs, arguments)


@pytest.mark.parametrize("name", ["causal", "causal lengths"])
def test_causal_is_top_left_with_more_queries_than_keys(name):
    ours, theirs = ours_and_theirs(**OPTIONS[name])
    arguments = operands(t=T, s=20)
    check(ours(*arguments), jax.jit(theirs)(*arguments), arguments[2])


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize(
    ("dtype", "name"),
    swept(
        itertools.product(
            ("bfloat16", "float16"),
            ("plain", "causal", "causal window", "causal lengths", "window lengths"),
        ),
        [
            ("bfloat16", "causal window"),
            ("bfloat16", "causal lengths"),
            ("float16", "window lengths"),
        ],
    ),
)
def test_every_implementation(implementation, dtype, name):
    ours, _ = ours_and_theirs(**OPTIONS[name], implementation=implementation)
    _, theirs = ours_and_theirs(**OPTIONS[name])
    arguments = operands(h=64, dtype=dtype)
    exact = jax.jit(theirs)(*(x.astype(jnp.float32) for x in arguments))
    out, lse = jax.jit(ours)(*arguments)
    assert (out.dtype, lse.dtype) == (dtype, jnp.float32)
    check((out, lse), exact, arguments[2], implementation, dtype)


@pytest.mark.parametrize(
    ("shape", "name"),
    swept(
        [(BIAS_SHAPES[1], "causal"), *((x, "window lengths") for x in BIAS_SHAPES)],
        [(BIAS_SHAPES[1], "causal"), (BIAS_SHAPES[-1], "window lengths")],
    ),
    ids=str,
)
def test_bias_and_its_gradient(shape, name):
    ours, theirs = ours_and_theirs(**OPTIONS[name])
    arguments = *operands(), normal(4, *shape)
    check_with_gradients(ours, theirs, arguments)


@pytest.mark.parametrize(
    "shape", swept([(x,) for x in BIAS_SHAPES[1::2]], [(BIAS_SHAPES[3],)]), ids=str
)
def test_mask(shape):
    ours, theirs = ours_and_theirs(is_causal=True)
    mask = normal(5, *shape) > -0.3
    arguments = operands()
    check(ours(*arguments, mask=mask), jax.jit(theirs)(*arguments, mask=mask), arguments[2])


def test_bias_and_mask_together():
    ours, theirs = ours_and_theirs(**LENGTHS)
    mask = normal(5, B, 1, T, S) > 0
    with_mask = lambda f: lambda q, k, v, b: f(q, k, v, b, mask)  # noqa: E731
    arguments = *operands(), normal(4, N, T, S)
    check_with_gradients(with_mask(ours), with_mask(theirs), arguments)


def test_bias_keeps_its_dtype():
    query, key, value = operands(dtype="bfloat16")
    bias = normal(4, 1, N, T, S, dtype="float16")
    out, pull = jax.vjp(lambda b: nn.dot_product_attention(query, key, value, b), bias)
    assert out.dtype == jnp.bfloat16
    assert pull(out)[0].dtype == jnp.float16


def test_integer_bias_counts():
    ours, theirs = ours_and_theirs()
    arguments = *operands(), jnp.arange(S, dtype=jnp.int32) % 3
    check(ours(*arguments), jax.jit(theirs)(*arguments), arguments[2])


def test_infinite_bias_masks():
    query, key, value = operands()
    hidden = jnp.arange(S) >= 11
    by_bias = nn.dot_product_attention(query, key, value, jnp.where(hidden, -jnp.inf, 0.0))
    by_mask = nn.dot_product_attention(query, key, value, mask=~hidden)
    np.testing.assert_array_equal(by_bias, by_mask)


@pytest.mark.parametrize("with_mask", [False, True])
def test_rows_that_see_no_key(with_mask):
    query, key, value = operands()
    mask = jnp.zeros((1, 1, 1, S), bool) if with_mask else None
    lengths = None if with_mask else jnp.zeros(B, jnp.int32)

    def attend(q):
        return nn.dot_product_attention(
            q, key, value, mask=mask, key_value_seq_lengths=lengths, return_residual=True
        )

    out, residual = attend(query)
    assert (np.asarray(out) == 0).all()
    assert (np.asarray(residual) == -np.inf).all()
    assert (np.asarray(jax.grad(lambda q: attend(q)[0].sum())(query)) == 0).all()


def test_no_gradient_through_the_residual():
    query, key, value = operands()
    residual = lambda q: nn.dot_product_attention(q, key, value, return_residual=True)[1].sum()  # noqa: E731
    assert (np.asarray(jax.grad(residual)(query)) == 0).all()


@pytest.mark.parametrize("with_bias", [False, True])
def test_without_a_batch_dimension(with_bias):
    ours, theirs = ours_and_theirs(is_causal=True)
    arguments = tuple(x[0] for x in operands()) + ((normal(4, N, T, S),) if with_bias else ())
    out, residual = ours(*arguments)
    assert (out.shape, residual.shape) == ((T, N, H), (T, N))
    check((out, residual), jax.jit(theirs)(*arguments), arguments[2])


@pytest.mark.parametrize("bias_axis", swept([None, 0], [0]))
def test_vmap(bias_axis):
    query, key, value = operands()
    bias = normal(4, *((B,) if bias_axis == 0 else ()), N, T, S)
    ours, _ = ours_and_theirs(is_causal=True)
    mapped = jax.vmap(ours, (0, 0, 0, bias_axis))
    np.testing.assert_allclose(
        mapped(query, key, value, bias)[0], ours(query, key, value, bias)[0], atol=2e-6
    )

    def gradient(f):
        return jax.jit(jax.grad(lambda b: jnp.sum(f(query, key, value, b)[0] ** 2)))(bias)

    np.testing.assert_allclose(gradient(mapped), gradient(ours), atol=2e-5)


def test_no_keys():
    query, key, value = operands(s=0)
    out, residual = nn.dot_product_attention(
        query, key, value, mask=jnp.ones((1, 1, 1, 1), bool), return_residual=True
    )
    assert (np.asarray(out) == 0).all()
    assert (np.asarray(residual) == -np.inf).all()


BAD = {
    "cudnn": ({"implementation": "cudnn"}, ValueError, "cudnn"),
    "unknown": ({"implementation": "fast"}, ValueError, "implementation must be"),
    "mask dtype": ({"mask": jnp.ones((T, S))}, TypeError, "mask must be bool"),
    "mask shape": ({"mask": jnp.ones((T, S + 1), bool)}, ValueError, "mask must"),
    "bias shape": ({"bias": jnp.ones((3, T, S))}, ValueError, "bias must"),
    "bias rank": ({"bias": jnp.ones((1, 1, 1, T, S))}, ValueError, "bias must"),
    "lengths shape": (
        {"query_seq_lengths": jnp.ones(B + 1, jnp.int32)},
        ValueError,
        "query_seq_lengths must",
    ),
    "lengths dtype": (
        {"key_value_seq_lengths": jnp.ones(B, jnp.float32)},
        TypeError,
        "key_value_seq_lengths must",
    ),
    "window": ({"local_window_size": (-1, 0)}, ValueError, "local_window_size"),
    "is_causal type": ({"is_causal": "no"}, TypeError, "is_causal must be a bool"),
    "return_residual type": ({"return_residual": 1}, TypeError, "return_residual must be a bool"),
    "window type": ({"local_window_size": 1.5}, TypeError, "local_window_size"),
    "bias on a target": (
        {"bias": jnp.ones((T, S)), "implementation": "gfx950"},
        NotImplementedError,
        "bias",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    options, error, message = BAD[name]
    with pytest.raises(error, match=message):
        nn.dot_product_attention(*operands(), **options)


def test_operands_have_three_or_four_dimensions():
    x = jnp.ones((T, H))
    with pytest.raises(ValueError, match="query must have 3 or 4 dimensions; got shape"):
        nn.dot_product_attention(x, x, x)


def test_traced_scale_says_what_to_do():
    query, key, value = operands()
    with pytest.raises(TypeError, match="multiply the query"):
        jax.jit(lambda s: nn.dot_product_attention(query, key, value, scale=s))(0.5)


@pytest.mark.parametrize("with_bias", [False, True])
def test_where_jax_forbids_rank_promotion(with_bias):
    ours, _ = ours_and_theirs(is_causal=True, **LENGTHS)
    bias = normal(4, N, T, S) if with_bias else None
    with jax.numpy_rank_promotion("raise"):
        jax.jit(jax.grad(lambda q, k, v: ours(q, k, v, bias)[0].sum(), (0, 1, 2)))(*operands())


@pytest.mark.parametrize(
    "shape",
    swept([((2, 4, 6, 7),), ((1, 1, 6, 1),), ((1, 4, 1, 7),)], [((2, 4, 6, 7),), ((1, 1, 6, 1),)]),
    ids=str,
)
def test_bias_gradient_with_64_bit_numbers_enabled(shape):
    with jax.enable_x64(True):
        rng = np.random.default_rng(0)
        q, k, v = (jnp.asarray(rng.standard_normal((2, s, 4, 8))) for s in (6, 7, 7))
        bias = jnp.asarray(rng.standard_normal(shape))

        def gradient(attend):
            return jax.jit(jax.grad(lambda b: jnp.sum(jnp.sin(attend(q, k, v, b)))))(bias)

        actual = gradient(nn.dot_product_attention)
        assert actual.dtype == jnp.float64
        expected = gradient(jax.nn.dot_product_attention)
        np.testing.assert_allclose(actual, expected, atol=1e-5)  # its softmax is float32
