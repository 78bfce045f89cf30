"""Settings of emulated custom calls."""

import pytest

from jax_fa import _native, emulator


def seed():
    return _native.emulator_settings()["seed"]


def test_settings_hold_within_the_context_alone():
    before = _native.emulator_settings()
    with emulator.configure(seed=3, schedule="random"):
        with emulator.configure(seed=4):
            assert _native.emulator_settings() == {**before, "seed": 4, "schedule": "random"}
        assert seed() == 3
        with pytest.raises(KeyError), emulator.configure(seed=5):
            raise KeyError
        assert seed() == 3
    assert _native.emulator_settings() == before


def test_a_function_runs_under_them():
    decorated = emulator.configure(seed=7)(seed)
    assert [seed(), decorated(), decorated(), seed()] == [0, 7, 7, 0]


def test_one_context_within_itself():
    context = emulator.configure(seed=9)
    with context, context:
        assert seed() == 9
    assert seed() == 0


def test_alone_they_set_nothing_and_say_so():
    with pytest.warns(RuntimeWarning, match=r"alone sets nothing: with emulator.configure"):
        emulator.configure(checks=True)
    assert not _native.emulator_settings()["checks"]
