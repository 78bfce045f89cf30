"""Writes what tests/api/test_frozen.py holds the package to.

    python tests/support/freeze.py contract
    python tests/support/freeze.py programs

``contract`` overwrites tests/api/frozen/contract.json. Run it when the contract was meant to grow
(a new option, kernel or name), read its diff, and say what changed in the changelog. A refactoring
never has a reason to.

``programs`` exports programs into a new folder tests/api/frozen/VERSION, once a release, with the
oldest JAX that the release supports. What stands in a folder is never written again: these are
files that users have kept, and every later version must load them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import jax

jax.config.update("jax_num_cpu_devices", 4)

from contract import ROOT, describe  # noqa: E402
from contract_programs import write_programs  # noqa: E402

import jax_fa  # noqa: E402

FROZEN = ROOT / "tests/api/frozen"


def main(words: list[str]) -> None:
    what, checkout = words[0], Path(words[1]) if words[1:] else ROOT
    if what == "contract":
        text = json.dumps(describe(checkout), indent=1)
        (FROZEN / "contract.json").write_text(text + "\n")
    elif what == "programs":
        write_programs(FROZEN / jax_fa.__version__)
    else:
        raise SystemExit(f"contract or programs; got {what}")


if __name__ == "__main__":
    main(sys.argv[1:])
