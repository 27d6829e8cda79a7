"""Measure the cost of the job file at MPI_Finalize, against runs without it, in modes trace and profile.

In mode profile the ranks merge their summaries. Times are those of MPI_Finalize after a barrier, the
minimum of several runs: the longest wall time of a rank and the mean CPU time of the ranks. The difference
to the baseline without the job file is the cost.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from bench import record_ranks
from tabulate import tabulate

SHAPES = [(ranks, events) for events in (1_000, 100_000) for ranks in (1, 4, 16, 64)] + [(1, 1_000_000)]
PROFILES = [(ranks, 10_000) for ranks in (1, 8, 64)]
REPEATS = 3


def measure(folder: Path, ranks: int, calls: int, job_file: str, mode: str) -> tuple[float, float, int]:
    """Return longest wall time in s, mean CPU time in s, and size of the job file in bytes."""
    best = (np.inf, np.inf, 0)
    for _ in range(REPEATS):
        run, data = record_ranks(folder, ranks, calls, mode, job_file)
        times = np.array([(data / str(rank)).read_text().split() for rank in range(ranks)], "f8") / 1e9
        job = run / "job.ensio"
        size = job.stat().st_size if job.exists() else 0
        best = min(best, (times[:, 0].max(), times[:, 1].mean(), size))
        subprocess.run(["rm", "-rf", run, data], check=True)
    return best


def both(folder: Path, ranks: int, calls: int, mode: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Measure with and without the job file, and print progress."""
    begin = time.monotonic()
    measured = measure(folder, ranks, calls, "1", mode), measure(folder, ranks, calls, "0", mode)
    taken_s = time.monotonic() - begin
    print(f"{mode}, {ranks} ranks × {calls:,}: {taken_s:.0f} s", file=sys.stderr, flush=True)
    return measured


def traces(folder: Path) -> str:
    """Return the table of mode trace."""
    rows = []
    for ranks, calls in SHAPES:
        (wall, cost, size), (plain_wall, plain_cost, _) = both(folder, ranks, calls, "trace")
        rows.append(
            (
                ranks,
                f"{calls:,}",
                f"{plain_wall:.2f}",
                f"{wall:.2f}",
                f"{(wall - plain_wall) / calls * 1e9:.0f}",
                f"{(cost - plain_cost) / calls * 1e9:.0f}",
                f"{size / 2**20:.1f}",
                f"{size / (ranks * calls):.2f}",
            )
        )
    head = (
        "ranks",
        "events per rank",
        "without (s)",
        "with (s)",
        "wall ns per event",
        "CPU ns per event",
        "MiB",
        "bytes per event",
    )
    return tabulate(rows, head, disable_numparse=True)


def profiles(folder: Path) -> str:
    """Return the table of mode profile."""
    rows = []
    for ranks, calls in PROFILES:
        (wall, cost, size), (plain_wall, plain_cost, _) = both(folder, ranks, calls, "profile")
        more_ms = (cost - plain_cost) * 1e3
        rows.append((ranks, f"{plain_wall:.2f}", f"{wall:.2f}", f"{more_ms:.1f}", f"{size:,}"))
    head = ("ranks in mode profile", "without (s)", "with (s)", "CPU ms per rank", "bytes")
    return tabulate(rows, head, disable_numparse=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Measure the cost of the job file at the end of a job.")
    parser.add_argument("--directory", help="folder of the runs (default: temporary)")
    parser.add_argument("--only", choices=("trace", "profile"), help="table to print (default: both)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ensio-job-", dir=args.directory) as name:
        if args.only != "profile":
            print(traces(Path(name)), flush=True)
        if args.only != "trace":
            print(profiles(Path(name)), flush=True)


if __name__ == "__main__":
    main()
