"""benchio of "Parallel I/O Performance Benchmarking and Investigation on Multiple HPC Architectures".

The model of ARCHER has values of its user guide; nothing of it is fitted.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from testbed.reproduce.figure import Figure, near
from testbed.reproduce.runs import Runs

CASE = "benchio"
MOST_GB_PER_S = 48 * 0.5
"""What the targets of a file system of ARCHER write together."""
BLOCK_GB = 8 * 128**3 / 1e9
FEW, MANY = 24, 1536
"""Tasks, 24 of a node."""


def figures(runs: Runs) -> Iterator[Figure]:
    """Yield the share of the maximum, the effect of striping, and how the libraries compare."""
    archer = {tasks: _rates(runs, "archer", tasks) for tasks in (FEW, MANY)}
    share = 100 * archer[MANY]["mpiio"] / MOST_GB_PER_S
    yield near(CASE, "largest rate of MPI-IO, of the maximum", "predicted", 50, share, "%")
    # Four targets write 2 GB/s together, as stated.
    narrow = _rates(runs, "archer", MANY, "--set", "stripes=4")
    gain = archer[MANY]["mpiio"] / narrow["mpiio"]
    what = "stripes on all targets, relative to 4 (faster)"
    yield Figure(CASE, what, "by construction", np.nan, gain, 1.5, np.inf, "")
    scaling = {layer: archer[MANY][layer] / archer[FEW][layer] for layer in ("mpiio", "hdf5")}
    what = "growth with tasks by HDF5 on Lustre, relative to MPI-IO (less)"
    yield Figure(CASE, what, "predicted", np.nan, scaling["hdf5"] / scaling["mpiio"], 0, 0.98, "")

    # Nothing distinguishes the libraries where shared stripes cost nothing.
    rates = {tasks: _rates(runs, "healthy", tasks) for tasks in (FEW, 8 * FEW)}
    what = "time by HDF5 without lock conflicts, relative to MPI-IO (similar)"
    relative = rates[8 * FEW]["mpiio"] / rates[8 * FEW]["hdf5"]
    yield Figure(CASE, what, "by construction", np.nan, relative, 0.95, 1.3, "")
    scaling = {layer: rates[8 * FEW][layer] / rates[FEW][layer] for layer in ("mpiio", "hdf5")}
    what = "growth with tasks by HDF5 without lock conflicts, relative to MPI-IO (identical)"
    yield near(CASE, what, "by construction", 1, scaling["hdf5"] / scaling["mpiio"], "", 0.1)


def _rates(runs: Runs, model: str, tasks: int, *options: str) -> dict[str, float]:
    """Return the largest rate of the repetitions by layer, GB/s."""
    options = ("--set", "sizes=paper", "--tasks", str(tasks), "--set", "repetitions=3", *options)
    made = runs.simulate("benchio", model, *options)
    return {layer: tasks * BLOCK_GB / min(made.phase_times_s(layer)) for layer in ("mpiio", "hdf5")}
