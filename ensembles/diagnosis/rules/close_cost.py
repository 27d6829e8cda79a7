"""Rule ``close-cost``: closing a file takes longer than writing what is left in the cache."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import EvidenceRule
from ensembles.diagnosis.finding import FROM_SHARE, Check
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.rule import NotApplicable
from ensembles.model.units import seconds_text

LEAST_CLOSES = 2
"""Closes of a task: one close at the end has to be, whatever it costs."""

_MOST_FLUSH = 0.5

ADVICE = (
    "open the file once and keep it open over the steps; where that is not possible, let fewer tasks close "
    "it (one file for a node), or sync before the close in a place where the program does not wait"
)


def _find(case: Case) -> Remedy | None:
    rows = (case.op == "close") & (case.layer == "posix")
    if case.run.counters is not None and not rows.any():
        raise NotApplicable("DXT traces no closes: record the run with ensio")
    at_most_s = case.most_s(np.where(rows, case.rows["time_ns"], 0.0))
    if at_most_s < FROM_SHARE["warning"] * case.span_s:
        return None
    writes = (case.op == "write") & (case.layer == "posix") & (case.rows["bytes"] > 0)
    fast = np.where(writes, case.absorbed_share, 0.0)
    closes = case.by_cell(np.where(rows, case.rows["n"], 0))
    absorbed = _left_to_close(
        case.by_cell(np.where(writes, case.rows["bytes"] * fast, 0.0)), _synced(case, writes), closes > 0
    )
    slow_bytes = (np.where(writes, case.rows["bytes"] * (1 - fast), 0.0)).sum()
    slow_ns = np.where(writes & (fast < 1), case.rows["time_ns"], 0).sum()
    if absorbed.sum() > 0 and slow_bytes < absorbed.sum():
        raise NotApplicable(
            f"closing could cost up to {seconds_text(at_most_s)} of this run, but the cache took the bytes "
            "before, and a close that follows writes also flushes them: record a run that keeps its files "
            "open, or that syncs before it closes"
        )
    rate = max(slow_bytes, 1) / max(slow_ns, 1)
    flush_ns = case.of_cells(np.divide(absorbed, rate, out=np.zeros_like(absorbed), where=absorbed > 0))
    opens = (case.op == "open") & (case.layer == "posix")
    usual_ns = case.rows["time_ns"][opens].sum() / max(case.rows["n"][opens].sum(), 1)
    number = np.maximum(case.of_cells(closes), 1)
    own = case.rows["time_ns"] - case.rows["n"] * usual_ns
    saved = np.where(rows, np.maximum(own - flush_ns * case.rows["n"] / number, 0.0), 0.0)
    low = np.where(rows, np.maximum(own - 2 * flush_ns * case.rows["n"] / number, 0.0), 0.0)
    if saved.sum() <= (1 - _MOST_FLUSH) * case.rows["time_ns"][rows].sum():
        return None
    count, mean_s = int(case.rows["n"][rows].sum()), case.rows["time_ns"][rows].sum() * 1e-9
    mean_s /= max(count, 1)
    if count < LEAST_CLOSES * len(np.unique(case.rows["rank"][rows])):
        return None
    checks = (
        Check(
            "not-the-flush",
            True,
            f"{count:,} closes take {seconds_text(mean_s)} each; writing what the cache holds would take "
            f"{seconds_text(float(flush_ns[rows].mean()) * 1e-9)}",
        ),
        Check("not-the-server", True, f"an open of this run takes {seconds_text(usual_ns * 1e-9)}"),
    )
    return Remedy(
        rows,
        saved,
        f"closing files takes {seconds_text(mean_s)} each time, beyond the writing of their last bytes",
        ADVICE,
        checks,
        {"closes": count, "mean_s": mean_s},
        low,
        case.spread_ns(np.where(rows, np.maximum(own, 0.0), 0.0)),
    )


def _left_to_close(absorbed: np.ndarray, synced: np.ndarray, closed: np.ndarray) -> np.ndarray:
    """Add up what the cache took since the last close or sync of a task, at each close."""
    left, kept = np.zeros_like(absorbed), np.zeros(absorbed.shape[1])
    for window in range(len(absorbed)):
        kept = np.where(synced[window], 0.0, kept + absorbed[window])
        left[window] = np.where(closed[window], kept, 0.0)
        kept = np.where(closed[window], 0.0, kept)
    return left


def _synced(case: Case, writes: np.ndarray) -> np.ndarray:
    """Find the cells whose last sync comes after the last write."""
    last = []
    for rows in (writes, (case.op == "sync") & (case.layer == "posix")):
        end = np.zeros(case.present.shape)
        cell = case.cell_of_rows(rows)
        np.maximum.at(end, cell, case.rows["end_ns"][rows])
        last.append(end)
    synced: np.ndarray = last[1] > last[0]
    return synced


rule = EvidenceRule("close-cost", _find)
