"""Rule ``single-stripe``: many tasks write a shared file that lies on one storage target."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import SMALL_CLASS, Case
from ensembles.diagnosis.counted.single_stripe import find_counted
from ensembles.diagnosis.file_uses import FileUses, share_of_rows, tasks_at_once
from ensembles.diagnosis.finding import Check
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.rule import NotApplicable
from ensembles.diagnosis.rule_with_summary import RuleWithSummary
from ensembles.model.units import count_text

LEAST_TASKS = 4
LEAST_AT_ONCE = 2.0
LEAST_BYTES = 16 << 20
WIDER = 8
"""Stripes of the remedy whose gain is predicted."""

_MOST_SMALL = 0.5
_UNSURE = 0.5  # of the gain, where it is between nothing and all
_LEAST_WIDER = 4
"""Targets that serve the same work at the lower end of the gain: client and network may limit it then."""

ADVICE = (
    "stripe the folder of the file before it is written: lfs setstripe -c -1 (all targets) or -c 8 and "
    "more for files of many tasks (MPI-IO: striping_factor, HDF5: the same hint by H5Pset_fapl_mpio), or "
    "write a file for each task or node. Administrator: a progressive layout as default (lfs setstripe "
    "-E 64M -c 1 -E -1 -c 8)"
)


def _find(case: Case, summary: FileUses) -> Remedy | None:
    layouts = [case.run.info.striping_of(path) for path in case.run.files]
    counts = np.array([0 if layout is None else layout.stripe_count for layout in layouts])
    if not counts.any():
        raise NotApplicable(
            "the layout of the files is not known: record the run on Lustre, with the client's extended "
            "attributes"
        )
    table = summary.table.columns()
    layer, op = (
        np.array([getattr(call, name) for call in case.run.calls])[table["call"]] for name in ("layer", "op")
    )
    # What a write leaves in the cache, a close, a sync or the next read waits for.
    uses = (layer == "posix") & np.isin(op, ("write", "read", "sync", "close")) & (counts[table["file"]] == 1)
    writes = uses & (op == "write") & (table["bytes"] > 0)
    if not writes.any():
        return None
    number, written = table["file"][uses], table["file"][writes]
    users = np.bincount(np.unique(np.stack([number, table["rank"][uses]]), axis=1)[0], minlength=len(counts))
    moved = np.bincount(written, table["bytes"][writes], len(counts))
    shared = (users >= LEAST_TASKS) & (moved >= LEAST_BYTES)
    # One large write is for as many targets as it has stripes.
    stripes = np.array([layout.stripe_bytes if layout is not None else 0 for layout in layouts])
    of_call = moved / np.maximum(np.bincount(written, table["n"][writes], len(counts)), 1)
    at_once, busy = tasks_at_once(table, uses)
    # In a collective call, the bytes of all tasks are there at once, whoever makes the storage calls.
    together = _bytes_of_collectives(case, table, len(counts))
    by_tasks, at_once = (
        at_once * np.clip(each / np.maximum(stripes, 1), 1, WIDER)[number]
        for each in (of_call, np.maximum(of_call, together))
    )
    crowded = shared[number] & (at_once >= LEAST_AT_ONCE)
    if not crowded.any():
        return None
    makers = len(np.unique(table["rank"][writes & shared[table["file"]]]))
    sure = makers >= LEAST_TASKS and bool(
        np.average(by_tasks[crowded], weights=busy[crowded]) >= LEAST_AT_ONCE
    )
    chosen = uses.copy()
    chosen[uses] = crowded
    # A target that always has work serves the same bytes, whatever the number of tasks that wait for it: with
    # more stripes each target has its part of them. No more targets help than there is work at once.
    useful = float(np.clip(np.average(at_once[crowded], weights=busy[crowded]), 2.0, WIDER))
    least = max(useful * _LEAST_WIDER / WIDER, 1.5)
    share = share_of_rows(case, table, chosen)
    time_ns = case.rows["time_ns"] * share
    files = np.unique(table["file"][chosen])
    names = tuple(case.run.files[each] for each in files[np.argsort(-moved[files])].tolist())
    tasks = len(np.unique(table["rank"][chosen]))
    files_text = count_text(len(files), "shared file")
    small = (case.rows["size"] <= SMALL_CLASS) & (case.rows["bytes"] > 0)
    of_small = float(time_ns[small].sum() / max(time_ns.sum(), 1))
    checks = [
        Check("one-target", True, f"{files_text} with a stripe count of 1"),
        Check("many-writers", True, f"{tasks} tasks use them, with work for {useful:.3g} targets at once"),
    ]
    if of_small > _MOST_SMALL:
        text = f"{of_small:.0%} of the time is in requests below 256 KiB, which may wait for themselves only"
        checks.append(Check("for-the-target", None, text))
    if not sure:
        text = f"{makers} of {tasks} tasks make the writes of all: they may be slow themselves"
        checks.append(Check("not-the-aggregators", None, text))
    saved = time_ns * (1 - 1 / useful)
    return Remedy(
        share > 0,
        saved if sure else _UNSURE * saved,
        f"{tasks} tasks write {files_text} on one storage target{' each' * (len(files) != 1)}",
        ADVICE,
        tuple(checks),
        {
            "tasks": tasks,
            "tasks_at_once": useful,
            "files": len(files),
            "gain_assumes": f"a stripe count of {WIDER} on targets that are as fast as this one",
        },
        np.where(small | (not sure), 0.0, time_ns * (1 - 1 / least)),
        saved,
        names,
        at_targets=True,
    )


def _bytes_of_collectives(case: Case, table: dict[str, np.ndarray], files: int) -> np.ndarray:
    """Return the bytes that all tasks together write in one collective call on each file; 0: in none."""
    names = np.array([call.name for call in case.run.calls])[table["call"]]
    rows = np.char.startswith(names, "MPI_File_write") & np.char.endswith(names, "_all")
    moved, calls = (np.bincount(table["file"][rows], table[name][rows], files) for name in ("bytes", "n"))
    found: np.ndarray = len(case.ranks) * moved / np.maximum(calls, 1)
    return found


rule = RuleWithSummary(
    "single-stripe", _find, "the writes to each file", counted=lambda run: find_counted(run, ADVICE)
)
