"""MADbench of figures 4 and 5: 256 tasks write, update and read eight matrices of 300 MB per task."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ensembles.run.run import Run
from testbed.reproduce.figure import Figure, within
from testbed.reproduce.runs import Runs

CASE = "MADbench"
TIMES_S = {"franklin": 2200, "franklin-patched": 520, "jaguar": 275}
SLOW_S = 30
"""Shortest slow read of the paper."""
HARMED = range(4, 9)
"""Ordinals of the slow reads in the paper; 9 to 16 are those of the last phase."""


def figures(runs: Runs) -> Iterator[Figure]:
    """Yield the times of the three runs, and the ordinals of slow reads."""
    made = {machine: runs.simulate("madbench", machine) for machine in TIMES_S}
    for machine, paper_s in TIMES_S.items():
        yield within(0.3, CASE, f"run on {machine}", paper_s, made[machine].span_s)
    ratio = made["franklin"].span_s / made["franklin-patched"].span_s
    yield within(0.3, CASE, "ratio of the runs with and without the fault", 4.2, ratio, "")

    reads_s, patched_s = (_reads_s(made[name].run) for name in ("franklin", "franklin-patched"))
    slow = [ordinal for ordinal, durations_s in reads_s.items() if (durations_s > SLOW_S).mean() > 0.05]
    yield Figure(
        CASE, "first read that is often slow", HARMED[0], min(slow, default=0), HARMED[0], HARMED[0], ""
    )
    yield Figure(
        CASE, "last read that is often slow", HARMED[-1], max(slow, default=0), HARMED[-1], HARMED[-1], ""
    )
    medians_s = [float(np.median(reads_s[ordinal])) for ordinal in HARMED]
    rises = int(np.sum(np.diff(medians_s) > 0))
    yield Figure(
        CASE,
        "increases of the median from read 4 to read 8",
        len(HARMED) - 1,
        rises,
        len(HARMED) - 1,
        len(HARMED) - 1,
        "",
    )
    longest_s = max(float(durations_s.max()) for durations_s in reads_s.values())
    yield Figure(CASE, "slowest read", 500, longest_s, 300, 800)
    last, patched = (np.median(np.concatenate([of[k] for k in range(9, 17)])) for of in (reads_s, patched_s))
    yield Figure(
        CASE,
        "reads of the last phase, ratio to the patched run",
        1,
        float(last / patched),
        0.8,
        1.25,
        "",
    )
    patched_slow = sum(int((durations_s > SLOW_S).sum()) for durations_s in patched_s.values())
    share = 100 * patched_slow / sum(len(durations_s) for durations_s in patched_s.values())
    yield Figure(CASE, "slow reads of the patched run", np.nan, share, 0, 5, "%")


def _reads_s(run: Run) -> dict[int, np.ndarray]:
    """Return the durations in seconds by ordinal."""
    reads = run.select(op="read")
    assert reads.ordinal is not None
    return {int(k): reads.duration[reads.ordinal == k] / 1e9 for k in np.unique(reads.ordinal)}
