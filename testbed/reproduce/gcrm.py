"""GCRM of figure 6: 10,240 tasks write records of 1.6 MB to one file, with three improvements."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.reproduce.figure import Figure, within
from testbed.reproduce.runs import Runs

CASE = "GCRM"
LADDER_S = {"gcrm": 310, "gcrm-writers": 190, "gcrm-aligned": 150, "gcrm-aggregated": 75}
"""Run times of the baseline, with 80 writers, with aligned records, with one write of metadata."""


def figures(runs: Runs) -> Iterator[Figure]:
    """Yield the run times."""
    for pattern, paper_s in LADDER_S.items():
        yield within(0.25, CASE, f"run of {pattern}", paper_s, runs.simulate(pattern, "franklin").span_s)
