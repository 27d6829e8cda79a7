"""BT-IO and the microbenchmark of "Collective I/O Performance on the Santos Dumont Supercomputer".

There is no model of that machine: the runs are those of the model ``healthy``, of which only ratios and
counts are compared.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from testbed.reproduce.figure import Figure, near
from testbed.reproduce.runs import Runs

CASE = "SDumont"


def figures(runs: Runs) -> Iterator[Figure]:
    """Yield bytes and request size of BT-IO, and how the steps of a small collective write compare."""
    writes = runs.simulate("btio", "healthy", "--sizes", "paper").run.select(op="write", layer="mpiio")
    yield near(CASE, "bytes that BT-IO writes", "by construction", 132.6, writes.moved.sum() / 1e9, "GB")
    yield near(CASE, "requests of BT-IO", "by construction", 18, float(np.median(writes.moved)) / 1e6, "MB")

    steps = runs.simulate("twophase", "healthy", "--sizes", "paper")
    names = ("1-ranges", "2-counts", "3-offsets", "4-data", "5-write")
    times_s = {name: sum(steps.phase_times_s(name)) for name in names}
    share = times_s["5-write"] / sum(times_s.values())
    what = "share of the write in the five steps (not most of the time)"
    yield Figure(CASE, what, "predicted", np.nan, share, 0, 0.5, "")
    what = "step 3 of the five, relative to step 4 (longer)"
    yield Figure(CASE, what, "predicted", np.nan, times_s["3-offsets"] / times_s["4-data"], 1.05, np.inf, "")
