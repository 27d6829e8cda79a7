"""Files that a program closes in each step: what it gains if it keeps them open."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.finding import FROM_SHARE, Check
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.rule import NotApplicable
from ensembles.model.units import seconds_text

LEAST_CLOSES = 2
"""Closes of a task: one close at the end has to wait for the flush, whatever it costs."""


def keep_open(case: Case, rows: np.ndarray) -> Remedy | None:
    """A close that waits for its flush: with the file open, the flush goes on while the program computes.

    Parameters
    ----------
    case : Case
    rows : ndarray of bool, shape (n,)
        Rows of closes.

    Raises
    ------
    NotApplicable
        Calls keep the storage busy all the time, as far as the run shows.
    """
    time_ns = np.where(rows, case.rows["time_ns"], 0.0)
    closes = np.bincount(case.task, np.where(rows, case.rows["n"], 0), len(case.ranks))[case.task]
    saved = time_ns * np.maximum(1 - 1 / np.maximum(closes, 1), 0)
    gain_s = case.gain_s(saved)
    # Only where calls do not keep the storage busy anyway can it write in the meantime.
    idle_s = max(case.span_s - case.most_s(case.rows["time_ns"]), 0.0)
    likely = saved * min(idle_s / max(gain_s, 1e-12), 1.0)
    count = int(case.rows["n"][rows].sum())
    if not count or count < LEAST_CLOSES * len(np.unique(case.rows["rank"][rows])):
        return None
    at_most_s = case.most_s(time_ns)
    if case.effective_count(rows) < LEAST_CLOSES:
        raise NotApplicable(
            f"one of {count:,} closes takes most of the {seconds_text(at_most_s)} of all: whether closing "
            "costs as much in each step, a run with more steps shows",
            at_most_s,
            suspected=False,
        )
    if case.gain_s(likely) < FROM_SHARE["warning"] * case.run_s:
        raise NotApplicable(
            f"closing could cost up to {seconds_text(at_most_s)} of this run, but the cache took the bytes "
            "before, and a close that follows writes also flushes them: record a run that keeps its files "
            "open, or that syncs before it closes",
            at_most_s,
        )
    mean_s = float(time_ns.sum()) * 1e-9 / count
    checks = (
        Check(
            "each-step",
            True,
            f"{count:,} closes take {seconds_text(mean_s)} each, and files are opened again",
        ),
        Check(
            "storage-has-time",
            None,
            f"outside of I/O calls, in {seconds_text(idle_s)}, the storage could write what closes wait for; "
            "how much it would, this run does not show",
        ),
    )
    return Remedy(
        rows,
        likely,
        f"closing files takes {seconds_text(mean_s)} each time, and the program waits for the cache to empty",
        checks,
        {"closes": count, "mean_s": mean_s},
        0.5 * likely,
        saved,
    )
