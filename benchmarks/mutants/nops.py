"""Which wait states are more than the chip needs: those between two instructions that need none."""

from __future__ import annotations

from mutants.flow import Flow, operands, registers, written

MASK = (
    "gfx950: a vector instruction that takes a mask waits itself for the comparison that makes it "
    "(kernels that are right on the chip leave no wait states there)"
)
M0 = (
    "gfx950: wait states after a write of M0 are for GDS, s_sendmsg and LDS instructions with "
    "add-TID; buffer loads to LDS are not in the document's list"
)


def harmless(target: str, flow: Flow, place: int) -> str | None:
    """Why nothing needs the wait states of an s_nop, by what stands around it."""
    if target != "gfx950" or flow.text[place].mnemonic != "s_nop":
        return None
    before, behind = flow.text[place - 1], flow.text[place + 1]
    made = written(before.mnemonic, before.text)
    if behind.op_class == "lds_dma" and "buffer_" in behind.mnemonic and made == {"m0"}:
        return M0
    named = operands(behind.text)[0]
    selects = behind.mnemonic.startswith("v_cndmask") and before.mnemonic.startswith("v_cmp")
    if selects and registers(named[-1]) == made and not made & registers(", ".join(named[:-1])):
        return MASK
    return None
