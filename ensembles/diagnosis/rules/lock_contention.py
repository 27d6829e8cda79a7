"""Rule ``lock-contention``: nodes take the lock of the same stripes from each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ensembles.diagnosis.case import Case, p_of_chance
from ensembles.diagnosis.evidence import phases_of_calls, size_classes, stripes_of
from ensembles.diagnosis.evidence_rule import EvidenceRule
from ensembles.diagnosis.finding import Check, NotApplicable
from ensembles.diagnosis.limits import LEAST_CALLS, LEVEL, MOST_RATIO
from ensembles.diagnosis.remedy import Remedy
from ensembles.model.distinct import distinct_rows
from ensembles.model.events import OPS, Events
from ensembles.model.units import number_text, seconds_text
from ensembles.passes.group import SummaryRequest
from ensembles.passes.summary import ANY_ORDER, Summary

if TYPE_CHECKING:
    from ensembles.run.run import Run
    from ensembles.structure.phases.result import Phases


MOST_ROWS = 1 << 17

_NAMES = ("file", "stripe", "start", "rank", "phase", "call", "size", "ragged", "duration")


class StripeWrites(Summary):
    """A mergeable summary: the writes to some stripes of files whose layout is known.

    Stripes are chosen by a hash of file and number, so that all parts of a run choose the same ones. If too
    many writes are held, the share of the stripes is halved.

    Parameters
    ----------
    stripe_bytes : ndarray of int64, shape (files,)
        Bytes of a stripe of each file; 0: unknown.

    Attributes
    ----------
    share : float
        Share of the stripes that is held.
    """

    columns = ("rank", "call", "file", "offset", "requested", "moved", "start", "duration")
    requires = ANY_ORDER
    meaning = 1

    def __init__(self, phases: Phases | None, stripe_bytes: np.ndarray) -> None:
        self._phases, self._stripe_bytes = phases, stripe_bytes
        self.share = 1.0
        self._parts: list[np.ndarray] = []

    @classmethod
    def for_run(cls, run: Run) -> StripeWrites:
        """Make an empty summary for a run."""
        return cls(run.phases, stripes_of(run)[:, 0])

    def add(self, chunk: Events) -> None:
        """Add events."""
        if not len(chunk):
            return
        chosen = (chunk.op == OPS.index("write")) & (chunk.offset >= 0) & (chunk.moved > 0)
        chosen &= self._stripe_bytes[np.minimum(chunk.file, len(self._stripe_bytes) - 1)] > 0
        at = np.flatnonzero(chosen)
        if not len(at):
            return
        phase = phases_of_calls(self._phases, chunk)[at]
        writes = chunk[at]
        width = self._stripe_bytes[writes.file]
        low, high = writes.offset, writes.offset + writes.moved
        ragged = (low % width != 0).astype(np.int64) + (high % width != 0)
        columns = (writes.file, low // width, writes.start, writes.rank, phase, writes.call)
        rows = np.stack(
            [
                *(column.astype(np.int64) for column in columns),
                size_classes(writes.requested),
                ragged,
                writes.duration,
            ]
        )
        last = (high - 1) // width
        second = rows[:, last != rows[1]]
        second[1] = last[last != rows[1]]
        self._keep(np.concatenate([rows, second], axis=1))

    def merge(self, other: StripeWrites) -> None:
        """Add the writes of other calls."""
        self.share = min(self.share, other.share)
        self._parts += other._parts
        self._keep(np.empty((len(_NAMES), 0), np.int64))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the writes, sorted by file, stripe and start."""
        rows = self._held()
        rows = rows[:, np.lexsort(rows[[3, 2, 1, 0]])]
        return dict(zip(_NAMES, rows, strict=True))

    def _held(self) -> np.ndarray:
        empty = np.empty((len(_NAMES), 0), np.int64)
        rows = np.concatenate([empty, *self._parts], axis=1)
        return rows[:, _lot(rows[0], rows[1]) < self.share]

    def _keep(self, rows: np.ndarray) -> None:
        self._parts.append(rows[:, _lot(rows[0], rows[1]) < self.share])
        if sum(part.shape[1] for part in self._parts) <= MOST_ROWS:
            return
        self._parts = [self._held()]
        while self._parts[0].shape[1] > MOST_ROWS and self.share > 2.0**-40:
            self.share /= 2
            self._parts = [self._held()]


