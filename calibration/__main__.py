"""Measure how often the statistics are right, on data with a known truth.

Run ``python -m calibration [NAME ...]``.
"""

from __future__ import annotations

import argparse
import importlib
import time

from calibration.page import version, write

NAMES = ("compare", "history", "modes", "moments", "readahead", "split", "structure", "tail")


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
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in NAMES]
    if unknown:
        parser.error(f"unknown calibration {unknown[0]}: choose from {', '.join(NAMES)}")
    if options.write and len(options.names) != 1:
        parser.error("--write takes one NAME, because each calibration has one page")
    for name in options.names or NAMES:
        print(f"== {name}", flush=True)
        commit, began = version(), time.process_time()
        importlib.import_module(f"calibration.{name}").main(quick=options.quick)
        if options.write:
            command = f"./dev calibrate {name} --write" + " --quick" * options.quick
            print(f"== wrote {write(name, command, commit, began)}")


if __name__ == "__main__":
    main()
