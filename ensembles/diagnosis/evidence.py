"""The shared evidence of rules: tables of calls by phase, task, size, place and order, filled in one pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ensembles import _compiled
from ensembles.model.calls import STORAGE
from ensembles.model.distinct import numbered_together
from ensembles.model.events import Call, Events, is_io_of_calls, of_calls
from ensembles.passes.start_order import order_by_start
from ensembles.passes.summary import RANK_ORDER, Summary
from ensembles.run.selection import Selection
from ensembles.summaries.keyed_sums import KeyedSums
from ensembles.summaries.nesting import Nesting

if TYPE_CHECKING:
    from ensembles.diagnosis.finding import Check
    from ensembles.diagnosis.with_meetings import OfSums
    from ensembles.run.run import Run
    from ensembles.structure.phases.result import Phases


T = TypeVar("T")

BINS_PER_OCTAVE = 4
"""Resolution of the durations by size class."""

MOST_QUARTERED = 24
"""In runs with more phases, phases are enough to compare tasks, and their quarters are not kept."""

_TABLES = ("calls", "quarters", "durations", "targets", "ends", "order", "uses")

_SUMMED_COLUMNS = ("rank", "call", "depth", "file", "offset", "requested", "moved", "start", "duration")
ROW = ("phase", "rank", "call", "size", "depth")
_SUMS = ("n", "time_ns", "bytes")
_FOUND = {
    "calls": (*ROW, *_SUMS, "repeats", "start_ns", "end_ns", "log_ns"),
    "quarters": (*ROW, "quarter", *_SUMS, "log_ns"),
    "ends": ("call", "size", "ragged", "n"),
    "order": (*ROW, "jumps", *_SUMS, "log_ns"),
    "durations": ("call", "size", "bin", "n"),
    "uses": ("file", "rank", "bytes"),
    "targets": ("call", "size", "target", "rank", *_SUMS, "least_ns", "log_ns"),
}
"""Rows of numbers of each table that `_compiled.sum_evidence` returns."""


def phases_of_calls(phases: Phases | None, chunk: Events) -> np.ndarray:
    """Return the phase of each call, from 1, or 0: computed once for all summaries of a pass."""
    if phases is None:
        return np.zeros(len(chunk), np.int64)
    make = phases.phase_index
    return chunk.remembered(("phase", id(phases)), lambda events: np.maximum(make(events), 0))


@of_calls
def kinds_of_calls(calls: Sequence[Call]) -> np.ndarray:
    """Return which functions are I/O, read and write: bits 0 to 2 of uint8, shape (len(calls),)."""
    ops = {"read": 2, "write": 4}
    kinds = zip(calls, is_io_of_calls(calls).tolist(), strict=True)
    return np.array([is_io + ops.get(call.op, 0) for call, is_io in kinds], np.uint8)


_LOWEST = (STORAGE, ("mpiio",), ("hdf5", "pnetcdf"), ("netcdf",))
_DEVICE = ("posix", "mpiio")  # layers whose syncs wait for a device


def on_files(calls: Sequence[Call], used: np.ndarray) -> np.ndarray:
    """Return the functions of the lowest layer whose transfers were recorded: bool, shape (len(calls),).

    What a rule says of writes, syncs and closes holds of these, whichever layer they are of. In collective
    transfers, tasks wait for each other too, and a stream that is flushed waits for no device. `used` are
    the numbers of the functions that the run called.
    """
    moving = {calls[at].layer for at in used.tolist() if calls[at].op in ("read", "write")}
    lowest = next((layers for layers in _LOWEST if moving.intersection(layers)), STORAGE)
    waits = [
        (call.op == "sync" and call.layer not in _DEVICE) or call.name.endswith("_all") for call in calls
    ]
    found: np.ndarray = np.array([call.layer in lowest for call in calls], bool) & ~np.array(waits, bool)
    return found


def size_classes(requested: np.ndarray) -> np.ndarray:
    """Return the number of binary digits of each size: 0 for no byte, 21 for 1 MiB."""
    return np.frexp(requested.astype(np.float64))[1].astype(np.int64)


def classed_bytes(chunk: Events) -> np.ndarray:
    """Return the bytes by whose size calls are classed: those requested, or 0 of calls that failed.

    A failed transfer moved no byte, so that it is not one of the requests of its size.
    """
    failed = chunk.moved < 0
    return np.where(failed, 0, chunk.requested) if failed.any() else chunk.requested


class Evidence(Summary):
    """A mergeable summary: tables of I/O calls for the rules of the diagnosis.

    Parameters
    ----------
    stripes : ndarray of int64, shape (files, 4)
        Of each file: bytes of a stripe (0: unknown), number of targets, first target, targets listed in a
        row (0: they do not follow each other).

    Attributes
    ----------
    calls : KeyedSums
        By ``phase`` (0: none), ``rank``, ``call``, ``size`` (binary digits: 0 for no byte and for failed
        calls, 21 for 1 MiB) and ``depth`` (0 or 1): ``n``, ``bytes``, ``time_ns`` without recorded inner
        calls, ``log_ns`` (sum of logarithms of durations), ``repeats`` (calls like the one before: same
        function, same file), ``start_ns`` and ``end_ns``.
    quarters : KeyedSums
        As `calls`, also by ``quarter`` of the time that a task spends in the phase: ``n``, ``log_ns``,
        ``time_ns`` and ``bytes``. Empty if there are more than `MOST_QUARTERED` phases.
    durations : KeyedSums
        By ``call``, ``size`` and ``bin`` (of log2 ns, `BINS_PER_OCTAVE`): ``n``.
    targets : KeyedSums
        Of transfers that lie on one target, by ``call``, ``size``, ``target`` and ``rank``: ``n``,
        ``log_ns``, ``time_ns``, ``bytes``, ``least_ns`` (of the shortest call).
    ends : KeyedSums
        Of transfers with known stripes, by ``call``, ``size`` and ``ragged`` (ends inside a stripe): ``n``.
    order : KeyedSums
        Of reads with known offsets, by ``phase``, ``rank``, ``call``, ``size`` and ``jumps`` (1: it does not
        begin where the one before ended; 2: it also ends before that one): ``n``, ``log_ns``, ``time_ns``.
    uses : KeyedSums
        Of transfers, by ``file`` and ``rank``: ``bytes``.
    """

    columns = ("thread", "carried", *_SUMMED_COLUMNS)
    requires = RANK_ORDER
    meaning = 5
    results = _TABLES

    time_model: type[OfSums] | None = None  # The only model of time that it allows; None: phases show which
    unsure: tuple[Check, ...] = ()  # What no finding can be sure of that is based on it
    _shared: Any = None

    def shared(self, make: Callable[[Evidence], T]) -> T:
        """Return what rules make of the filled summary (`make`); it is made once."""
        if self._shared is None:
            self._shared = make(self)
        found: T = self._shared
        return found

    def __init__(self, phases: Phases | None, stripes: np.ndarray) -> None:
        self.phases, self.stripes = phases, stripes
        self._nesting = Nesting()
        logs = ("n", "log_ns", "time_ns")
        keys = ("phase", "rank", "call", "size", "depth")
        self.calls = KeyedSums(keys, (*logs, "bytes", "repeats"), ("start_ns",), ("end_ns",))
        self.quarters = KeyedSums((*keys, "quarter"), (*logs, "bytes"))
        self.durations = KeyedSums(("call", "size", "bin"), ("n",))
        self.targets = KeyedSums(("call", "size", "target", "rank"), (*logs, "bytes"), ("least_ns",))
        self.ends = KeyedSums(("call", "size", "ragged"), ("n",))
        self.order = KeyedSums(("phase", "rank", "call", "size", "jumps"), logs)
        self.uses = KeyedSums(("file", "rank"), ("bytes",))

    @classmethod
    def for_run(cls, run: Run) -> Evidence:
        """Make an empty summary for a run."""
        return cls(run.phases, stripes_of(run))

    def add(self, chunk: Events) -> None:
        """Add events of one run, those of a thread in the order of completion."""
        if not len(chunk):
            return
        inner_ns = self._nesting.inner_ns(chunk)
        own_ns = None if inner_ns is None else np.maximum(chunk.duration - inner_ns, 0)
        phase = phases_of_calls(self.phases, chunk)
        shown = {"depth": ~chunk.outermost, "requested": classed_bytes(chunk)}
        columns = [shown.get(name, getattr(chunk, name)) for name in _SUMMED_COLUMNS]
        found = _compiled.sum_evidence(
            *map(np.ascontiguousarray, (*columns, phase)),
            np.log2(np.maximum(chunk.duration, 1)),
            kinds_of_calls(chunk.calls),
            self.stripes,
            own_ns,
            order_by_start(chunk),
            None if self.phases is not None and self.phases.count > MOST_QUARTERED else b"1",
        )
        for table, names, data in zip(_FOUND, _FOUND.values(), found, strict=True):
            numbers = np.frombuffer(data, np.int64).reshape(len(names), -1)
            rows = dict(zip(names, numbers, strict=True))
            if "log_ns" in rows:
                rows["log_ns"] = rows["log_ns"].view(np.float64)
            getattr(self, table).add_summed(rows)

    def places(self, rows: dict[str, np.ndarray]) -> np.ndarray | None:
        """Return the columns `ROW` of rows, which find their calls; None: single calls are unknown."""
        found: np.ndarray = np.stack([rows[name] for name in ROW])
        return found

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


def stripes_of(run: Run) -> np.ndarray:
    """Read the layouts of the files of a run, as `Evidence` takes them."""
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


ROW = ("phase", "rank", "call", "size", "depth")
"""Columns by which the shared evidence (`ensembles.diagnosis.evidence.Evidence.calls`) adds up calls."""


@dataclass(frozen=True, eq=False)
class CallsOfRows:
    """The calls of some rows of the shared evidence: what `SelectedSites` takes as a selection."""

    base: Selection  # What is known besides, such as files
    rows: np.ndarray  # int64, shape (5, n): Columns `ROW` of the rows
    phases: Phases | None  # Phases of the run
    inside: bool | None = None  # Only calls inside others, or only outermost ones; None: both

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of events that it needs."""
        return tuple({*self.base.columns, "call", "rank", "requested", "moved", "start", "depth", "carried"})

    def mask(self, chunk: Events) -> np.ndarray:
        """Compute which events of a chunk are selected."""
        mask = self.base.mask(chunk) & np.isin(chunk.call, self.rows[ROW.index("call")])
        if self.inside is not None:
            mask &= chunk.outermost != self.inside
        at = np.flatnonzero(mask)
        phase = phases_of_calls(self.phases, chunk)[at]
        parts = (
            phase,
            chunk.rank[at],
            chunk.call[at],
            size_classes(classed_bytes(chunk)[at]),
            ~chunk.outermost[at],
        )
        rows = dict(zip(ROW, self.rows, strict=True))
        wanted, mine, _ = numbered_together(ROW, rows, dict(zip(ROW, parts, strict=True)))
        mask[at] = np.isin(mine, wanted)
        return mask
