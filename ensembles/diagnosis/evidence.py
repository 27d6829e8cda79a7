"""The shared evidence of rules: tables of calls by phase, task, size, place and order, filled in one pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ensembles.model.calls import STORAGE
from ensembles.model.distinct import numbered_together
from ensembles.model.events import OPS, Call, Events, is_io_of_calls
from ensembles.passes.start_order import order_by_start
from ensembles.passes.summary import RANK_ORDER, Summary
from ensembles.run.selection import Selection
from ensembles.structure.phases.result import phases_of_calls
from ensembles.summaries.keyed_sums import KeyedSums, groups_of_rows, sum_by_keys
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

ROW = ("phase", "rank", "call", "size", "depth")
"""Columns by which the shared evidence (`Evidence.calls`) adds up calls."""


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

    columns = (
        *("rank", "thread", "call", "depth", "carried", "file"),
        *("offset", "requested", "moved", "start", "duration"),
    )
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
        self.calls = KeyedSums(ROW, (*logs, "bytes", "repeats"), ("start_ns",), ("end_ns",))
        self.quarters = KeyedSums((*ROW, "quarter"), (*logs, "bytes"))
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
        inner_ns, phase = self._nesting.inner_ns(chunk), phases_of_calls(self.phases, chunk)
        own_ns = chunk.duration if inner_ns is None else np.maximum(chunk.duration - inner_ns, 0)
        is_io = is_io_of_calls(chunk.calls)[chunk.call]
        if not is_io.all():
            chunk, own_ns, phase = chunk[is_io], own_ns[is_io], phase[is_io]
        if not len(chunk):
            return
        size, depth = size_classes(classed_bytes(chunk)), ~chunk.outermost
        octaves = np.log2(np.maximum(chunk.duration, 1))
        sums = {"time_ns": own_ns, "bytes": np.maximum(chunk.moved, 0), "log_ns": octaves * np.log(2.0)}
        row = np.empty(len(chunk), np.int32)
        rows = sum_by_keys(
            dict(zip(ROW, (phase, chunk.rank, chunk.call, size, depth), strict=True)),
            sums,
            {"start_ns": chunk.start},
            {"end_ns": chunk.end, "last_ns": chunk.start},
            row_of=row,
        )
        before, after = _successive(groups_of_rows([rows["rank"], rows["call"]])[0][row])
        again = row[after[chunk.file[after] == chunk.file[before]]]
        self.calls.add_summed(rows | {"repeats": np.bincount(again, minlength=len(rows["n"]))})
        if self.phases is None or self.phases.count <= MOST_QUARTERED:
            quarter = _quarters(rows, row, chunk.start)
            self.quarters.add_summed(_by_part(rows, row, "quarter", quarter, sums))
        kind, first = groups_of_rows([rows["call"], rows["size"]])
        bins = 64 * BINS_PER_OCTAVE
        count = np.bincount(kind[row] * bins + (octaves * BINS_PER_OCTAVE).astype(np.int64))
        seen = np.flatnonzero(count)
        each = {name: rows[name][first[seen // bins]] for name in ("call", "size")}
        self.durations.add_summed(each | {"bin": seen % bins, "n": count[seen]})
        self._add_placed(chunk, rows, row, sums)

    def _add_placed(
        self, chunk: Events, rows: dict[str, np.ndarray], row: np.ndarray, sums: dict[str, np.ndarray]
    ) -> None:
        """Add the transfers whose offset is known."""
        op, low, high = chunk.op, chunk.offset, chunk.offset + sums["bytes"]
        is_read = op == OPS.index("read")
        placed = (is_read | (op == OPS.index("write"))) & (low >= 0) & (chunk.moved > 0)
        use = np.empty(len(chunk), np.int32)
        self.uses.add_summed(
            sum_by_keys(
                {"file": chunk.file, "rank": chunk.rank}, {"bytes": sums["bytes"]}, taken=placed, row_of=use
            )
        )
        order = order_by_start(chunk)
        at = np.flatnonzero(placed & is_read) if order is None else order[(placed & is_read)[order]]
        before, after = _successive(use[at])
        falls, goes_on = high[at[after]] <= low[at[before]], low[at[after]] == high[at[before]]
        jumps = np.zeros(len(at), np.int64)
        jumps[after] = np.where(goes_on, 0, np.where(falls, 2, 1))
        of_reads = {name: column[at] for name, column in sums.items()}
        self.order.add_summed(_by_part(rows, row[at], "jumps", jumps, of_reads))
        if not self.stripes[:, 0].any():
            return
        width, count, first, listed = self.stripes[np.minimum(chunk.file, len(self.stripes) - 1)].T
        placed &= width > 0
        width, keys = np.maximum(width, 1), {name: rows[name][row] for name in ("call", "size")}
        ragged = (low % width != 0).astype(np.int64) + (high % width != 0)
        self.ends.add_summed(sum_by_keys(keys | {"ragged": ragged}, taken=placed))
        number = low // width
        placed &= (listed > 0) & ((count == 1) | (number == (high - 1) // width))
        target = (first + number % np.maximum(count, 1)) % np.maximum(listed, 1)
        keys |= {"target": target, "rank": chunk.rank}
        self.targets.add_summed(sum_by_keys(keys, sums, {"least_ns": sums["time_ns"]}, taken=placed))

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


def _successive(group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which events follow each other in a group: the first of each two, and the second."""
    order = np.argsort(group.astype(np.uint16) if group.max(initial=0) < 1 << 16 else group, kind="stable")
    follows = np.flatnonzero(group[order[1:]] == group[order[:-1]])
    return order[follows], order[follows + 1]


def _quarters(rows: dict[str, np.ndarray], row: np.ndarray, start_ns: np.ndarray) -> np.ndarray:
    """Return the quarter of the time that the task of each event spends in its phase."""
    stay, first = groups_of_rows([rows["phase"], rows["rank"]])
    low, high = rows["start_ns"][first], rows["last_ns"][first]
    np.minimum.at(low, stay, rows["start_ns"])
    np.maximum.at(high, stay, rows["last_ns"])
    within = (start_ns - low[stay][row]) / (high - low + 1)[stay][row]
    # Of spans beyond 2**53 ns, the last start may be rounded to the end.
    quarter: np.ndarray = np.minimum((4 * within).astype(np.int64), 3)
    return quarter


def _by_part(
    rows: dict[str, np.ndarray], row: np.ndarray, name: str, part: np.ndarray, sums: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Sum events by the row of their calls, and a part of it."""
    found = sum_by_keys({"row": row, name: part}, sums)
    return found | {key: rows[key][found["row"]] for key in ROW}


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
