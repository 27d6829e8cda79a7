"""A shared file on one storage target, in counters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ensembles.diagnosis.counted.case import CountedCase, counted_case, counted_finding
from ensembles.diagnosis.finding import Check, Finding
from ensembles.diagnosis.rule import NotApplicable
from ensembles.model.units import number_text, share_text

if TYPE_CHECKING:
    from ensembles.run.run import Run

LEAST_TASKS = 4
LEAST_AT_ONCE = 2.0
LEAST_BYTES = 16 << 20
USUAL_TARGETS = 8
_LIKELY = 0.35
_ONE_TASK = 0.8


def find_counted(run: Run) -> Finding | None:
    """Find shared files with a stripe count of 1 that several tasks write at the same time.

    MPI-IO comes first: one stripe makes ROMIO choose one aggregator, so that POSIX shows a single task.
    """
    case = counted_case(run)
    layouts = [run.info.striping_of(run.files[number]) for number in case.files["file"].tolist()]
    if "MPI-IO" in run.counters.modules:
        collective = counted_case(run, "MPI-IO")
        layouts += [run.info.striping_of(run.files[number]) for number in collective.files["file"].tolist()]
        found = _find_in(collective, case)
    else:
        found = None
    if all(layout is None for layout in layouts):
        raise NotApplicable("the layout of the files is not known: record on Lustre, with the module LUSTRE")
    return found or _find_in(case, case)


def _find_in(case: CountedCase, posix: CountedCase) -> Finding | None:
    run, files = case.run, case.files
    layouts = [run.info.striping_of(run.files[number]) for number in files["file"].tolist()]
    counts = np.array([0 if layout is None else layout.stripe_count for layout in layouts])
    lasts_s = np.nan_to_num(files["end_s"] - files["start_s"])
    at_once = (files["read_s"] + files["write_s"]) / np.maximum(lasts_s, 1e-9)
    chosen = (counts == 1) & (files["is_shared"] > 0) & (files["bytes_written"] >= LEAST_BYTES)
    chosen &= (at_once >= LEAST_AT_ONCE) & (run.tasks >= LEAST_TASKS)
    if not chosen.any():
        return None
    useful = np.clip(at_once, LEAST_AT_ONCE, USUAL_TARGETS)
    saved = np.where(chosen, case.time_s * (1 - 1 / useful), 0.0)
    most = float(at_once[chosen].max())
    number = int(chosen.sum())
    files_text = f"{number} shared file{'s' * (number != 1)}"
    checks = [
        Check("one-target", True, f"{files_text} with a stripe count of 1"),
        Check(
            "many-writers", True, f"on average, {number_text(most)} tasks are in calls on it at the same time"
        ),
        Check(
            "others-are-faster",
            None,
            "how fast more stripes are is not in this run: record one with a stripe count of 8",
        ),
    ]
    if case.layer == "mpiio" and (alone := _aggregator(posix, files["file"][chosen])) is not None:
        checks.insert(2, alone)
    return counted_finding(
        case,
        "single-stripe",
        f"{run.tasks:,} tasks write {files_text} on one storage target{' each' * (number != 1)}",
        checks,
        {"tasks": run.tasks, "tasks_at_once": most, "files": number},
        (0.0, _LIKELY * case.gain_s(saved), case.gain_s(saved)),
        chosen,
        "write",
    )


def _aggregator(posix: CountedCase, numbers: np.ndarray) -> Check | None:
    """Say that one task moves the bytes of all, if the calls of POSIX in these files show it."""
    files = posix.files
    here = np.isin(files["file"], numbers) & (files["bytes_read"] + files["bytes_written"] >= LEAST_BYTES)
    spent_s = (files["read_s"] + files["write_s"] + files["meta_s"])[here]
    slowest_s = posix.time_s[here]
    if not len(spent_s) or slowest_s.sum() < _ONE_TASK * spent_s.sum():
        return None
    ranks = np.unique(files["slowest_rank"][here])
    who = f"task {int(ranks[0])}" if len(ranks) == 1 and ranks[0] >= 0 else "one task a file"
    return Check(
        "one-aggregator",
        True,
        f"{who} spends {share_text(slowest_s.sum() / spent_s.sum())} of the time in POSIX calls",
    )
