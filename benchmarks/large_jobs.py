"""Measure memory and time of commands on job files of up to a billion calls.

As in many_processes.py, a job of two ranks is run, and the record of the second rank is repeated: all ranks
but the first refer to the same calls in the file. The file fits into memory, and every command decodes and
counts all calls.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from bench import record_ranks
from many_processes import multiplied
from scale import COMMANDS, commands
from tabulate import tabulate

import ensembles


def main() -> None:
    """Print the table."""
    os.environ["ENSIO_CACHE"] = "0"  # every pass is made
    parser = argparse.ArgumentParser(description="Measure commands on job files of many calls.")
    parser.add_argument(
        "--calls", type=int, default=1_000_000, help="calls of each process (default: %(default)s)"
    )
    parser.add_argument("--processes", type=int, nargs="+", default=[100, 300, 1000])
    parser.add_argument(
        "--memory", default="1GiB", help="memory limit of each command (default: %(default)s)"
    )
    parser.add_argument("--commands", nargs="+", choices=tuple(COMMANDS), default=("info", "report"))
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="ensio-large-") as name:
        job = (record_ranks(Path(name), 2, args.calls, "trace")[0] / "job.ensio").read_bytes()
        for processes in args.processes:
            path = Path(name, f"{processes}.ensio")
            path.write_bytes(multiplied(job, processes))
            events, mib = ensembles.open(path).reading.most_events, path.stat().st_size / 2**20
            for row in commands(str(path), args.memory, name, args.commands):
                each = f"{float(row[1]) / events * 1e9:.1f}"
                rows.append([f"{events:,}", f"{mib:.1f}", *row[:3], each, *row[3:]])
                print(*rows[-1], flush=True)
            path.unlink()
    headers = ["events", "MiB", "command", "CPU s", "wall s", "CPU ns per event", "peak MiB", ""]
    print(tabulate(rows, headers, disable_numparse=True))


if __name__ == "__main__":
    main()
