"""64 bits of which the upper half was never written: said where it is used, and nowhere else."""

import pytest
from planted import Defect, Planted

from jax_fa import emulator


def _high(name: str, makes: str, low: str, high: str, target: str = "gfx950") -> Defect:
    """``makes`` a result of v4, s12 and the unwritten v5, s13: ``low`` may be read."""
    return Defect(
        name,
        f"v_mov_b32 v4, 7\ns_mov_b32 s12, 7\n{makes}\ns_nop 1\nv_mov_b32 v3, {{mend}}",
        mend=low,
        wrong=high,
        says=f"v_mov_b32 v3, {high}.*: reads {high}, which was never written",
        target=target,
    )


PRODUCT = "v_mad_u64_u32 v[6:7], vcc, v0, v0, v[4:5]\n"
DEFECTS = [
    _high("product_and_sum", PRODUCT, "v6", "v7"),
    _high("signed", "v_mad_i64_i32 v[6:7], vcc, v0, v0, v[4:5]", "v6", "v7"),
    _high("scalar_addend", "v_mad_u64_u32 v[6:7], vcc, v0, v0, s[12:13]", "v6", "v7"),
    _high("carry", PRODUCT, "v6", "vcc_lo"),
    _high("in_place", "v_mad_u64_u32 v[4:5], vcc, v0, v0, v[4:5]", "v4", "v5"),
    _high("shift_and_sum", "v_lshl_add_u64 v[6:7], v[4:5], 1, v[4:5]", "v6", "v7"),
    _high("move", PRODUCT + "v_mov_b64 v[8:9], v[6:7]", "v8", "v9"),
    _high("scalar_move", "s_mov_b64 s[14:15], s[12:13]", "s14", "s15"),
    _high(
        "gfx1201", PRODUCT.replace("mad", "mad_co").replace("vcc", "null"), "v6", "v7", "gfx1201"
    ),
    Defect(
        "lower_half",
        "v_mov_b32 v5, 7\n{mend}\n" + PRODUCT + "v_mov_b32 v3, v6",
        mend="v_mov_b32 v4, 7",
        says="v_mad_u64_u32.*: reads v4, which was never written",
    ),
    Defect(
        "factor",
        "v_mov_b32 v4, 7\n{mend}\nv_mad_u64_u32 v[6:7], vcc, v0, v5, v[4:5]\nv_mov_b32 v3, v6",
        mend="v_mov_b32 v5, 7",
        says="v_mad_u64_u32.*: reads v5, which was never written",
    ),
    Defect(
        "written_before_and_after",
        "v_mov_b32 v4, 7\nv_mov_b32 v7, 7\n" + PRODUCT + "{mend}\nv_mov_b32 v3, v7",
        mend="v_mov_b32 v7, 0",
        says="v_mov_b32 v3, v7.*: reads v7, which was never written",
    ),
    Defect(
        "some_lanes",
        "v_mov_b32 v4, 7\ns_mov_b64 exec, {mend}\nv_mov_b32 v5, 7\ns_mov_b64 exec, -1\n"
        + PRODUCT
        + "v_mov_b32 v3, v7",
        mend="-1",
        wrong="15",
        says="lane 4, .*v_mov_b32 v3, v7.*: reads v7, which was never written",
    ),
]
planted = Planted(DEFECTS)


@pytest.mark.parametrize("defect", DEFECTS, ids=[defect.name for defect in DEFECTS])
def test_use_of_what_was_never_written_is_found(defect):
    with pytest.raises(emulator.EmulatorError, match=defect.says):
        planted.launch(defect, mended=False)
    assert planted.launch(defect, mended=True).findings == []


def test_load_under_way_is_found_at_once():
    body = "v_mov_b32 v4, 7\nglobal_load_dword v5, v1, s[8:9]\n{mend}\n"
    body += PRODUCT + "v_mov_b32 v3, v6"
    says = "v_mad_u64_u32.*: reads v5 while its load is still under way"
    defect = Defect("load", body, mend="s_waitcnt vmcnt(0)", says=says)
    with pytest.raises(emulator.EmulatorError, match=defect.says):
        Planted([defect]).launch(defect, mended=False)
    assert Planted([defect]).launch(defect, mended=True).findings == []
