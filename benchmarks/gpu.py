"""The xla implementation beside jax.nn.dot_product_attention on whatever GPU JAX has.

Before it is timed, what is compiled is held against jax.nn (or against itself one sequence at a
time) and must repeat bit for bit. Ratios are of the same run: below 1 is faster, or less.
"""

from __future__ import annotations

import argparse
import functools
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from timing import temporary_bytes, time_alternately

from jax_fa import flash_attention, flash_attention_varlen, nn, paged_attention

NAME = "gpu"
HELP = "implementation='xla' against jax.nn.dot_product_attention on a GPU"

# B, T, N, K; H is 128, all causal.
DENSE = ((4, 4096, 16, 16), (2, 8192, 32, 8), (1, 2048, 8, 2), (8, 512, 16, 16))
RAGGED = {
    "one of 8192 beside seven of 512": (8192, *[512] * 7),
    "eight of 2048": (2048,) * 8,
    "eight of 512 to 4096": (4096, 512, 1024, 3000, 2048, 700, 3500, 1536),
}
H = 128
TOLERANCE = {"bfloat16": 3e-2, "float32": 2e-2}  # of the largest; both sides round


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--implementation", choices=["xla"], default="xla")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--only", nargs="+", choices=list(_PARTS), default=list(_PARTS), help="parts to run"
    )


