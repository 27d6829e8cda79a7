"""The shared evidence of rules: tables of calls by phase, task, size, place and order, filled in one pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.model.events import OPS, Events, is_io_of_calls, op_of_calls
from ensembles.passes.start_order import order_by_start
from ensembles.passes.summary import RANK_ORDER, Summary
from ensembles.summaries.keyed_sums import KeyedSums, groups_of_rows, previous_of_group
from ensembles.summaries.nesting import Nesting

if TYPE_CHECKING:
    from ensembles.diagnosis.case import Case
    from ensembles.run.run import Run
    from ensembles.structure.phases.result import Phases

BINS_PER_OCTAVE = 4
"""Resolution of the durations by size class."""

MOST_QUARTERED = 24
"""In runs with more phases, phases are enough to compare tasks, and their quarters are not kept."""

_TABLES = ("calls", "quarters", "durations", "targets", "ends", "order", "uses", "extents")

_READ, _WRITE = OPS.index("read"), OPS.index("write")


def phases_of_calls(phases: Phases | None, chunk: Events) -> np.ndarray:
    """Return the phase of each call, from 1, or 0: computed once for all summaries of a pass."""
    if phases is None:
        return np.zeros(len(chunk), np.int64)
    make = phases.phase_index
    return chunk.remembered(("phase", id(phases)), lambda events: np.maximum(make(events), 0))


def size_classes(requested: np.ndarray) -> np.ndarray:
    """Return the number of binary digits of each size: 0 for no byte, 21 for 1 MiB."""
    return np.frexp(requested.astype(np.float64))[1].astype(np.int64)


class Evidence(Summary):
    """A mergeable summary: tables of I/O calls for the rules of the diagnosis.

    Parameters
    ----------
    phases : Phases or None
        Phases of the run.
    stripes : ndarray of int64, shape (files, 4)
        Of each file: bytes of a stripe (0: unknown), number of targets, first target, targets listed in a
        row (0: they do not follow each other).

    Attributes
    ----------
    calls : KeyedSums
        By ``phase`` (0: none), ``rank``, ``call``, ``size`` (class) and ``depth`` (0 or 1): ``n``, ``bytes``,
        ``time_ns`` without recorded inner calls, ``log_ns`` (sum of logarithms of durations), ``repeats``
        (calls like the one before: same function, same file), ``start_ns`` and ``end_ns``.
    quarters : KeyedSums
        As `calls`, also by ``quarter`` of the time that a task spends in the phase: ``n``, ``log_ns``,
        ``time_ns`` and ``bytes``. Empty if there are more than `MOST_QUARTERED` phases.
    durations : KeyedSums
        By ``call``, ``size`` and ``bin`` (of log2 ns, `BINS_PER_OCTAVE`): ``n``.
    targets : KeyedSums
        Of transfers that lie on one target, by ``call``, ``size``, ``target`` and ``rank``: ``n``,
        ``log_ns``, ``time_ns``, ``bytes``, ``least_ns`` (of the shortest call).
    ends : KeyedSums
        Of transfers with known stripes, by ``phase``, ``call``, ``size`` and ``ragged`` (ends inside a
        stripe): ``n``, ``log_ns``, ``time_ns``.
    order : KeyedSums
        Of reads with known offsets, by ``phase``, ``rank``, ``call``, ``size`` and ``jumps`` (1: it does not
        begin where the one before ended): ``n``, ``log_ns``, ``time_ns``.
    uses : KeyedSums
        Of transfers, by ``file`` and ``rank``: ``bytes``.
    extents : KeyedSums
        Of reads, by ``file`` and ``rank``: ``bytes``, ``low`` and ``high`` offset.
    """

    columns = ("rank", "thread", "call", "depth", "file", "offset", "requested", "moved", "start", "duration")
    requires = RANK_ORDER
    case: Case | None = None
    """What rules made of the filled summary (`ensembles.diagnosis.evidence_rule.case_of`)."""
    results = ("calls", "quarters", "durations", "targets", "ends", "order", "uses", "extents")

    def __init__(self, phases: Phases | None, stripes: np.ndarray) -> None:
        self._phases, self.stripes = phases, stripes
        self._nesting = Nesting()
        logs = ("n", "log_ns", "time_ns")
        keys = ("phase", "rank", "call", "size", "depth")
        self.calls = KeyedSums(keys, (*logs, "bytes", "repeats"), ("start_ns",), ("end_ns",))
        self.quarters = KeyedSums((*keys, "quarter"), (*logs, "bytes"))
        self.durations = KeyedSums(("call", "size", "bin"), ("n",))
        self.targets = KeyedSums(("call", "size", "target", "rank"), (*logs, "bytes"), ("least_ns",))
        self.ends = KeyedSums(("phase", "call", "size", "ragged"), logs)
        self.order = KeyedSums(("phase", "rank", "call", "size", "jumps"), logs)
        self.uses = KeyedSums(("file", "rank"), ("bytes",))
        self.extents = KeyedSums(("file", "rank"), ("bytes",), ("low",), ("high",))

    @classmethod
    def for_run(cls, run: Run) -> Evidence:
        """Make an empty summary for a run."""
        return cls(run.phases, stripes_of(run))

    def add(self, chunk: Events) -> None:
        """Add events of one run, those of a thread in the order of completion."""
        if not len(chunk):
            return
        inner_ns = self._nesting.inner_ns(chunk)
        io = _chosen(is_io_of_calls(chunk.calls)[chunk.call])
        rank, call = chunk.rank[io].astype(np.int64), chunk.call[io].astype(np.int64)
        if not len(rank):
            return
        own_ns = chunk.duration if inner_ns is None else np.maximum(chunk.duration - inner_ns, 0)
        file, log2 = chunk.file[io].astype(np.int64), np.log2(np.maximum(chunk.duration[io], 1))
        phase = phases_of_calls(self._phases, chunk)[io]
        size, moved = size_classes(chunk.requested[io]), np.maximum(chunk.moved[io], 0)
        group, first = groups_of_rows([rank, call])
        before = previous_of_group(group, len(first))
        again = ((before >= 0) & (file[before] == file)).astype(np.int64)
        rows: dict[str, Any] = {
            "phase": phase,
            "rank": rank,
            "call": call,
            "size": size,
            "depth": (chunk.depth[io] > 0).astype(np.int64),
            "n": np.ones(len(rank), np.int64),
            "bytes": moved,
            "time_ns": own_ns[io],
            "log_ns": log2 * np.log(2),
            "least_ns": own_ns[io],
            "repeats": again,
            "start_ns": chunk.start[io],
            "end_ns": chunk.start[io] + chunk.duration[io],
        }
        self.calls.add(rows)
        if self._phases is None or self._phases.count <= MOST_QUARTERED:
            self.quarters.add(rows | {"quarter": _quarters(phase, rank, rows["start_ns"])})
        rows["bin"] = (log2 * BINS_PER_OCTAVE).astype(np.int64)
        self.durations.add(rows)
        op, offset = op_of_calls(chunk.calls)[call], chunk.offset[io]
        order = order_by_start(chunk)
        place = None
        if order is not None:
            place = np.empty(len(chunk), np.int64)
            place[order] = np.arange(len(chunk))
            place = place[io]
        placed = _chosen(((op == _READ) | (op == _WRITE)) & (offset >= 0) & (moved > 0))
        rows = {
            name: column[placed]
            for name, column in rows.items()
            if name not in ("repeats", "depth", "end_ns")
        }
        self._add_placed(
            rows, file[placed], offset[placed], op[placed] == _READ, place if place is None else place[placed]
        )

    def _add_placed(
        self,
        rows: dict[str, Any],
        file: np.ndarray,
        offset: np.ndarray,
        read: np.ndarray,
        place: np.ndarray | None,
    ) -> None:
        """Add transfers with known offsets; `place`: where they are in the order of rank and start."""
        if not len(file):
            return
        end = offset + rows["bytes"]
        stripe, count, first, listed = self.stripes[np.minimum(file, len(self.stripes) - 1)].T
        known = np.flatnonzero(stripe > 0)
        self.uses.add({"file": file, "rank": rows["rank"], "bytes": rows["bytes"]})
        if len(known):
            width, low, high = stripe[known], offset[known], end[known]
            mine = {name: column[known] for name, column in rows.items()}
            self.ends.add(mine | {"ragged": (low % width != 0).astype(np.int64) + (high % width != 0)})
            number = low // width
            single = (count[known] == 1) | (number == (high - 1) // width)
            single &= listed[known] > 0
            target = (first[known] + number % np.maximum(count[known], 1)) % np.maximum(listed[known], 1)
            at = np.flatnonzero(single)
            self.targets.add({name: column[at] for name, column in mine.items()} | {"target": target[at]})
        if not read.any():
            return
        reads = _chosen(read) if place is None else np.flatnonzero(read)[np.argsort(place[read])]
        mine = {name: column[reads] for name, column in rows.items()}
        file, low, high = file[reads], offset[reads], end[reads]
        self.extents.add(mine | {"file": file, "low": low, "high": high})
        group, first = groups_of_rows([mine["rank"], file])
        before = previous_of_group(group, len(first))
        self.order.add(mine | {"jumps": ((before < 0) | (low != high[before])).astype(np.int64)})

    @staticmethod
    def bin_ns(number: np.ndarray) -> np.ndarray:
        """Return the duration in the middle of a bin of `durations`."""
        middle: np.ndarray = 2 ** ((number + 0.5) / BINS_PER_OCTAVE)
        return middle

    def merge(self, other: Evidence) -> None:
        """Add the evidence of other tasks of the run."""
        for name in _TABLES:
            getattr(self, name).merge(getattr(other, name))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the columns of all tables, as ``table.column``."""
        return {
            f"{table}.{name}": column
            for table in _TABLES
            for name, column in getattr(self, table).columns().items()
        }


