"""The shapes of the timing model's benchmark, with published forward TFLOP/s at bfloat16.

MI355X: HipKittens' table, its own kernels and AITER's (the v3 assembly) in the same run; batch 16.
RX 9070 XT: gcnasm, hand assembly and HIP. Clocks are mostly unstated.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Case:
    """A shape, and who reached what on it; ``s`` is ``t`` where not said."""

    name: str
    target: str
    batch: int
    t: int
    n: int
    k: int
    h: int
    causal: bool
    tflops: dict[str, float]
    s: int | None = None

    @property
    def keys(self) -> int:
        """S."""
        return self.t if self.s is None else self.s

    @property
    def flops(self) -> float:
        """Floating-point operations of the scores that are not masked, both products."""
        masked = self.t * (self.t - 1) / 2 if self.causal else 0  # aligned bottom-right
        pairs = self.t * self.keys - masked
        return 4.0 * self.batch * self.n * self.h * pairs

    @property
    def operand_bytes(self) -> dict[str, float]:
        """Bytes of Q and out together, of K and V together, and of lse."""
        head = 2.0 * self.h * self.batch
        return {
            "qo": 2 * head * self.t * self.n,
            "kv": 2 * head * self.keys * self.k,
            "lse": 2 * head / self.h * self.t * self.n,
        }


def _mi355x(name: str, lengths: tuple[int, ...], k_heads: tuple[int, int], causal: bool, **rows):
    for place, length in enumerate(lengths):
        yield Case(
            f"{name}-{length // 1024}k",
            "gfx950",
            *(16, length, *k_heads, 128, causal),
            {who: figures[place] for who, figures in rows.items()},
        )


_LENGTHS = (1024, 2048, 4096, 8192, 16384)
CASES = (
    *_mi355x(
        *("mha", _LENGTHS, (16, 16), False),
        hipkittens=(953, 1148, 1228, 1283, 1304),
        aiter=(828, 1085, 1211, 1259, 1283),
    ),
    *_mi355x(
        *("mha-causal", _LENGTHS, (16, 16), True),
        hipkittens=(634, 861, 1048, 1146, 1188),
        aiter=(555, 876, 1069, 1173, 1247),
    ),
    *_mi355x(
        *("gqa", _LENGTHS, (64, 8), False),
        hipkittens=(1000, 1154, 1262, 1298, 1326),
        aiter=(1032, 1152, 1231, 1281, 1291),
    ),
    Case("d64-16k", "gfx950", 16, 16384, 16, 16, 64, False, {"hipkittens": 969}),
    Case("d64-causal-16k", "gfx950", 16, 16384, 16, 16, 64, True, {"hipkittens": 862}),
    Case("decode-b32-32k", "gfx950", 32, 1, 64, 8, 128, True, {}, 32768),
    Case("decode-b1-128k", "gfx950", 1, 1, 64, 8, 128, True, {}, 131072),
    Case("h32-1536", "gfx1201", 1, 1536, 32, 32, 128, False, {"gcnasm-assembly": 119.8}),
    Case("h32-2048", "gfx1201", 1, 2048, 32, 32, 128, False, {"gcnasm-hip": 102.8}),
    Case("b4-h32-4096", "gfx1201", 4, 4096, 32, 32, 128, False, {"gcnasm-hip": 94.8}),
    Case("decode-b8-16k", "gfx1201", 8, 1, 32, 8, 128, True, {}, 16384),
)

# AITER's figures are of whole calls. What a call costs beside its work they show themselves: those
# of 64 heads do four times the work of those of 16, by the same code object. It is taken from two
# of the lengths, without the model; the other figures are there to be missed.
_CALL_LENGTHS = ("1k", "4k")
CALL_CASES = tuple(f"{heads}-{length}" for heads in ("mha", "gqa") for length in _CALL_LENGTHS)


def _call_seconds(who: str) -> float:
    cases = {case.name: case for case in CASES}
    found = []
    for length in _CALL_LENGTHS:
        few, many = cases[f"mha-{length}"], cases[f"gqa-{length}"]
        times = many.flops / few.flops
        seconds = [case.flops / case.tflops[who] / 1e12 for case in (few, many)]
        found.append((times * seconds[0] - seconds[1]) / (times - 1))
    return sum(found) / len(found)


CALL_SECONDS = {"aiter": _call_seconds("aiter")}
