"""Measure what habits of real programs cost here, and what the diagnosis says of them.

Run ``./dev evaluate --real``. Each program runs in alternated rounds with its habit and without.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from calibration.evaluate.dataset import write_dataset
from calibration.evaluate.score import report
from calibration.habits.catalogue import HABITS
from calibration.habits.execution import Machine
from calibration.habits.habit import runs_of
from calibration.habits.measured import HEADERS, Measured, measure
from calibration.habits.places import Places, Skipped
from calibration.page import ROOT, say, show, version, write_page
from calibration.workers import processor_s

PAGE = ROOT / "docs" / "reference" / "calibration" / "diagnosis.md"


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./dev evaluate --real", description=__doc__.partition("\n")[0].rstrip(".") + "."
    )
    parser.add_argument("--real", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each run (default: %(default)s)")
    parser.add_argument("--only", default="", metavar="TEXT", help="runs whose cause or name contains TEXT")
    parser.add_argument("--ior", default="", metavar="PATH", help="IOR, which is not part of the project")
    parser.add_argument(
        "--scratch", metavar="DIR", help="folder on the disk that is measured (default: a temporary one)"
    )
    parser.add_argument(
        "--first",
        action="store_true",
        help="give the programs most of the processors (cgroup v1, root): for machines with other work",
    )
    parser.add_argument(
        "--dataset", type=Path, metavar="DIR", help="new folder for the runs, their truth, answers and scorer"
    )
    parser.add_argument("--write", action="store_true", help=f"write the tables to {PAGE.relative_to(ROOT)}")
    return parser.parse_args()


def main() -> None:
    """Make the runs, diagnose them, and print the tables."""
    args = _parsed()
    commit, began, clock = version(), processor_s(), time.monotonic()
    load = os.getloadavg()[0]
    chosen = [each for each in runs_of(HABITS) if args.only in f"{each} {each.habit.cause}"]
    found: list[Measured] = []
    skipped: dict[str, list[str]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="ensio-habits-", dir=args.scratch) as scratch,
        Places(Path(scratch), args.first) as places,
    ):
        machine = Machine(Path(scratch), places, args.ior)
        for number, planted in enumerate(chosen, 1):
            try:
                machine.check(planted)
            except Skipped as reason:
                print(f"SKIPPED: {planted}: {reason}", flush=True)
                skipped.setdefault(str(reason), []).append(str(planted))
                continue
            found.append(measure(machine, planted, args.rounds))
            print(f"{number} of {len(chosen)}: {' | '.join(found[-1].row())}", flush=True)
        if args.dataset:
            command = f"./dev evaluate --real --rounds {args.rounds} --dataset DIR"
            made = f"`{command}`, at commit {commit}, with real programs"
            write_dataset(args.dataset, made, [pair for each in found for pair in each.records()])
    if not found:
        raise SystemExit("there is nothing to report: no run was made")
    judged = [run for each in found for run in each.judged()]
    with_cost = sum(bool(each.judged()[0].costs) for each in found)
    say(
        f"{len(found)} runs with a planted habit and as many without, of {args.rounds} alternated rounds "
        f"each: {with_cost} of the habits cost 2 % of the run or more here. The load of this machine of "
        f"{os.cpu_count()} processors was {load:.1f} at the beginning and {os.getloadavg()[0]:.1f} at the "
        f"end, {(time.monotonic() - clock) / 60:.0f} min later."
    )
    for reason, names in skipped.items():
        say(f"Skipped, as {reason}: {'; '.join(names)}.")
    report(judged)
    show([each.row() for each in found], HEADERS)
    if args.write:
        first = " --first" * args.first
        words = f"./dev evaluate --real --rounds {args.rounds}{first} --write"
        write_page(PAGE, "evaluate --real", words, commit, began)


if __name__ == "__main__":
    main()
