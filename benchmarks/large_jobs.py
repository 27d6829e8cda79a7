"""What job files of up to a thousand million calls take: memory and time of commands, and whether both grow
as they should.

A job of two ranks is run, and the record of the second one multiplied, as many_processes.py does it: all
ranks but the first have the same calls, in one place of the file. So it stays small enough to be in memory,
and every command decodes and counts all of its calls.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from pathlib import Path

from job_file import MPI, PROGRAM
from many_processes import multiplied
from scale import COMMANDS, commands
from tabulate import tabulate

import ensembles


def traced(folder: Path, calls: int) -> bytes:
    """The job file of two ranks, with every call in it."""
    data, run = folder / "data", folder / "two"
    data.mkdir()
    settings = {"ENSIO_MODE": "trace", "ENSIO_BANNER": "none", "ENSIO_DIR": str(run)}
    environment = os.environ | MPI | settings | {"ENSIO_EXCLUDE": f"!{data}/data.*:*"}
    command = ["mpiexec", "-n", "2", PROGRAM, data, str(calls)]
    subprocess.run(list(map(str, command)), check=True, env=environment, timeout=600)
    return (run / "job.ensio").read_bytes()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Measures commands on job files of many calls.")
    parser.add_argument("--calls", type=int, default=1_000_000, help="of each process (default: a million)")
    parser.add_argument("--processes", type=int, nargs="+", default=[100, 300, 1000])
    parser.add_argument("--memory", default="1GiB", help="what each command may take (default: %(default)s)")
    parser.add_argument("--commands", nargs="+", choices=tuple(COMMANDS), default=("info", "report"))
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="ensio-large-") as name:
        job = traced(Path(name), args.calls)
        for processes in args.processes:
            path = Path(name, f"{processes}.ensio")
            path.write_bytes(multiplied(job, processes))
            events, mib = ensembles.open(path).most_events, path.stat().st_size / 2**20
            for row in commands(str(path), args.memory, name, args.commands):
                each = f"{float(row[1]) / events * 1e9:.1f}"
                rows.append([f"{events:,}", f"{mib:.1f}", *row[:3], each, *row[3:]])
                print(*rows[-1], flush=True)
            path.unlink()
    headers = ["events", "MiB", "command", "processor s", "clock s", "ns an event", "peak MiB", ""]
    print(tabulate(rows, headers, disable_numparse=True))


if __name__ == "__main__":
    main()
