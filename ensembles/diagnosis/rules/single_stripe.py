"""Rule ``single-stripe``: many tasks write a shared file that lies on one storage target."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.counted_case import CountedCase, counted_case, counted_finding
from ensembles.diagnosis.crowded_files import WIDER, find_crowded
from ensembles.diagnosis.evidence_rule import FILE_USES, EvidenceRule
from ensembles.diagnosis.file_uses import FileUses, share_of_rows
from ensembles.diagnosis.finding import Check, Finding, NotApplicable
from ensembles.diagnosis.limits import FEW, LEAST_UNITS, LOW, MOST, MOST_RATIO, SMALL_CLASS, WIDE_BYTES
from ensembles.diagnosis.remedy import Remedy
from ensembles.model.units import count_text, number_text, share_text

if TYPE_CHECKING:
    from ensembles.run.run import Run


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
    chosen = (counts == 1) & (files["is_shared"] > 0) & (files["bytes_written"] >= WIDE_BYTES)
    chosen &= (at_once >= FEW) & (run.tasks >= LEAST_UNITS)
    if not chosen.any():
        return None
    useful = np.clip(at_once, FEW, WIDER)
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
    here = np.isin(files["file"], numbers) & (files["bytes_read"] + files["bytes_written"] >= WIDE_BYTES)
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


_LEAST_WIDER = 4
"""Targets that serve the same work at the lower end of the gain: client and network may limit it then."""


def _find(case: Case, summary: FileUses) -> Remedy | None:
    table = summary.table.columns()
    found = find_crowded(case, table)
    if found is None:
        return None
    chosen, useful = found.rows, found.at_once
    moved = np.bincount(table["file"][found.writes], table["bytes"][found.writes], len(case.run.files))
    # A target that always has work serves the same bytes, whatever the number of tasks that wait for it: with
    # more stripes each target has its part of them. No more targets help than there is work at once.
    least = min(max(useful * _LEAST_WIDER / WIDER, 1.5), found.least_at_once)
    share = share_of_rows(case, table, chosen)
    time_ns = case.rows["time_ns"] * share
    files = np.unique(table["file"][chosen])
    names = case.paths(np.where(np.isin(np.arange(len(moved)), files), moved, 0))
    tasks = len(np.unique(table["rank"][chosen]))
    files_text = count_text(len(files), "shared file")
    small = (case.rows["size"] <= SMALL_CLASS) & (case.rows["bytes"] > 0)
    of_small = float(time_ns[small].sum() / max(time_ns.sum(), 1))
    checks = [
        Check("one-target", True, f"{files_text} with a stripe count of 1"),
        Check(
            "many-writers",
            True,
            f"{tasks} tasks use them, with work for {number_text(useful)} targets at once",
        ),
    ]
    if of_small > MOST:
        text = (
            f"{share_text(of_small)} of the time is in requests below 256 KiB, which may wait "
            "for themselves only"
        )
        checks.append(Check("for-the-target", None, text))
    if not found.sure:
        text = f"{found.makers} of {tasks} tasks make the writes of all: they may be slow themselves"
        checks.append(Check("not-the-aggregators", None, text))
    saved = time_ns * (1 - 1 / useful)
    most = saved if found.sure else time_ns * (1 - 1 / WIDER)
    return Remedy(
        share > 0,
        saved if found.sure else LOW * saved,
        f"{tasks} tasks write {files_text} on one storage target{' each' * (len(files) != 1)}",
        tuple(checks),
        {
            "tasks": tasks,
            "tasks_at_once": useful,
            "files": len(files),
            "gain_assumes": f"a stripe count of {WIDER} on targets that are as fast as this one",
        },
        np.where(small | (not found.sure or least < MOST_RATIO), 0.0, time_ns * (1 - 1 / least)),
        most,
        names,
    )


rule = EvidenceRule("single-stripe", _find, FILE_USES, counted=find_counted)
