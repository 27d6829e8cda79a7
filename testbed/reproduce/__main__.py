"""The figures of "Parallel I/O Performance: From Events to Ensembles", from simulated runs: paper, ours,
ratio.

``python -m testbed.reproduce``, or ``./dev reproduce``. Exit status 1: a figure does not lie where it shall.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from pathlib import Path

from tabulate import tabulate

from testbed.reproduce import gcrm, ior, madbench
from testbed.reproduce.figure import HEADERS
from testbed.reproduce.runs import Runs

CASES = {"ior": ior, "madbench": madbench, "gcrm": gcrm}


def main() -> int:
    """Simulates the runs and prints the table."""
    parser = argparse.ArgumentParser(prog="reproduce", description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1, help="of the model (default: %(default)s)")
    parser.add_argument("--case", choices=CASES, action="append", help="this one only (default: all)")
    parser.add_argument("--keep", metavar="DIR", help="leave the runs there (some 400 MB)")
    args = parser.parse_args()
    if args.keep:
        Path(args.keep).mkdir(parents=True, exist_ok=True)
        folder = contextlib.nullcontext(args.keep)
    else:
        folder = tempfile.TemporaryDirectory(prefix="ensio-reproduce-")
    with folder as name:
        runs = Runs(Path(name).absolute(), args.seed)
        figures = [figure for case in args.case or CASES for figure in CASES[case].figures(runs)]
    print(tabulate([figure.cells() for figure in figures], HEADERS, disable_numparse=True))
    met = sum(figure.met for figure in figures)
    print(f"{met} of {len(figures)} figures lie where they shall")
    return 0 if met == len(figures) else 1


if __name__ == "__main__":
    sys.exit(main())
