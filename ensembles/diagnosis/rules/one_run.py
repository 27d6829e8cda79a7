"""Rules of causes that one run does not show: what they could cost, and what to record.

``cache-cliff``: writes that find the cache of their node full; ``interference``: other jobs load the storage;
``too-many-writers``: a file has more writers than its targets serve well; ``single-large-call``: the slowest
of few large calls decides how long a phase lasts; ``misaligned-requests``: writes to a shared file begin or
end inside a stripe.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import EvidenceRule
from ensembles.diagnosis.finding import refuse_if_it_matters
from ensembles.diagnosis.limits import MANY
from ensembles.model.calls import STORAGE
from ensembles.model.distinct import distinct_rows
from ensembles.model.levels import FEW, LITTLE
from ensembles.model.spans import find_spans, some_spans_text
from ensembles.model.units import count_text, seconds_text


@dataclass(frozen=True)
class CannotTell:
    """A cause of which one run holds no evidence that would distinguish it from others."""

    concerns: Callable[[Case], np.ndarray]  # Returns the rows of `Case.rows` that the cause can slow down
    advice: str  # What to do, in one sentence
    record: str  # What to record next, in a few words

    def __call__(self, case: Case) -> None:
        """Refuse a run of which the cause could take a notable part."""
        at_most_s = case.most_s(np.where(in_storage(case, self.concerns(case)), case.rows["time_ns"], 0.0))
        refuse_if_it_matters(at_most_s, case.run_s, f": {self.advice}", False, self.record)


def in_storage(case: Case, rows: np.ndarray) -> np.ndarray:
    """Leave out calls of libraries, where storage calls are known: their other time is not in the storage."""
    storage = rows & np.isin(case.layer, STORAGE)
    return storage if storage.any() else rows


def transfers(case: Case) -> np.ndarray:
    """Find reads and writes that move bytes."""
    rows: np.ndarray = np.isin(case.op, ("read", "write")) & (case.rows["bytes"] > 0)
    return rows


def transfers_of_shared_files(case: Case, least_tasks: int) -> np.ndarray:
    """Find transfers of tasks that use a file with others, and live while they do."""
    if case.run.info.most_alive < least_tasks:
        return np.zeros(len(case), bool)
    uses = case.evidence.uses.columns()
    tasks = np.bincount(uses["file"], minlength=1)
    ranks = np.unique(uses["rank"][tasks[uses["file"]] >= least_tasks])
    rows: np.ndarray = transfers(case) & np.isin(case.rows["rank"], ranks)
    return rows


def refuse_bytes_of_few(case: Case, moved: np.ndarray, least: float) -> None:
    """Refuse a run in which few tasks move the bytes of long phases.

    The others may have nothing to move, as while a header is written or behind aggregators. One run does not
    show whether they could have moved a part.
    """
    few = (moved > 0).any(axis=1) & ((moved > 0).mean(axis=1) < least)
    rows = np.isin(case.op, ("read", "write", "sync")) & (case.rows["depth"] == 0)
    rows &= case.of_cells(few[:, None] & (moved > 0))
    if not rows.any():
        return
    tasks = np.unique(case.rows["rank"][rows])
    refuse_if_it_matters(
        case.most_s(np.where(rows, case.rows["time_ns"], 0.0)),
        case.run_s,
        f": in some phases only {count_text(len(tasks), 'task')} ({some_spans_text(find_spans(tasks))}) of "
        f"{len(case.ranks):,} {'moves' if len(tasks) == 1 else 'move'} "
        "bytes, and one run does not show whether the others could move a part; record a run in which they "
        "do, and compare the runs (ensio compare)",
    )


def refuse_syncs_of_steps(case: Case, rows: np.ndarray, least: int) -> None:
    """Refuse a run whose tasks sync few bytes in each of many steps: the program may need that, or not."""
    steps = len(np.unique(case.rows["phase"][rows]))
    time_ns = np.where(rows, case.rows["time_ns"], 0.0)
    if steps < least:
        return
    tasks, syncs = np.unique(case.rows["rank"][rows]), int(case.rows["n"][rows].sum())
    refuse_if_it_matters(
        case.most_s(time_ns),
        case.run_s,
        f": {syncs:,} syncs of few bytes in {steps:,} phases, by {count_text(len(tasks), 'task')} "
        f"({some_spans_text(find_spans(tasks))}), take {seconds_text(1e-9 * float(time_ns.sum()) / syncs)} "
        "each, and one run does not show "
        "whether the program needs that, or what other tasks wrote to the file takes; record a run that "
        "syncs once in several steps, and compare the runs (ensio compare)",
    )


def _cached(case: Case) -> np.ndarray:
    """Find writes that a cache can take, but not all of them: a little of a node's memory is never full."""
    rows: np.ndarray = transfers(case) & (case.op == "write") & (case.layer != "stdio")
    free = case.run.surroundings().known("available_bytes").columns["available_bytes"]
    fits = len(free) > 0 and case.rows["bytes"][rows].sum() < LITTLE * free.min()
    return rows & (not (fits and case.run.info.are_local(case.run.files)))


