"""Exported programs of several devices: they divide as the program that was exported does."""

from __future__ import annotations

import functools
import itertools
import re
import subprocess
import sys
import textwrap
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import KERNEL_TARGETS, Case
from jax import export
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from meshes import assert_same, mesh_of, place, run_divided, scalar_of
from packs import Cache, Pack
from sweeps import swept

from jax_fa import flash_attention, flash_attention_varlen, paged_attention
from jax_fa._mesh import export as _exported

CASE = Case("", batch=(4,), t=10, s=12, n=8, k=2, h=16)
PACK = Pack("", ((3, 5), (7, 9)), n=8, k=2, h=16, spare=(0, 0))
CACHE = Cache("", ((3, 20), (3, 9), (3, 33), (3, 1)), n=8, k=2, h=16, page_size=4, spare_pages=4)
ROWS, PAGES = P("b", None, "h"), P(None, None, "h")
ALLOWED = [
    export.DisabledSafetyCheck.custom_call(name)
    for name in ("jax_fa_divided", "jax_fa_flash", "jax_fa_varlen", "jax_fa_paged")
]


def dense(q, k, v, lengths):
    return flash_attention(q, k, v, key_lengths=lengths, causal=True, return_lse=True)


def varlen(q, k, v, cu_q, cu_k):
    return flash_attention_varlen(
        q, k, v, cu_seqlens_q=cu_q, cu_seqlens_k=cu_k, causal=True, return_lse=True
    )


paged: Any = functools.partial(paged_attention, return_lse=True)

PROBLEMS = {
    "dense": (
        dense,
        lambda: (*CASE.operands("float32"), jnp.array([12, 3, 7, 0], jnp.int32)),
        (ROWS, ROWS, ROWS, P("b")),
    ),
    "varlen": (
        varlen,
        lambda: (*PACK.operands("float32"), *PACK.offsets().values()),
        (P(None, "h"), P(None, "h"), P(None, "h"), P(), P()),
    ),
    "paged": (
        paged,
        lambda: [jnp.nan_to_num(x) for x in CACHE.operands("float32")],
        (ROWS, PAGES, PAGES, P("b"), P("b")),
    ),
}


def exported(f, arrays, specs, mesh, platforms=("cpu",)):
    """A serialised program."""
    f = jax.jit(f, in_shardings=tuple(NamedSharding(mesh, s) for s in specs))
    return export.export(f, platforms=platforms, disabled_checks=ALLOWED)(*arrays).serialize()


@pytest.mark.parametrize(
    ("name", "gradients", "kind", "platforms"),
    swept(
        itertools.product(
            PROBLEMS,
            (False, True),
            (AxisType.Auto, AxisType.Explicit),
            (("cpu",), ("cpu", "rocm")),
        ),
        # With gradients, a program has the forward's call too.
        lambda _, gradients, kind, platforms: (
            (len(platforms) > 1 and kind is AxisType.Auto)
            if gradients
            else (len(platforms) == 1 and kind is AxisType.Explicit)
        ),
    ),
    ids=lambda x: "-".join(x) if isinstance(x, tuple) else str(x),
)
def test_a_loaded_program_divides(name, gradients, kind, platforms):
    attend, make, specs = PROBLEMS[name]
    f = jax.grad(scalar_of(attend), argnums=(0, 1, 2)) if gradients else attend
    arrays, mesh = make(), mesh_of(kind)
    with jax.set_mesh(mesh):
        placed = place(arrays, mesh, specs)
        loaded = jax.jit(export.deserialize(exported(f, placed, specs, mesh, platforms)).call)
        found, traffic = run_divided(loaded, *placed)
        assert set(traffic) == ({"all-reduce"} if name == "paged" and gradients else set())
    assert_same(found, jax.jit(f)(*arrays))


PLATFORMS = [("cpu", "rocm"), ("rocm", "cpu"), ("rocm", "cuda"), ("rocm",)]


def bfloat16(arrays):
    return [x.astype(jnp.bfloat16) if jnp.issubdtype(x.dtype, jnp.floating) else x for x in arrays]


@pytest.mark.parametrize(
    ("name", "gradients", "platforms"),
    [("dense", False, p) for p in PLATFORMS]
    + [("dense", True, ("rocm", "cuda"))]
    + [(name, False, ("rocm", "cuda")) for name in ("varlen", "paged")]
    + [
        pytest.param(name, x, p, marks=pytest.mark.slow)
        for name in PROBLEMS
        for x in (False, True)
        for p in PLATFORMS
    ],
    ids=lambda x: "-".join(x) if isinstance(x, tuple) else str(x),
)
def test_each_platform_has_its_own_code(name, gradients, platforms):
    """Kernels for ROCm, jnp code for the others, in whichever order they are named."""
    attend, make, _ = PROBLEMS[name]
    f = jax.jit(jax.grad(scalar_of(attend), argnums=0) if gradients else attend)
    arrays = bfloat16(make())
    program = export.export(f, platforms=platforms, disabled_checks=ALLOWED)(*arrays)
    texts = [program.mlir_module()]
    texts += [f.trace(*arrays).lower(lowering_platforms=platforms).as_text()]
    for text in texts:
        assert len(re.findall(r"custom_call @jax_fa_(flash|varlen|paged)\b", text)) == 1
        # The forward's softmax, and the backward's, which is jnp code everywhere.
        assert ("exponential" in text) == (len(platforms) > 1 or gradients)
    if "cpu" in platforms:
        assert_same(export.deserialize(program.serialize()).call(*arrays), f(*arrays))


