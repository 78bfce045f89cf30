"""The timing model's constants are frozen.

One that changes needs a trace or a document as its source, never a kernel's modelled time; then its
table's hash changes here, in the same commit.
"""

import pytest

from jax_fa.emulator.timing import constants_hash

HASHES = {"gfx950": "802d0a0f98a8", "gfx1201": "bcba54f8ff49"}


@pytest.mark.parametrize("target", HASHES)
def test_constants_are_frozen(target):
    assert constants_hash(target) == HASHES[target]