def _served(case: Case) -> np.ndarray:
    """Find what waits for a device or a server: load of others delays syncs, opens and closes too."""
    rows: np.ndarray = transfers(case) | np.isin(case.op, ("sync", "open", "close", "meta"))
    return rows


def _of_many(case: Case) -> np.ndarray:
    """Find what writes to files of many tasks, and what makes their bytes leave the cache."""
    writes = transfers_of_shared_files(case, MANY) & (case.op == "write")
    flushes = np.isin(case.op, ("close", "sync")) & np.isin(case.rows["rank"], case.rows["rank"][writes])
    rows: np.ndarray = writes | flushes
    return rows


def _few(case: Case) -> np.ndarray:
    """Find transfers of tasks that make one or two of them before they wait for the others."""
    rows = transfers(case)
    count = case.by_cell(np.where(rows, case.rows["n"], 0))
    rows &= case.of_cells(count <= FEW) & (len(case.windows) > 1)
    return rows


def _ragged(case: Case) -> np.ndarray:
    """Find writes to files of several tasks; none without stripes, or if all are known and hold records."""
    rows: np.ndarray = transfers_of_shared_files(case, 2) & (case.op == "write")
    rows &= not case.run.info.are_local(case.run.files)
    ends, stripes = case.evidence.ends.columns(), case.evidence.stripes
    chosen = np.isin(ends["call"], np.unique(case.rows["call"][rows]))
    ends = {name: column[chosen] for name, column in ends.items()}
    files = np.unique(case.evidence.uses.columns()["file"])
    known = len(files) > 0 and int(files.max()) < len(stripes) and bool((stripes[files, 0] > 0).all())
    if known and chosen.any():
        whole = whole_in_stripes(case, ends, np.unique(stripes[files, 0]))
        rows &= bool(ends["ragged"][~whole].any())
    return rows


def whole_in_stripes(case: Case, ends: dict[str, np.ndarray], stripes: np.ndarray) -> np.ndarray:
    """Find rows of records of which each stripe holds a whole number.

    Of k records in a stripe, two ends are at ends of the stripe; records with any other offset have fewer.
    """
    fit = np.zeros(len(ends["n"]), bool)
    for call, size in distinct_rows(ends["call"], ends["size"])[0].T.tolist():
        rows = (case.rows["call"] == call) & (case.rows["size"] == size)
        mine = (ends["call"] == call) & (ends["size"] == size)
        each = max(float(case.rows["bytes"][rows].sum() / case.rows["n"][rows].sum()), 1.0)
        inside = float(np.average(ends["ragged"][mine], weights=ends["n"][mine]))
        fit[mine] = not np.any(stripes % each) and inside <= 2 - each / float(stripes.min())
    return fit


misaligned, *others = (
    EvidenceRule(name, CannotTell(concerned, advice, record))
    for name, concerned, advice, record in (
        (
            "misaligned-requests",
            _ragged,
            "records of one size have ends of one kind; record the same program with records that are "
            "multiples of the stripe size, and compare the runs (ensio compare)",
            "",
        ),
        (
            "cache-cliff",
            _cached,
            "a full cache and slow targets look alike; record a run with half the bytes for each node",
            "half the bytes for each node",
        ),
        (
            "interference",
            _served,
            "the load of other jobs is not in a trace; record the same run again, or add it to a history "
            "(ensio history)",
            "the same run again",
        ),
        (
            "too-many-writers",
            _of_many,
            "every phase has the same writers; record runs with half and a quarter of them",
            "half the writers",
        ),
        (
            "single-large-call",
            _few,
            "ensio split predicts what more and smaller calls between barriers would gain",
            "more and smaller calls",
        ),
    )
)