@pytest.mark.parametrize("platforms", [("cpu", "rocm"), ("rocm", "cuda")], ids="-".join)
def test_a_call_over_devices_knows_its_platform(platforms):
    attend, make, specs = PROBLEMS["dense"]
    f = jax.jit(attend, in_shardings=tuple(NamedSharding(mesh_of(AxisType.Auto), s) for s in specs))
    text = export.export(f, platforms=platforms, disabled_checks=ALLOWED)(*make()).mlir_module()
    configs = re.findall(r'custom_call @jax_fa_divided.*?backend_config = "(.*?)"[,}]', text)
    assert len(configs) == len(platforms)
    for platform, config in zip(platforms, configs, strict=True):
        assert config.endswith(rf"\22{platform}\22, 4]")


def test_in_a_fresh_process(tmp_path):
    attend, make, specs = PROBLEMS["paged"]
    arrays = make()
    (tmp_path / "program").write_bytes(exported(attend, arrays, specs, mesh_of(AxisType.Auto)))
    np.savez(tmp_path / "operands", *arrays)
    code = f"""
        import jax, numpy as np
        jax.config.update("jax_num_cpu_devices", 4)
        import jax_fa
        from jax import export
        from jax.sharding import Mesh
        loaded = export.deserialize(bytearray(open({str(tmp_path / "program")!r}, "rb").read()))
        arrays = np.load({str(tmp_path / "operands.npz")!r}).values()
        mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))
        with jax.set_mesh(mesh):
            out, lse = jax.jit(loaded.call)(*arrays)
        np.savez({str(tmp_path / "results")!r}, out, lse)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)
    assert_same(np.load(tmp_path / "results.npz").values(), attend(*arrays))


def test_called_with_other_shardings():
    attend, make, specs = PROBLEMS["dense"]
    arrays = make()
    loaded = export.deserialize(exported(attend, arrays, specs, mesh_of(AxisType.Auto)))
    mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    placed = place(arrays, mesh, (P("y", None, "x"), P("y"), P(), P(("y", "x"))))
    assert_same(jax.jit(loaded.call)(*placed), attend(*arrays))


def test_six_devices_in_either_order():
    """The mesh that divides is found from the arrays' own shardings."""
    for sizes in ((2, 3), (3, 2)):
        mesh = jax.sharding.AbstractMesh(sizes, ("b", "h"))
        tiled = NamedSharding(mesh, P("b", None, "h"))._to_xla_hlo_sharding(4)
        found = _exported._finest_mesh(6, [tiled])
        named = _exported._named(found, tiled)
        assert named is not None
        assert named.shard_shape((6, 5, 6, 7)) == (6 // sizes[0], 5, 6 // sizes[1], 7)


def test_symbolic_sizes():
    """Right, if not divided by the rule."""
    attend, make, specs = PROBLEMS["dense"]
    arrays = make()
    (b,) = export.symbolic_shape("b")
    types = [jax.ShapeDtypeStruct((2 * b, *x.shape[1:]), x.dtype) for x in arrays]
    loaded = export.deserialize(exported(attend, types, specs, mesh_of(AxisType.Auto)))
    placed = place(arrays, mesh_of(AxisType.Auto), specs)
    assert_same(jax.jit(loaded.call)(*placed), attend(*arrays))


@pytest.mark.parametrize("target", KERNEL_TARGETS)
def test_kernels_divide(target):
    f = functools.partial(flash_attention, causal=True, implementation=target)
    arrays, mesh = CASE.operands("bfloat16"), mesh_of(AxisType.Auto)
    loaded = jax.jit(export.deserialize(exported(f, arrays, (ROWS,) * 3, mesh)).call)
    placed = place(arrays, mesh, (ROWS,) * 3)
    found, traffic = run_divided(loaded, *placed)
    np.testing.assert_array_equal(np.asarray(found, np.float32), np.asarray(f(*arrays), np.float32))
    assert traffic == []


def test_a_pool_divided_by_pages_is_refused():
    attend, make, _ = PROBLEMS["paged"]
    specs = P(), P("b"), P(), P(), P()
    program = exported(jax.jit(attend), make(), specs, mesh_of(AxisType.Auto))
    placed = place(make(), mesh_of(AxisType.Auto), specs)
    with pytest.raises(jax.errors.JaxRuntimeError, match="k_pages must not be sharded over its"):
        jax.jit(export.deserialize(program).call)(*placed)


def test_the_check_names_the_call():
    attend, make, specs = PROBLEMS["dense"]
    shardings = tuple(NamedSharding(mesh_of(AxisType.Auto), s) for s in specs)
    with pytest.raises(ValueError, match=re.escape(_exported.TARGET)):
        export.export(jax.jit(attend, in_shardings=shardings))(*make())


def test_without_the_internals_it_rests_on(monkeypatch):
    """Only exporting over several devices is lost, and says so."""
    monkeypatch.setattr(_exported, "_partitioners", [])
    monkeypatch.delattr("jax._src.custom_partitioning._custom_partitioning_partition")
    _exported.register(lambda *_: None)
    attend, make, specs = PROBLEMS["dense"]
    jax.jit(attend)(*make())
    with pytest.raises(NotImplementedError, match=r"over several devices .*use jax\.shard_map"):
        exported(lambda *x: attend(*x), make(), specs, mesh_of(AxisType.Auto))