def run(arguments: argparse.Namespace) -> int:
    if jax.default_backend() == "cpu":
        print("JAX has no GPU here; see benchmarks/run.py cpu")
        return 1
    print(f"JAX {jax.__version__}, {jax.devices()[0].device_kind}; ours over jax.nn, H{H}, causal")
    rows = []
    for part in arguments.only:
        for row in _PARTS[part](arguments.rounds):
            rows.append(row)
            print("  ".join(f"{name} {_text(value)}" for name, value in row.items()), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _operands(b: int, t: int, s: int, n: int, k: int, dtype: str) -> list[jax.Array]:
    keys = jax.random.split(jax.random.key(0), 3)
    shapes = (b, t, n, H), (b, s, k, H), (b, s, k, H)
    return [jax.random.normal(k, s, dtype) for k, s in zip(keys, shapes, strict=True)]


def _compiled(function: Any, gradient: bool, operands: Any) -> Any:
    def total(*args: Any) -> jax.Array:
        return jnp.sum(function(*args).astype(jnp.float32) ** 2)

    wanted = jax.grad(total, argnums=(0, 1, 2)) if gradient else function
    return jax.jit(wanted).lower(*operands).compile()


def _repeats(compiled: Any, operands: Any) -> None:
    first, again = (jax.tree.leaves(compiled(*operands)) for _ in range(2))
    assert all(bool((a == b).all()) for a, b in zip(first, again, strict=True))


def _agree(found: Any, expected: Any, dtype: str) -> None:
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        a, b = a.astype(jnp.float32), b.astype(jnp.float32)
        assert float(jnp.max(jnp.abs(a - b))) <= TOLERANCE[dtype] * float(jnp.max(jnp.abs(b)))


def _race(name: str, ours: Any, theirs: Any, gradient: bool, operands: Any, rounds: int) -> dict:
    case = {"case": name, "what": "gradient" if gradient else "forward"}
    try:
        return {**case, **_measured(ours, theirs, gradient, operands, rounds)}
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        return {**case, "failed": "out of memory; XLA_PYTHON_CLIENT_MEM_FRACTION=0.95 gives more"}


def _measured(ours: Any, theirs: Any, gradient: bool, operands: Any, rounds: int) -> dict:
    both = [_compiled(f, gradient, operands) for f in (ours, theirs)]
    _repeats(both[0], operands)
    _agree(both[0](*operands), both[1](*operands), str(operands[0].dtype))
    seconds, sizes = time_alternately(both, operands, rounds), [*map(temporary_bytes, both)]
    return {
        "ms": seconds[0] * 1e3,
        "peer_ms": seconds[1] * 1e3,
        "time_ratio": seconds[0] / seconds[1],
        "mib": sizes[0] / 2**20,
        "peer_mib": sizes[1] / 2**20,
        "memory_ratio": sizes[0] / max(sizes[1], 1),
    }


_ours = functools.partial(flash_attention, causal=True, implementation="xla")
_ours_default = functools.partial(nn.dot_product_attention, is_causal=True, implementation="xla")
_theirs = functools.partial(jax.nn.dot_product_attention, is_causal=True, implementation="xla")


def _dense(rounds: int) -> Iterable[dict]:
    for b, t, n, k in DENSE:
        operands = _operands(b, t, t, n, k, "bfloat16")
        for gradient in (False, True):
            name = f"B{b} T{t} N{n} K{k} bfloat16"
            yield _race(name, _ours, _theirs, gradient, operands, rounds)


def _float32(rounds: int) -> Iterable[dict]:
    """At equal precision; flash_attention is always at the highest."""
    for precision, ours in (("highest", _ours), ("default", _ours_default)):
        with jax.default_matmul_precision(precision):
            operands = _operands(1, 2048, 2048, 8, 2, "float32")
            errors = [_error(f, operands) for f in (ours, _theirs)]
            for b, t, n, k in ((2, 4096, 16, 16), (1, 2048, 8, 2)):
                operands = _operands(b, t, t, n, k, "float32")
                for gradient in (False, True):
                    name = f"B{b} T{t} N{n} K{k} float32 {precision}"
                    row = _race(name, ours, _theirs, gradient, operands, rounds)
                    yield {**row, "error": errors[0], "peer_error": errors[1]}


def _error(attend: Any, operands: list[jax.Array]) -> float:
    """The largest, against float64 on the host."""
    q, k, v = (np.asarray(x[0], np.float64) for x in operands)
    found, group, t = np.asarray(jax.jit(attend)(*operands)[0]), q.shape[1] // k.shape[1], len(q)
    worst = 0.0
    for head in range(q.shape[1]):
        scores = q[:, head] @ k[:, head // group].T / np.sqrt(H)
        scores[np.triu_indices(t, 1)] = -np.inf
        weights = np.exp(scores - scores.max(1, keepdims=True))
        exact = weights / weights.sum(1, keepdims=True) @ v[:, head // group]
        worst = max(worst, float(np.abs(found[:, head] - exact).max()))
    return worst


def _ragged(rounds: int) -> Iterable[dict]:
    """With lengths and packed: over the dense time for as many pairs that are seen."""
    n = 16

    def pairs(lengths: Iterable[int]) -> int:
        return sum(x * (x + 1) // 2 for x in lengths)

    for name, lengths in RAGGED.items():
        longest = max(lengths)
        same = (longest,) * max(1, round(pairs(lengths) / pairs([longest])))
        for gradient in (False, True):
            peer = _operands(len(same), longest, longest, n, n, "bfloat16")
            seconds = time_alternately([_compiled(_ours, gradient, peer)], peer, rounds)[0]
            allowed = seconds * pairs(lengths) / pairs(same)
            for packed in (False, True):
                attend, operands = _of_lengths(lengths, n, packed)
                compiled = _compiled(attend, gradient, operands)
                _repeats(compiled, operands)
                if not gradient:
                    found, expected = _last_sequence(compiled, operands, lengths, packed)
                    _agree(found, expected, "bfloat16")
                found = time_alternately([compiled], operands, rounds)[0]
                yield {
                    "case": f"{name}, {'packed' if packed else 'lengths'}",
                    "what": "gradient" if gradient else "forward",
                    "ms": found * 1e3,
                    "dense_ms": allowed * 1e3,
                    "time_ratio": found / allowed,
                    "mib": temporary_bytes(compiled) / 2**20,
                }


def _of_lengths(lengths: tuple[int, ...], n: int, packed: bool) -> tuple[Any, list[jax.Array]]:
    if not packed:
        own = jnp.asarray(lengths, jnp.int32)
        attend = functools.partial(_ours, query_lengths=own, key_lengths=own)
        return attend, _operands(len(lengths), max(lengths), max(lengths), n, n, "bfloat16")
    offsets = jnp.asarray(np.concatenate([[0], np.cumsum(lengths)]), jnp.int32)
    attend = functools.partial(
        *(flash_attention_varlen,),
        cu_seqlens_q=offsets,
        cu_seqlens_k=offsets,
        causal=True,
        implementation="xla",
    )
    total = sum(lengths)
    return attend, [x[0] for x in _operands(1, total, total, n, n, "bfloat16")]


def _last_sequence(compiled: Any, operands: Any, lengths: tuple[int, ...], packed: bool) -> Any:
    """(its out in the batch, its out by itself)."""
    length = lengths[-1]
    if packed:
        own = [x[None, -length:] for x in operands]
        return compiled(*operands)[-length:], _theirs(*own)[0]
    own = [x[-1:, :length] for x in operands]
    return compiled(*operands)[-1, :length], _theirs(*own)[0]


def _decode(rounds: int) -> Iterable[dict]:
    b, s, n, k, page = 8, 32768, 32, 8, 64
    operands = _operands(b, 1, s, n, k, "bfloat16")
    lengths = jnp.full((b,), s, jnp.int32)
    ours = functools.partial(flash_attention, implementation="xla")
    theirs = functools.partial(jax.nn.dot_product_attention, implementation="xla")
    name = f"B{b} T1 S{s} N{n} K{k}"
    yield _race(name, ours, theirs, False, operands, rounds)
    ours = functools.partial(ours, key_lengths=lengths)
    theirs = functools.partial(theirs, key_value_seq_lengths=lengths)
    yield _race(f"{name} lengths", ours, theirs, False, operands, rounds)
    tables = jnp.arange(b * s // page, dtype=jnp.int32).reshape(b, -1)

    def paged(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        k_pages, v_pages = (x.reshape(-1, page, *x.shape[2:]) for x in (k, v))
        return paged_attention(q, k_pages, v_pages, tables, lengths, implementation="xla")

    yield _race(f"{name} pages", paged, theirs, False, operands, rounds)


_PARTS = {"dense": _dense, "ragged": _ragged, "float32": _float32, "decode": _decode}
