"""What the job file costs: ranks × events, each with it and without (the baseline), best of some runs.

Times are of MPI_Finalize, from a barrier on: the longest of any rank by the clock, and the mean processor
time of the ranks. The difference to the baseline is what the job file takes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
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
REPEATS = 3


def measure(folder: Path, ranks: int, calls: int, job_file: str) -> tuple[float, float, int]:
    """Longest wall time in s, mean processor time in s, and bytes of the job file."""
    run, data = folder / "run", folder / "data"
    best = (np.inf, np.inf, 0)
    for _ in range(REPEATS):
        data.mkdir()
        environment = (
            os.environ
            | MPI
            | {"ENSIO_DIR": str(run), "ENSIO_BANNER": "none", "ENSIO_EXCLUDE": f"!{data}/data.*:*"}
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


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Measures what the job file costs at the end of a job.")
    parser.add_argument("--directory", help="where the runs are made (default: a temporary directory)")
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="ensio-job-", dir=args.directory) as name:
        folder = Path(name)
        for ranks, calls in SHAPES:
            wall, cost, size = measure(folder, ranks, calls, "1")
            plain_wall, plain_cost, _ = measure(folder, ranks, calls, "0")
            events = ranks * calls
            rows.append(
                (
                    ranks,
                    f"{calls:,}",
                    f"{plain_wall:.2f}",
                    f"{wall:.2f}",
                    f"{(wall - plain_wall) / calls * 1e9:.0f}",
                    f"{(cost - plain_cost) / calls * 1e9:.0f}",
                    f"{size / 2**20:.1f}",
                    f"{size / events:.2f}",
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
    print(tabulate(rows, head, disable_numparse=True))


if __name__ == "__main__":
    main()
