"""Rule ``sync-per-write``: a program waits for the disk after every few writes."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import FILE_USES, EvidenceRule
from ensembles.diagnosis.file_uses import FileUses, share_of_rows
from ensembles.diagnosis.finding import Check, NotApplicable
from ensembles.diagnosis.limits import AGAIN, LARGE_BYTES, LEAST_PHASES
from ensembles.diagnosis.path_calls import MOVING
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.rules.one_run import refuse_syncs_of_steps
from ensembles.model.distinct import distinct_rows
from ensembles.model.units import bytes_text, number_text, seconds_text


def of_synced_files(case: Case, uses: FileUses) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Compute which share of each row goes to files that its task syncs, and which of syncs could be fewer.

    Where no file of a sync is known, all of it. A file that is whole, and moved to its place as often as it
    is synced, needs these syncs. If it is written anew again and again, with few bytes, they are a habit.
    """
    table = uses.table.columns()
    syncs, moves, writes = (
        (case.calls_on_files & wanted)[table["call"]]
        for wanted in (case.ops == "sync", np.isin(case.names, list(MOVING)), case.ops == "write")
    )
    pairs = distinct_rows(table["file"], table["rank"])[1]
    synced, moved = (np.bincount(pairs, table["n"] * rows) for rows in (syncs, moves))
    if not synced.any():
        whole = dict.fromkeys(("n", "bytes", "time_ns"), np.ones(len(case)))
        return whole, whole
    written = np.bincount(pairs, table["bytes"] * writes)
    anew = (synced >= LEAST_SYNCS_WITHOUT_PHASES) & (written <= LARGE_BYTES * synced)
    many = (synced > moved) | anew
    to_files, needed = ((synced > 0) & many)[pairs], syncs & ~many[pairs]
    return (
        {what: share_of_rows(case, table, to_files, of=what) for what in ("n", "bytes")},
        {what: 1 - share_of_rows(case, table, needed, of=what) for what in ("n", "time_ns")},
    )


def how_often(writes_per_sync: float, bytes_per_sync: float | None = None) -> str:
    """Say how many writes there are for a sync, or syncs for a write.

    Examples
    --------
    >>> from ensembles.diagnosis.rules.sync_per_write import how_often
    >>> how_often(3.0), how_often(300 / 301), how_often(0.5, 131072)
    ('a sync after every 3 writes', 'a sync after every write', '2 syncs after every write of 256 KiB')
    """
    syncs = number_text(1 / writes_per_sync)
    if writes_per_sync >= 1 or syncs == "1":
        writes = number_text(writes_per_sync)
        after = "write" if "1" in (writes, syncs) else f"{writes} writes"
        size = "" if bytes_per_sync is None else f" ({bytes_text(round(bytes_per_sync))})"
        return f"a sync after every {after}{size}"
    size = "" if bytes_per_sync is None else f" of {bytes_text(round(bytes_per_sync / writes_per_sync))}"
    return f"{syncs} syncs after every write{size}"


LEAST_SYNCS_WITHOUT_PHASES = 12
"""Without such phases, a program may sync once in each of its steps: ten checkpoints are not a habit."""


RECORDS, STEPS = "after many records, such as at the end of a step", "in several steps"
ADVICE = (
    "sync less often: once {}, or when the file is closed; a checkpoint that is renamed when it is whole "
    "needs one fsync (SQLite: journal_mode=WAL, synchronous=NORMAL)"
)


def _find(case: Case, uses: FileUses) -> Remedy | None:
    syncs = (case.op == "sync") & case.on_files
    posix = case.run.counters.modules.get("POSIX")
    counted = sum(int(posix.totals.get(name) or 0) for name in ("FSYNCS", "FDSYNCS")) if posix else 0
    if counted and not syncs.any():
        raise NotApplicable(
            f"the log counts {counted:,} syncs, and DXT traces none of them: record the run with ensio"
        )
    writes = (case.op == "write") & case.on_files
    # What goes to files that are never synced does not wait for these syncs.
    synced, spare = of_synced_files(case, uses)
    calls, time_ns = (np.where(syncs, case.rows[name] * spare[name], 0.0) for name in ("n", "time_ns"))
    syncs &= calls > 0
    count = case.by_cell(calls)
    written = case.by_cell(np.where(writes, case.rows["n"] * synced["n"], 0))
    least = LEAST_PHASES if case.phases_are_steps else LEAST_SYNCS_WITHOUT_PHASES
    # A task that writes other things too (a header) syncs as often as the median of its window.
    pairs = zip(written, (count >= least) & (written > 0), strict=True)
    usual = np.array([[np.median(row[mine]) if mine.any() else np.inf] for row, mine in pairs])
    moved = case.by_cell(np.where(writes, case.rows["bytes"] * synced["bytes"], 0))
    few = (np.minimum(written, usual) <= AGAIN * count) | (moved <= LARGE_BYTES * count)
    often = (count >= least) & (written > 0) & few
    rows = syncs & case.of_cells(often)
    if not rows.any():
        few = (count > 0) & (written > 0) & (moved <= LARGE_BYTES)
        refuse_syncs_of_steps(case, syncs & case.of_cells(few), LEAST_SYNCS_WITHOUT_PHASES)
        return None
    number = case.of_cells(np.maximum(count, 1))
    saved = np.where(rows, time_ns * (1 - 1 / number), 0.0)
    bytes_ = case.of_cells(moved)
    # What a sync no longer waits for, the last one still has to write: at best at the fastest rate.
    syncs_ns = case.of_cells(case.by_cell(time_ns))
    rate = bytes_[rows] / np.maximum(syncs_ns[rows], 1)
    moving_ns = bytes_ / max(float(np.quantile(rate, 0.95)), 0.1)
    low = np.maximum(saved - np.where(rows, np.minimum(moving_ns, 0.5 * saved), 0.0), 0.0)
    total, time_s = round(calls[rows].sum()), float(time_ns[rows].sum()) * 1e-9
    ratio, each = (float(values[often].sum() / count[often].sum()) for values in (written, moved))
    often_text = how_often(ratio, each)
    checks = (
        Check("after-few-writes", often_text),  # the title says it, and how many
        Check(
            "bytes-stay",
            "the bytes still have to be written by the last sync: one size of steps cannot show how "
            "much of the time is theirs (record a run with fewer syncs)",
            None,
        ),
    )
    return Remedy(
        rows,
        saved,
        f"{often_text}: {total:,} syncs, {seconds_text(time_s / total)} each",
        checks,
        {"syncs": total, "writes_per_sync": ratio, "bytes_per_sync": each},
        low,
        advice=ADVICE.format(STEPS if each >= LARGE_BYTES else RECORDS),
    )


rule = EvidenceRule("sync-per-write", _find, FILE_USES, summed=_find)
