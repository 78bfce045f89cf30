"""The table of targets (csrc/runtime/targets.h), where others state the same facts."""

import pytest

from jax_fa import _native
from jax_fa._contract.spec import TARGETS
from jax_fa._ops import select


def test_order_is_that_of_the_table():
    assert tuple(_native.targets()) == TARGETS
    assert TARGETS[:2] == ("gfx950", "gfx1201")


@pytest.mark.parametrize(
    ("target", "simds_of_a_compute_unit"),
    [("gfx950", 4), ("gfx1201", 2)],  # the ISA documents
)
def test_compute_units_are_those_of_the_timing_model(target, simds_of_a_compute_unit):
    units = _native.targets()[target]["compute_units"]
    assert units * simds_of_a_compute_unit == _native.chip_simds(target)


def test_limits_that_do_not_wait_for_a_target_hold_on_all():
    facts = _native.targets().values()
    assert min(one["max_head_dim"] for one in facts) == select.MAX_HEAD_DIM == 256
    assert select.useful_splits(99, 16) == 1
    assert all(one["min_split_keys"] >= 16 for one in facts)
