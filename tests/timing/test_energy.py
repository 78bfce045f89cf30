"""The energy table and the clock at the power cap: what was fitted, what follows, what counts."""

import json
import sys

import energy
import pytest
import run as command

POWER = energy.fit()


def test_four_figures_are_fitted():
    # Both streams run at the cap, at the clocks that were measured.
    assert POWER.watts(1, energy.SHORT_HZ) == pytest.approx(energy.STREAM_POWER)
    assert POWER.watts(POWER.long_energy, energy.LONG_HZ) == pytest.approx(energy.STREAM_POWER)
    assert POWER.clock(1) == pytest.approx(energy.SHORT_HZ)
    assert POWER.clock(POWER.long_energy) == pytest.approx(energy.LONG_HZ)
    # The small shape saves so much power at a locked clock.
    saved = 1 - POWER.watts(1, energy.SHORT_HZ) / POWER.watts(POWER.long_energy, energy.SHORT_HZ)
    assert saved == pytest.approx(energy.SHORT_SAVES)
    # 1% more cycles of the same work.
    time = 1.01 * POWER.clock(1) / POWER.clock(1 / 1.01)
    assert time - 1 == pytest.approx(energy.IDLE_COST / 100, rel=0.01)


def test_the_fifth_figure_is_predicted():
    """A stream on one SIMD of a CU, which reaches the top clock."""
    assert POWER.clock(0.25) == energy.TOP_HZ
    assert POWER.watts(0.25, energy.TOP_HZ) == pytest.approx(energy.ONE_SIMD_POWER, rel=0.01)


def test_bytes_of_matrix_instructions():
    short = energy.matrix_bytes({"v_mfma_f32_16x16x32_bf16": 2, "v_add_f32": 5})
    long = energy.matrix_bytes({"v_mfma_f32_32x32x16_bf16": 1})
    assert short == (2 * 2 * 16 * 16 * 4, 2 * 2 * (16 * 32 * 2))
    # As many FLOP: twice the accumulators, half the operands.
    assert long == (2 * short[0], short[1] // 2)
    sparse = energy.matrix_bytes({"v_smfmac_f32_16x16x64_bf16": 1})
    assert sparse == (2 * 16 * 16 * 4, 16 * 32 * 2 + 16 * 64 * 2)


def test_report(monkeypatch, capsys, tmp_path):
    file = tmp_path / "report.json"
    words = ["run.py", "energy", "--case", "mha-1k", "--json", str(file)]
    monkeypatch.setattr(sys, "argv", words)
    assert command.main() == 0
    ours, derived = json.loads(file.read_text())["counted"]
    # Waves of 48 rows, of which the last is not full.
    rows = -(-1024 // 48) * 48 / 1024
    # Every product of 16 x 16 x 32 is 16384 FLOP with 2048 B of accumulators and as many operands;
    # three instructions of 99 make sums.
    least = rows * 2048 / 16.384
    assert least < ours["accumulators"] < 1.04 * least
    assert least < ours["operands"] < 1.06 * least
    assert derived["accumulators"] == 2 * ours["accumulators"]
    # An operand of K or V is read once for three query tiles.
    assert ours["lds"] == pytest.approx(rows * 1024 / 16.384 / 3)
    # Two products of 128 elements of head for each score, 64 scores to an instruction.
    assert ours["exponentials"] == pytest.approx(rows * 1000 / (4 * 128) / 64, rel=0.01)
    assert 0 < ours["memory"] < ours["l2"] < ours["lds"]
    assert "derived" in capsys.readouterr().out