def _quarters(phase: np.ndarray, rank: np.ndarray, start_ns: np.ndarray) -> np.ndarray:
    """Return in which quarter of the starts of its task and phase each call begins: 0 to 3."""
    group, first = groups_of_rows([phase, rank])
    low, high = start_ns[first], start_ns[first]
    np.minimum.at(low, group, start_ns)
    np.maximum.at(high, group, start_ns)
    span = (high - low + 1).astype(np.float64)
    quarter: np.ndarray = ((start_ns - low[group]) / span[group] * 4).astype(np.int64)
    return quarter


def _chosen(mask: np.ndarray) -> np.ndarray | slice:
    """Return what selects the rows of a mask; all rows by a slice, which copies nothing."""
    return slice(None) if mask.all() else np.flatnonzero(mask)


def stripes_of(run: Run) -> np.ndarray:
    """Read the layouts of the files of a run, as `Evidence` takes them.

    Returns
    -------
    ndarray of int64, shape (files, 4)
    """
    found = np.zeros((max(len(run.files), 1), 4), np.int64)
    if not any("lustre.lov" in facts for facts in run.info.file_facts.values()):
        return found
    numbers = {path: number for number, path in enumerate(run.files)}
    most = 0
    for path in run.info.file_facts:
        striping = run.info.striping_of(path)
        if striping is None or len(striping.components) != 1 or path not in numbers:
            continue
        part = striping.components[0]
        most = max([most, *part.targets])
        follows = all(b - a == 1 or b == 0 for a, b in zip(part.targets, part.targets[1:], strict=False))
        count = part.stripe_count if part.stripe_count > 0 else 0
        usable = follows and part.targets and count
        found[numbers[path]] = (
            part.stripe_bytes,
            count,
            part.targets[0] if part.targets else 0,
            int(bool(usable)),
        )
    found[:, 3] *= most + 1
    return found
