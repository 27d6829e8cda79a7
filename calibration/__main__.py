"""Measure how often the statistics are right, on data with a known truth.

Run ``python -m calibration [NAME ...]``.
"""

from __future__ import annotations

import argparse
import importlib

from calibration.page import version, write
from calibration.workers import Workers, processor_s

NAMES = (
    "compare",
    "gate",
    "history",
    "modes",
    "moments",
    "readahead",
    "split",
    "structure",
    "tail",
    "turns",
)


def main() -> None:
    """Run the named calibrations, or all."""
    parser = argparse.ArgumentParser(prog="./dev calibrate", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(NAMES)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="fewer trials, for a glance")
    parser.add_argument(
        "--write",
        action="store_true",
        help="write the tables to the page of NAME, docs/reference/calibration/NAME.md",
    )
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="number of processes (default: 2)")
    options = parser.parse_args()
    Workers.jobs = max(options.jobs, 1)
    unknown = [name for name in options.names if name not in NAMES]
    if unknown:
        parser.error(f"unknown calibration {unknown[0]}: choose from {', '.join(NAMES)}")
    if options.write and len(options.names) != 1:
        parser.error("--write takes one NAME, because each calibration has one page")
    for name in options.names or NAMES:
        print(f"== {name}", flush=True)
        commit, began = version(), processor_s()
        importlib.import_module(f"calibration.{name}").main(quick=options.quick)
        if options.write:
            command = f"./dev calibrate {name} --write" + " --quick" * options.quick
            print(f"== wrote {write(name, command, commit, began)}")


if __name__ == "__main__":
    main()