def _lot(file: np.ndarray, stripe: np.ndarray) -> np.ndarray:
    """Compute a reproducible random number from 0 to 1 for each stripe (finaliser of SplitMix64)."""
    x = (stripe.astype(np.uint64) << np.uint64(20)) ^ file.astype(np.uint64)
    x = (x + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    lot: np.ndarray = (x ^ (x >> np.uint64(31))) / 2.0**64
    return lot


REQUEST = SummaryRequest(StripeWrites.for_run, StripeWrites.columns)
"""What rules need, to get it filled."""


def alternation(
    rows: dict[str, np.ndarray], ranks: np.ndarray, nodes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Compare writes to a stripe that another node wrote before with those after one of the same node."""
    task = np.searchsorted(ranks, rows["rank"])
    same = np.zeros(len(task), bool)
    same[1:] = (rows["file"][1:] == rows["file"][:-1]) & (rows["stripe"][1:] == rows["stripe"][:-1])
    before = np.concatenate([[0], task[:-1]])
    # A task that goes on in its stripe keeps the lock and its page: it compares with nothing.
    follows = np.flatnonzero(same & (before != task))
    mine, theirs = task[follows], before[follows]
    taken = nodes[mine] != nodes[theirs]
    if not len(follows) or taken.all():
        return follows, taken, 0.0, 1.0
    _, group = distinct_rows(*(rows[name][follows] for name in ("phase", "call", "size", "ragged")))
    value = np.log(np.maximum(rows["duration"][follows], 1))
    value = value - (np.bincount(group, value) / np.bincount(group))[group]
    effect = _effect(value, taken)

    def drawn(rng: np.random.Generator) -> float:
        other = rng.permutation(nodes)
        return _effect(value, other[mine] != other[theirs])

    return follows, taken, effect, p_of_chance(effect, drawn)


def _effect(value: np.ndarray, taken: np.ndarray) -> float:
    return float(value[taken].mean() - value[~taken].mean()) if taken.any() and not taken.all() else 0.0


def _check(run: Run) -> None:
    if not any("lustre.lov" in facts for facts in run.info.file_facts.values()):
        raise NotApplicable("the stripes of the files are not known: record the run on Lustre")
    hosts = {process.host for process in run.info.processes if process.host}
    if not hosts:
        raise NotApplicable("the nodes of the tasks are not known: record the run with ensio")
    if len(hosts) < 2:
        raise NotApplicable("all tasks are on one node, which holds its locks: record a run on several nodes")


def _find(case: Case, summary: StripeWrites) -> Remedy | None:
    nodes = case.nodes_of_tasks()
    if nodes is None:
        raise NotApplicable("the nodes of some tasks are not known: record all tasks with ensio")
    rows = summary.to_arrays()
    mine = case.calls_on_files[rows["call"]]
    rows = {name: column[mine] for name, column in rows.items()}
    follows, taken, effect, p = alternation(rows, case.ranks, nodes)
    if len(follows) < LEAST_CALLS:
        return None
    if taken.all():
        raise NotApplicable(
            "every write follows one of another node in its stripe, and none shows what a write without "
            "a lock takes: record a run with several tasks on each node"
        )
    factor = float(np.exp(effect))
    if p > LEVEL or factor < MOST_RATIO:
        return None
    task = np.searchsorted(case.ranks, rows["rank"])
    writes = (case.op == "write") & case.on_files & np.isin(case.rows["call"], rows["call"])
    whole = np.bincount(task, minlength=len(case.ranks))
    part = np.bincount(task[follows][taken], minlength=len(case.ranks)) / np.maximum(whole, 1)
    share = np.where(writes, part[case.task], 0.0)
    saved = case.rows["time_ns"] * share * (1 - 1 / factor)
    files = np.unique(rows["file"][follows[taken]])
    error_s = case.run.info.clock_error_s
    usual_s = float(np.median(rows["duration"])) * 1e-9
    clocks = None if error_s is None else error_s < usual_s or None
    checks = (
        Check(
            "not-by-chance",
            f"{int(taken.sum()):,} of {len(taken):,} writes follow one of another node in their stripe: "
            f"permutation of tasks over nodes, p = {p:.2g}",
        ),
        Check("not-the-alignment", "compared are writes of one size with as many ends inside a stripe"),
        Check(
            "clocks",
            f"clocks of nodes agree to {'an unknown time' if error_s is None else seconds_text(error_s)}; "
            f"a write takes {seconds_text(usual_s)}",
            clocks,
        ),
    )
    return Remedy(
        share > 0,
        saved,
        f"writes to a stripe that another node wrote before take {number_text(factor)} times as long",
        checks,
        {"slowdown": factor, "p": p, "stripes_sampled_share": summary.share, "writes": int(taken.sum())},
        0.6 * saved,
        1.2 * saved,
        tuple(case.run.files[number] for number in files.tolist()),
    )


rule = EvidenceRule("lock-contention", _find, {"stripe-writes": REQUEST}, _check)
