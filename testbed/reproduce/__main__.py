"""Reproduce numbers of "Parallel I/O Performance: From Events to Ensembles" from simulated runs.

Run it as ``python -m testbed.reproduce`` or ``./dev reproduce``. It prints the published and the simulated
values and their ratios. Exit status 1: a value is outside its tolerance.
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
    """Simulate the runs and print the table."""
    parser = argparse.ArgumentParser(prog="reproduce", description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1, help="seed of the model (default: %(default)s)")
    parser.add_argument(
        "--case", choices=CASES, action="append", help="case to reproduce; may be repeated (default: all)"
    )
    parser.add_argument(
        "--keep", metavar="DIR", help="keep the runs in DIR, some 400 MB (default: remove them)"
    )
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
    print(f"{met} of {len(figures)} values are within their tolerance")
    return 0 if met == len(figures) else 1


if __name__ == "__main__":
    sys.exit(main())
