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
METADATA_WRITES = 480
"""For each variable. Not published: fitted to the 75 s of the last step. HDF5 1.10 makes 200."""
RECORD_BYTES = 1_000_000
"""Calls of more bytes write records, the others metadata."""
_MB, _GB = 1e6, 1e9


def figures(runs: Runs) -> Iterator[Figure]:
    """Yield run times, rates of the whole run, and rates of single records."""
    metadata = ("--set", f"metadata_writes={METADATA_WRITES}")
    made = {pattern: runs.simulate(pattern, "franklin", *metadata) for pattern in LADDER_S}
    for pattern, paper_s in LADDER_S.items():
        yield near(CASE, f"run of {pattern}", "fitted", paper_s, made[pattern].span_s)
    sustained = {pattern: _bytes(made[pattern]) / made[pattern].span_s / _GB for pattern in LADDER_S}
    for pattern, paper in (("gcrm", 1.0), ("gcrm-writers", 1.8)):
        yield near(CASE, f"sustained rate of {pattern}", "fitted", paper, sustained[pattern], "GB/s")
    peaks = {pattern: _peak(made[pattern]) / _GB for pattern in LADDER_S}
    for pattern, paper in (("gcrm", 8.0), ("gcrm-writers", 5.0)):
        yield near(CASE, f"peak rate of {pattern}", "predicted", paper, peaks[pattern], "GB/s")
    improved = peaks["gcrm-aligned"] / peaks["gcrm-writers"]
    what = "peak rate with aligned records, relative to without"
    yield Figure(CASE, what, "predicted", np.nan, improved, 1.05, np.inf, "")

    steady = sustained["gcrm-writers"] / peaks["gcrm-writers"] / (sustained["gcrm"] / peaks["gcrm"])
    what = "sustained to peak rate with 80 writers, relative to the baseline (less fall-off)"
    yield Figure(CASE, what, "predicted", np.nan, steady, 1.2, np.inf, "")
    slow = 100 * _time_below(made["gcrm"], 2 * _GB)
    what = "time of the baseline at less than 2 GB/s (most)"
    yield Figure(CASE, what, "predicted", np.nan, slow, 50, 100, "%")
    alone = 100 * _time_below(made["gcrm-aligned"], 0.1 * _GB)
    what = "time with metadata only, aligned records (dominates)"
    yield Figure(CASE, what, "predicted", np.nan, alone, 50, 100, "%")

    rates = {pattern: _record_rates(made[pattern]) / _MB for pattern in LADDER_S}
    baseline = float(np.median(rates["gcrm"]))
    yield Figure(CASE, "rate of a record, baseline", "predicted", np.nan, baseline, 0.1, 1, "MB/s")
    writers = float(np.median(rates["gcrm-writers"]))
    yield near(CASE, "rate of a record with 80 writers", "fitted", 100, writers, "MB/s")
    for pattern, paper in (("gcrm-writers", 0.5), ("gcrm-aligned", 1.0)):
        worst = float(np.percentile(rates[pattern], 0.1))
        yield near(CASE, f"slowest record in a thousand of {pattern}", "predicted", paper, worst, "MB/s")
    metadata = float(np.median(_record_rates(made["gcrm-aligned"], metadata=True))) / _MB
    yield near(CASE, "rate of metadata with aligned records", "predicted", 1, metadata, "MB/s")


def _bytes(made: Simulated) -> int:
    return int(made.run.select(op="write").moved.sum())


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
