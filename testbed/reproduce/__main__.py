"""Reproduce numbers of the papers behind the patterns from simulated runs.

Run it as ``python -m testbed.reproduce`` or ``./dev reproduce``. Every case is simulated at several seeds. A
row has the published value, the median and the range of the simulated ones, and where they come from. What
is not reproduced is listed with the reason. Exit status 1: the median of a row is outside its tolerance, and
no reason is known.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import textwrap
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from ensembles.model.table import table_text
from testbed.reproduce import benchio, gcrm, ior, madbench, sdumont, tapioca
from testbed.reproduce.figure import HEADERS, Figure, rows_of, summary
from testbed.reproduce.fitted import listed, told
from testbed.reproduce.not_reproduced import NOT_REPRODUCED, OUTSIDE
from testbed.reproduce.page import kept, write_page
from testbed.reproduce.runs import Runs

CASES = {
    "ior": ior,
    "madbench": madbench,
    "gcrm": gcrm,
    "sdumont": sdumont,
    "tapioca": tapioca,
    "benchio": benchio,
}
SEEDS = 20


SAME = ("tapioca",)
"""Cases whose numbers do not depend on the seed."""


def figures_of(seed: int, cases: list[str], keep: str | None) -> list[Figure]:
    """Simulate the runs of a seed and compute the numbers."""
    if keep:
        folder = contextlib.nullcontext(f"{keep}/seed-{seed}")
    else:
        folder = tempfile.TemporaryDirectory(prefix="ensio-reproduce-")
    with folder as name:
        Path(name).mkdir(parents=True, exist_ok=True)
        runs = Runs(Path(name).absolute(), seed)
        return [figure for case in cases for figure in CASES[case].figures(runs)]


def main() -> int:
    """Simulate the runs and print the table."""
    parser = argparse.ArgumentParser(prog="reproduce", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--seeds", type=_count, default=SEEDS, help="number of seeds of the model (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=1, help="the first of them (default: %(default)s)")
    parser.add_argument(
        "--case", choices=CASES, action="append", help="case to reproduce; may be repeated (default: all)"
    )
    parser.add_argument(
        "--jobs", type=_count, default=os.cpu_count() or 1, help="seeds at a time (default: one a processor)"
    )
    parser.add_argument(
        "--keep", metavar="DIR", help="keep the runs in DIR, some 400 MB a seed (default: remove them)"
    )
    parser.add_argument(
        "--write", action="store_true", help="write docs/reference/reproduction.md too, which has all cases"
    )
    args = parser.parse_args()
    if args.write and args.case:
        parser.error("the page has all cases: leave out --case")
    cases = args.case or list(CASES)
    work = partial(figures_of, cases=[case for case in cases if case not in SAME], keep=args.keep)
    seeds = range(args.seed, args.seed + args.seeds)
    with ProcessPoolExecutor(min(args.jobs, args.seeds)) as pool:
        by_seed = list(pool.map(work, seeds))
    once = figures_of(args.seed, [case for case in cases if case in SAME], args.keep)
    rows = rows_of([figures + once for figures in by_seed])
    print(table_text(HEADERS, [row.cells() for row in rows]))
    print()
    sentences = [*summary(rows), *told([kept(row) for row in rows])]
    print("\n".join(sentences))
    named = list(listed([row.name[0] for row in rows]))
    print("\nFitted:")
    for sentence in named:
        print(textwrap.fill(sentence, 100, initial_indent="  ", subsequent_indent="      "))
    outside = [row.name for row in rows if not row.met]
    print("\nNot reproduced:")
    missed = [(*name, OUTSIDE.get(name, "no reason is known")) for name in outside]
    missed += [entry for entry in NOT_REPRODUCED if not args.case or entry[0].lower() in args.case]
    for case, what, why in missed:
        print(textwrap.fill(f"{case}: {what}: {why}", 100, initial_indent="  ", subsequent_indent="      "))
    if args.write:
        write_page(rows, sentences, named, missed, seeds)
    return 0 if set(outside) <= set(OUTSIDE) else 1


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError("a whole number from 1")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
