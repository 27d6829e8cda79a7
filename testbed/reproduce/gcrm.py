"""GCRM of figure 6: 10,240 tasks write records of 1.6 MB to one file, with three improvements."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ensembles.passes.summary import ignoring_run
from ensembles.summaries.rate import RateCurve
from testbed.reproduce.figure import Figure, near
from testbed.reproduce.runs import Runs, Simulated

CASE = "GCRM"
LADDER_S = {"gcrm": 310, "gcrm-writers": 190, "gcrm-aligned": 150, "gcrm-aggregated": 75}
"""Run times of the baseline, with 80 writers, with aligned records, with one write of metadata."""
RECORD_BYTES = 1_000_000
"""Calls of more bytes write records, the others metadata."""
_MB, _GB = 1e6, 1e9


def figures(runs: Runs) -> Iterator[Figure]:
    """Yield run times, rates of the whole run, and rates of single records.

    The metadata are those of the pattern, counted in the public kernel. Sustained rates have no rows: they
    are the run times again. "Worst case" is the slowest record.
    """
    made = {pattern: runs.simulate(pattern, "franklin") for pattern in LADDER_S}
    for pattern, paper_s in LADDER_S.items():
        yield near(CASE, f"run of {pattern}", "fitted", paper_s, made[pattern].span_s)
    peaks = {pattern: _peak(made[pattern]) / _GB for pattern in LADDER_S}
    for pattern, paper in (("gcrm", 8.0), ("gcrm-writers", 5.0)):
        yield near(CASE, f"peak rate of {pattern}", "predicted", paper, peaks[pattern], "GB/s")
    improved = peaks["gcrm-aligned"] / peaks["gcrm-writers"]
    what = "peak rate with aligned records, relative to without"
    yield Figure(CASE, what, "fitted", np.nan, improved, 1.05, np.inf, "")
    slow = 100 * _time_below(made["gcrm"], 2 * _GB)
    what = "time of the baseline at less than 2 GB/s (most)"
    yield Figure(CASE, what, "predicted", np.nan, slow, 50, 100, "%")
    alone = 100 * _time_below(made["gcrm-aligned"], 0.1 * _GB)
    what = "time with metadata only, aligned records (dominates)"
    yield Figure(CASE, what, "predicted", np.nan, alone, 50, 100, "%")

    rates = {pattern: _record_rates(made[pattern]) / _MB for pattern in LADDER_S}
    # "Broad peaks well below 1 MB/s and extending to around 0.5 MB/s".
    baseline = float(np.median(rates["gcrm"]))
    what = "rate of a record, baseline (well below 1 MB/s)"
    yield Figure(CASE, what, "predicted", np.nan, baseline, 0.35, 0.7, "MB/s")
    writers = float(np.median(rates["gcrm-writers"]))
    # The link of a node has this rate in the model.
    yield near(CASE, "rate of a record with 80 writers", "by construction", 100, writers, "MB/s")
    for pattern, paper in (("gcrm-writers", 0.5), ("gcrm-aligned", 1.0)):
        yield near(CASE, f"slowest record of {pattern}", "predicted", paper, rates[pattern].min(), "MB/s")
    metadata = float(np.median(_record_rates(made["gcrm-aligned"], metadata=True))) / _MB
    yield near(CASE, "rate of metadata with aligned records", "predicted", 1, metadata, "MB/s")


def _peak(made: Simulated) -> float:
    curve = made.run.summarize(ignoring_run(RateCurve))
    return float(curve.rate_bytes_per_s("write").max())


def _time_below(made: Simulated, bytes_per_s: float) -> float:
    """Return the share of the run in which its tasks together write less."""
    curve = made.run.summarize(ignoring_run(RateCurve))
    return float((curve.rate_bytes_per_s("write") < bytes_per_s).mean())


def _record_rates(made: Simulated, metadata: bool = False) -> np.ndarray:
    """Return bytes per second of each record, or of each write of metadata."""
    writes = made.run.select(op="write")
    mine = (writes.moved > RECORD_BYTES) != metadata
    return writes.moved[mine] / (writes.duration[mine] * 1e-9)
