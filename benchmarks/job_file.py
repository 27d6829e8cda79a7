"""What the job file costs: ranks × events, each with it and without (the baseline), best of some runs; and
the same in mode profile, where the ranks put their summaries into one.

Times are of MPI_Finalize, from a barrier on: the longest of any rank by the clock, and the mean processor
time of the ranks. The difference to the baseline is what the job file takes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from tabulate import tabulate

BUILD = Path(os.environ.get("ENSIO_BUILD", Path(__file__).parents[1] / "build"))
PROGRAM = BUILD / "bin/ensio-bench-job"
MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}
SHAPES = [(ranks, events) for events in (1_000, 100_000) for ranks in (1, 4, 16, 64)] + [(1, 1_000_000)]
PROFILES = [(ranks, 10_000) for ranks in (1, 8, 64)]
REPEATS = 3


def measure(folder: Path, ranks: int, calls: int, job_file: str, mode: str) -> tuple[float, float, int]:
    """Longest wall time in s, mean processor time in s, and bytes of the job file."""
    run, data = folder / "run", folder / "data"
    best = (np.inf, np.inf, 0)
    for _ in range(REPEATS):
        data.mkdir()
        environment = (
            os.environ
            | MPI
            | {"ENSIO_DIR": str(run), "ENSIO_BANNER": "none", "ENSIO_EXCLUDE": f"!{data}/data.*:*"}
            | {"ENSIO_MODE": mode}
        )
        command = ["mpiexec", "-n", str(ranks), PROGRAM, data, str(calls)]
        subprocess.run(
            list(map(str, command)), check=True, env=environment | {"ENSIO_JOBFILE": job_file}, timeout=300
        )
        times = np.array([(data / str(rank)).read_text().split() for rank in range(ranks)], "f8") / 1e9
        job = run / "job.ensio"
        size = job.stat().st_size if job.exists() else 0
        best = min(best, (times[:, 0].max(), times[:, 1].mean(), size))
        subprocess.run(["rm", "-rf", run, data], check=True)
    return best


def both(folder: Path, ranks: int, calls: int, mode: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Wall time, processor time and bytes with the job file, and without it; says how far it has come."""
    begin = time.monotonic()
    measured = measure(folder, ranks, calls, "1", mode), measure(folder, ranks, calls, "0", mode)
    taken_s = time.monotonic() - begin
    print(f"{mode}, {ranks} ranks × {calls:,}: {taken_s:.0f} s", file=sys.stderr, flush=True)
    return measured


def traces(folder: Path) -> str:
    """The table of mode trace."""
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
        "events a rank",
        "without s",
        "with s",
        "wall ns an event",
        "processor ns an event",
        "MiB",
        "bytes an event",
    )
    return tabulate(rows, head, disable_numparse=True)


def profiles(folder: Path) -> str:
    """The table of mode profile."""
    rows = []
    for ranks, calls in PROFILES:
        (wall, cost, size), (plain_wall, plain_cost, _) = both(folder, ranks, calls, "profile")
        more_ms = (cost - plain_cost) * 1e3
        rows.append((ranks, f"{plain_wall:.2f}", f"{wall:.2f}", f"{more_ms:.1f}", f"{size:,}"))
    head = ("ranks in mode profile", "without s", "with s", "processor ms a rank", "bytes")
    return tabulate(rows, head, disable_numparse=True)


def main() -> None:
    """Print the tables, each when it is done."""
    parser = argparse.ArgumentParser(description="Measures what the job file costs at the end of a job.")
    parser.add_argument("--directory", help="where the runs are made (default: a temporary directory)")
    parser.add_argument("--only", choices=("trace", "profile"), help="one of the tables")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ensio-job-", dir=args.directory) as name:
        if args.only != "profile":
            print(traces(Path(name)), flush=True)
        if args.only != "trace":
            print(profiles(Path(name)), flush=True)


if __name__ == "__main__":
    main()
