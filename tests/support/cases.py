"""Named attention problems, shared by tests and benchmarks, and the implementations they run on."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from jax_fa import _native
from jax_fa._contract.spec import TARGETS

# A target runs in the emulator where there is no such GPU.
KERNEL_TARGETS = tuple(target for target in TARGETS if _native.code_object(target))
IMPLEMENTATIONS = ("xla", *KERNEL_TARGETS)


@dataclasses.dataclass(frozen=True)
class Case:
    """Shapes and options of one call. Lengths are tuples, one entry a sequence."""

    name: str
    batch: tuple[int, ...] = (1,)
    t: int = 64
    s: int = 64
    n: int = 2
    k: int = 1
    h: int = 64
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    query_lengths: tuple[int, ...] | None = None
    key_lengths: tuple[int, ...] | None = None

    def operands(self, dtype: Any, seed: int = 0) -> tuple:
        """Unit-normal query, key, value."""
        rng = np.random.default_rng(seed)
        shapes = (
            (*self.batch, self.t, self.n, self.h),
            (*self.batch, self.s, self.k, self.h),
            (*self.batch, self.s, self.k, self.h),
        )
        return tuple(jnp.asarray(rng.standard_normal(shape, np.float32), dtype) for shape in shapes)

    def keywords(self) -> dict[str, Any]:
        """Options and lengths, as keyword arguments."""
        keywords = dict(self.options)
        for name in ("query_lengths", "key_lengths"):
            lengths = getattr(self, name)
            if lengths is not None:
                keywords[name] = jnp.asarray(lengths, jnp.int32).reshape(self.batch)
        return keywords

    def __str__(self) -> str:
        return self.name


def _ratio(n: int, k: int, h: int = 64) -> Case:
    return Case(f"heads {n}/{k}", t=20, s=40, n=n, k=k, h=h, options={"causal": True})


DENSE = (
    Case("plain", batch=(2,), t=70, s=100, n=4, k=2),
    Case("causal", t=130, s=130, n=2, k=1, h=128, options={"causal": True}),
    Case("causal, T < S", t=33, s=190, options={"causal": True}),
    Case("causal, T > S: top rows see nothing", t=190, s=33, options={"causal": True}),
    Case("no leading dimensions", batch=(), t=17, s=19, options={"causal": True}),
    Case("two leading dimensions", batch=(2, 3), t=9, s=11, h=32, options={"causal": True}),
    Case("T = S = 1", t=1, s=1),
    Case("T = 1", t=1, s=97, n=8, k=2, options={"causal": True}),
    Case("S = 1", t=70, s=1),
    Case("S = 0", t=5, s=0),
    Case("T = 0", t=0, s=5),
    Case("no sequences", batch=(0,), t=5, s=5),
    *(Case(f"S = {s}", t=20, s=s) for s in (31, 32, 33, 63, 65, 96, 127, 129)),
    *(Case(f"T = {t}", t=t, s=70) for t in (15, 17, 127, 129)),
    Case("window (0, 0)", t=80, s=80, options={"window": (0, 0)}),
    Case("window (0, 0), T != S", t=50, s=80, options={"window": (0, 0)}),
    Case("window (S, 0)", t=80, s=80, options={"window": (80, 0)}),
    Case("window right >= S", t=80, s=80, options={"window": (3, 200)}),
    Case("window wider than S", t=80, s=80, options={"window": (1000, 1000)}),
    Case("window left open", t=80, s=80, options={"window": (None, 2)}),
    Case("window right open", t=80, s=80, options={"window": (2, None)}),
    Case("window, T != S", t=90, s=150, options={"window": (17, 5)}),
    Case("window and causal", t=90, s=150, options={"window": (17, 5), "causal": True}),
    *(
        Case(f"soft cap {cap}", t=40, s=70, options={"logits_soft_cap": cap, "causal": True})
        for cap in (0, 1, 5.0, 50)
    ),
    Case("soft cap, negative scale", t=40, s=70, options={"logits_soft_cap": 5.0, "scale": -0.2}),
    Case("scale 0", t=40, s=70, options={"scale": 0.0}),
    Case("negative scale", t=40, s=70, options={"scale": -0.3}),
    Case("scale 1", t=40, s=70, options={"scale": 1}),
    Case(
        "lengths",
        batch=(4,),
        t=50,
        s=90,
        query_lengths=(50, 0, 17, 33),
        key_lengths=(90, 40, 0, 33),
    ),
    Case(
        "causal lengths",
        batch=(4,),
        t=50,
        s=90,
        options={"causal": True},
        query_lengths=(50, 20, 17, 33),
        key_lengths=(13, 90, 0, 64),
    ),
    Case("key lengths", batch=(2, 2), t=30, s=128, key_lengths=(32, 64, 96, 48)),
    *(_ratio(*heads) for heads in ((3, 1), (4, 4), (5, 1), (7, 1), (8, 1), (16, 1), (9, 3))),
    *(_ratio(21, k, h=120) for k in (3, 7)),
)

HEAD_DIMS = tuple(
    Case(f"H = {h}", t=34, s=67, h=h, options={"causal": True})
    for h in (1, 20, 32, 40, 48, 72, 80, 96, 120, 128, 192, 250, 256)
)
