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
MACHINES: tuple[Machine, ...] = ("mira", "theta")
LAYOUTS: tuple[Layout, ...] = ("aos", "soa")


def figures(_runs: Runs) -> Iterator[Figure]:
    """Yield the rates by buffer and stripe, the gains over MPI-IO, and the effect of sizes and stripes.

    All of table I is fitted: windows side by side in the file were chosen because the table does not come out
    otherwise. "Up to" is the largest value over the sizes of the figure.
    """
    table = list(paper.buffer_stripe())
    for ratio, published, ours in table:
        yield near(CASE, "buffer : stripe of {} : {}".format(*ratio), "fitted", published, ours, "GB/s")
    best = max(table, key=lambda row: row[2])[0]
    yield Figure(CASE, "buffer over stripe at the largest rate", "fitted", 1, best[0] / best[1], 1, 1, "")
    for case in paper.gains():
        assert case.gain is not None
        if case.name.startswith("HACC-IO, mira"):
            most = max(_gain(paper.hacc_io("mira", 1024, n, "aos")) for n in paper.PARTICLES)
            what = "gain over MPI-IO, HACC-IO, mira, 1,024 nodes, AOS, up to"
            yield near(CASE, what, "predicted", case.gain, most, "")
        else:
            yield near(CASE, f"gain over MPI-IO, {case.name}", "predicted", case.gain, _gain(case), "")
    for nodes, published in ((1024, 90), (4096, 100)):
        mira = [paper.hacc_io("mira", nodes, n, layout) for n in paper.PARTICLES for layout in LAYOUTS]
        share = 100 * max(case.share_of_peak(case.run("tapioca")) for case in mira)
        what = f"HACC-IO on {nodes:,} nodes of Mira, of the peak, up to"
        yield near(CASE, what, "predicted", published, share, "%")
    for machine in MACHINES:
        for layout in LAYOUTS:
            gains = [_gain(paper.hacc_io(machine, 1024, n, layout)) for n in (5_000, 100_000)]
            if machine == "mira":  # "substantially improved for both AoS and SoA layouts"
                what = f"gain over MPI-IO with 5,000 particles on mira, {layout.upper()} (substantial)"
                yield Figure(CASE, what, "predicted", np.nan, gains[0], 1.3, np.inf, "")
            what = f"gain with 100,000 particles on {machine}, {layout.upper()}, relative to 5,000 (less)"
            yield Figure(CASE, what, "predicted", np.nan, gains[1] / gains[0], 0, 0.98, "")


def _gain(case: paper.Case) -> float:
    return case.run("tapioca").bytes_per_s / case.run("mpi-io").bytes_per_s
