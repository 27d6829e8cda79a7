"""MADbench of figures 4 and 5: 256 tasks write, update and read eight matrices of 300 MB per task."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ensembles.api.run import Run
from testbed.reproduce.figure import Figure, near
from testbed.reproduce.runs import Runs

CASE = "MADbench"
TIMES_S = {"franklin": 2200, "franklin-patched": 520, "jaguar": 275}
SLOW_S = 30
"""Shortest slow read of the paper."""
READ_PEAK_S = 15
WRITE_PEAKS = 4
"""Strong peaks of the writes, on both machines."""
HARMED = range(4, 9)
"""Ordinals of the slow reads in the paper; 9 to 16 are those of the last phase."""


def figures(runs: Runs) -> Iterator[Figure]:
    """Yield the times of the three runs, the reads by ordinal, and the peaks."""
    made = {machine: runs.simulate("madbench", machine) for machine in TIMES_S}
    for machine, paper_s in TIMES_S.items():
        yield near(CASE, f"run on {machine}", "fitted", paper_s, made[machine].span_s)

    reads_s, patched_s = (_reads_s(made[name].run) for name in ("franklin", "franklin-patched"))
    slow = [ordinal for ordinal, durations_s in reads_s.items() if (durations_s > SLOW_S).mean() > 0.05]
    # The rule of the client is the paper's: recognised at the third, harmful while writes fill the memory.
    for what, ordinal, ours in (
        ("first", HARMED[0], min(slow, default=0)),
        ("last", HARMED[-1], max(slow, default=0)),
    ):
        what = f"{what} read that is often slow"
        yield Figure(CASE, what, "by construction", ordinal, ours, ordinal, ordinal, "")
    medians_s = [float(np.median(reads_s[ordinal])) for ordinal in HARMED]
    rises, all_rise = int(np.sum(np.diff(medians_s) > 0)), len(HARMED) - 1
    what = "increases of the median from read 4 to read 8"
    yield Figure(CASE, what, "by construction", all_rise, rises, all_rise, all_rise, "")
    harmed_s = np.concatenate([reads_s[ordinal] for ordinal in HARMED])
    yield near(CASE, "slowest read", "fitted", 500, float(harmed_s.max()))
    fastest_s = float(harmed_s[harmed_s > READ_PEAK_S].min())
    yield near(CASE, "fastest of the slow reads", "fitted", SLOW_S, fastest_s)

    whole_s, whole_patched_s = (np.concatenate(list(of.values())) for of in (reads_s, patched_s))
    # "Centered around the peak at 15 seconds".
    centre_s = float(np.median(whole_s[whole_s < SLOW_S]))
    yield near(CASE, "centre of the reads that are not slow", "predicted", READ_PEAK_S, centre_s)
    # The model of the patch has no fault of reads, and neither has Jaguar's, whose writes are Franklin's.
    last, patched = (np.median(np.concatenate([of[k] for k in range(9, 17)])) for of in (reads_s, patched_s))
    what = "reads of the last phase, ratio to the patched run"
    yield near(CASE, what, "by construction", 1, float(last / patched), "")
    share = 100 * float((whole_patched_s > SLOW_S).mean())
    yield Figure(CASE, "slow reads of the patched run", "by construction", np.nan, share, 0, 1, "%")
    jaguar_s = np.concatenate(list(_reads_s(made["jaguar"].run).values()))
    share = 100 * float((jaguar_s > SLOW_S).mean())
    yield Figure(CASE, "slow reads on Jaguar", "by construction", np.nan, share, 0, 1, "%")
    spread = _upper(whole_s) / _upper(jaguar_s)
    what = "spread of the reads on Franklin, relative to Jaguar (much larger)"
    yield Figure(CASE, what, "by construction", np.nan, spread, 2, np.inf, "")
    writes_s = {name: made[name].run.select(op="write").duration / 1e9 for name in ("franklin", "jaguar")}
    alike = _upper(writes_s["franklin"]) / _upper(writes_s["jaguar"])
    yield near(CASE, "spread of the writes on Franklin, relative to Jaguar", "by construction", 1, alike, "")
    # That the rest of a burst is a burst again was put into the model for these peaks.
    for machine in ("franklin", "jaguar"):
        peaks = len(made[machine].run.ensemble(op="write").modes().modes)
        what = f"peaks of the writes on {machine}"
        yield Figure(CASE, what, "fitted", WRITE_PEAKS, peaks, WRITE_PEAKS, WRITE_PEAKS, "")


def _upper(durations_s: np.ndarray) -> float:
    """Return the ratio of the 90 % quantile to the median."""
    return float(np.quantile(durations_s, 0.9) / np.median(durations_s))


def _reads_s(run: Run) -> dict[int, np.ndarray]:
    """Return the durations in seconds by ordinal."""
    reads = run.select(op="read")
    assert reads.ordinal is not None
    return {int(k): reads.duration[reads.ordinal == k] / 1e9 for k in np.unique(reads.ordinal)}
