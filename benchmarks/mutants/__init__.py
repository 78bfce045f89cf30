"""Generated defects in our own kernels: how many of them the emulator finds.

Each is the shipped code object with one instruction changed in place, run over small cases under
every arrival and order of waves. It is killed by a finding, by another error or by a result that
differs from the shipped code's in any bit. What survives is listed, each with the reason from the
ISA why it is harmless, where a rule has one.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

from jax_fa._contract.spec import TARGETS
from mutants.kinds import KINDS
from mutants.verdicts import Verdict, judge, load, pick

NAME = "mutants"
HELP = "generated defects in our kernels: which the emulator finds, and every one that it does not"

# What decides for the hardware whether code is right; all of them should be found.
MUST = ("wait removed", "wait raised", "barrier", "offset", "source")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the verdicts there too")
    parser.add_argument("--targets", nargs="+", default=TARGETS, choices=TARGETS, metavar="TARGET")
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS, metavar="KIND")
    parser.add_argument("--seed", type=int, default=0, help="which defects are picked")
    parser.add_argument("--count", type=int, default=100, help="of each kind and target")
    parser.add_argument("--all", action="store_true", help="every one that can be made")
    parser.add_argument("--jobs", type=int, default=2, help="processes")


def run(arguments: argparse.Namespace) -> int:
    rows, survivors = [], []
    for target in arguments.targets:
        subject = load(target)
        picked = pick(
            subject, arguments.kinds, arguments.seed, None if arguments.all else arguments.count
        )
        judged = judge(subject, picked, arguments.jobs)
        rows += table(target, judged)
        survivors += [verdict for verdict in judged if verdict.killed is None]
    print(_HEAD)
    for row in rows:
        print(_ROW.format(**row))
    _print_survivors(survivors)
    if arguments.json:
        listed = [dataclasses.asdict(verdict) for verdict in survivors]
        report = {"seed": arguments.seed, "rows": rows, "survivors": listed}
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")
    return 0


# --- The report -----------------------------------------------------------------------------------

_HEAD = (
    f"{'target':>8} {'kind':>14} {'mutants':>8} {'finding':>8} {'error':>6} {'result':>7} "
    f"{'harmless':>9} {'survived':>9} {'score':>7} {'killed of all':>14}"
)
_ROW = (
    "{target:>8} {kind:>14} {mutants:>8} {finding:>8} {error:>6} {result:>7} {harmless:>9} "
    "{survived:>9} {score:>7.1%} {killed_of_all:>14.1%}"
)


def table(target: str, judged: Sequence[Verdict]) -> list[dict]:
    """A row for each kind, and for those that must be found and all together."""
    kinds = {kind: (kind,) for kind in KINDS if any(v.mutant.kind == kind for v in judged)}
    rows = []
    for name, of in {**kinds, "must be found": MUST, "all": KINDS}.items():
        verdicts = [verdict for verdict in judged if verdict.mutant.kind in of]
        by = collections.Counter(verdict.killed for verdict in verdicts)
        harmless = sum(verdict.reason is not None for verdict in verdicts)
        killed, survived = len(verdicts) - by[None], by[None] - harmless
        rows.append(
            {
                "target": target,
                "kind": name,
                "mutants": len(verdicts),
                **{way: by[way] for way in ("finding", "error", "result")},
                "harmless": harmless,
                "survived": survived,
                "score": killed / max(1, killed + survived),
                "killed_of_all": killed / max(1, len(verdicts)),
            }
        )
    return rows


_BEYOND = "Survived, and can bite only on paths through instructions that no case executes:"


def _print_survivors(survivors: Sequence[Verdict]) -> None:
    by_title = collections.defaultdict(list)
    for verdict in survivors:
        title = f"Harmless: {verdict.reason}." if verdict.reason else "Survived:"
        by_title[_BEYOND if verdict.beyond else title].append(verdict)
    for title in sorted(by_title):
        print(f"\n{title}")
        for verdict in by_title[title]:
            mutant = verdict.mutant
            print(
                f"  {verdict.target} {mutant.kernel} {mutant.pc:#x} {mutant.kind}: {mutant.text}: "
                f"{mutant.change}"
            )
