"""The console script jax-fa.

A sub-command is a module with HELP, add_arguments(parser) and run(arguments) -> exit status. The
demo is what jax-fa alone does.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from jax_fa import __version__
from jax_fa._cli import check, demo, emulate, isa

_COMMANDS = {"demo": demo, "check": check, "isa": isa, "emulate": emulate}
_DEFAULT_COMMAND = "demo"
_OWN_OPTIONS = ("-h", "--help", "--version")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jax-fa",
        description="Attention kernels for JAX on AMD GPUs, and the emulator that runs them here.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(
        dest="command", metavar="command", required=True, help=f"default: {_DEFAULT_COMMAND}"
    )
    for name, module in _COMMANDS.items():
        command = commands.add_parser(name, help=module.HELP, description=module.HELP)
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line argv (sys.argv's when None) and return the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or (words[0].startswith("-") and words[0] not in _OWN_OPTIONS):
        words.insert(0, _DEFAULT_COMMAND)
    arguments = _parser().parse_args(words)
    return arguments.run(arguments)
