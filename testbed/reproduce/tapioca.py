"""The microbenchmark and HACC-IO of "TAPIOCA: An I/O Library for Optimized Topology-Aware Data Aggregation".

The model (testbed/tapioca) draws nothing, so that all seeds have the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from testbed.reproduce.figure import Figure, near
from testbed.reproduce.runs import Runs
from testbed.tapioca import paper
from testbed.tapioca.described import Layout

CASE = "TAPIOCA"
Machine = Literal["mira", "theta"]


def figures(_runs: Runs) -> Iterator[Figure]:
    """Yield the rates by buffer and stripe, the gains over MPI-IO, and the effect of sizes and stripes."""
    table = list(paper.buffer_stripe())
    for ratio, published, ours in table:
        what = "buffer : stripe of {} : {}".format(*ratio)
        yield near(
            CASE, what, "fitted" if ratio in paper.FITTED_RATIOS else "predicted", published, ours, "GB/s"
        )
    best = max(table, key=lambda row: row[2])[0]
    yield Figure(CASE, "buffer over stripe at the largest rate", "predicted", 1, best[0] / best[1], 1, 1, "")
    for case in paper.gains():
        assert case.gain is not None
        yield near(CASE, f"gain over MPI-IO, {case.name}", "predicted", case.gain, _gain(case), "")
    for nodes, published in ((1024, 90), (4096, 100)):
        mira = paper.hacc_io("mira", nodes, 25_000, "aos")
        share = 100 * mira.share_of_peak(mira.run("tapioca"))
        yield near(
            CASE, f"HACC-IO on {nodes:,} nodes of Mira, of the peak", "predicted", published, share, "%"
        )
    layouts: tuple[tuple[Machine, Layout], ...] = (("mira", "aos"), ("theta", "aos"), ("theta", "soa"))
    for machine, layout in layouts:
        few, many = (_gain(paper.hacc_io(machine, 1024, n, layout)) for n in (5_000, 100_000))
        what = f"gain with 100,000 particles on {machine}, {layout.upper()}, relative to 5,000 (less)"
        yield Figure(CASE, what, "predicted", np.nan, many / few, 0, 0.98, "")


def _gain(case: paper.Case) -> float:
    return case.run("tapioca").bytes_per_s / case.run("mpi-io").bytes_per_s
