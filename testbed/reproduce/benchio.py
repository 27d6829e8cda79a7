"""benchio of "Parallel I/O Performance Benchmarking and Investigation on Multiple HPC Architectures".

There is no model of its machines: the run is that of the model ``healthy``, of which a ratio is compared.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from testbed.reproduce.figure import Figure
from testbed.reproduce.runs import Runs

CASE = "benchio"


def figures(runs: Runs) -> Iterator[Figure]:
    """Yield how HDF5 compares with MPI-IO."""
    made = runs.simulate("benchio", "healthy", "--sizes", "paper")
    time_s = {layer: float(np.median(made.phase_times_s(layer))) for layer in ("mpiio", "hdf5")}
    what = "time by HDF5, relative to MPI-IO (similar)"
    yield Figure(CASE, what, "predicted", np.nan, time_s["hdf5"] / time_s["mpiio"], 0.95, 1.3, "")
