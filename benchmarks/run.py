"""The one command line of the benchmarks: python benchmarks/run.py <what> [options]."""

from __future__ import annotations

import argparse
import sys

import ablations
import cpu
import emulator_speed
import energy
import errors
import gpu
import model
import mutants
import start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="what")
    modules = (ablations, cpu, gpu, emulator_speed, energy, errors, model, mutants, start)
    for module in modules:
        command = commands.add_parser(module.NAME, help=module.HELP)
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    arguments = parser.parse_args()
    return arguments.run(arguments)


if __name__ == "__main__":
    sys.exit(main())
