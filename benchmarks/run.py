"""The one command line of the benchmarks: python benchmarks/run.py <what> [options]."""

from __future__ import annotations

import argparse
import sys

import ablations
import cpu
import emulator_speed
import errors
import gpu
import model
import mutants
import start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="what")
    for module in (ablations, cpu, gpu, emulator_speed, errors, model, mutants, start):
        command = commands.add_parser(module.NAME, help=module.HELP)
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    arguments = parser.parse_args()
    return arguments.run(arguments)


if __name__ == "__main__":
    sys.exit(main())
