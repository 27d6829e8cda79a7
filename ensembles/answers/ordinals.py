"""Durations by call index, and their trend."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from ensembles.ensemble.from_summary import refuse_sums
from ensembles.ensemble.main_ensemble import call_groups, main_group
from ensembles.faces.answer import NOTABLE_PART, PlainAnswer
from ensembles.model.errors import EnsioError
from ensembles.model.events import Events
from ensembles.model.holds import Holds
from ensembles.model.statement import Statement, Table
from ensembles.model.units import MIB, bytes_text, count_text, share_text
from ensembles.passes.summary import Summary, ignoring_run
from ensembles.run.nothing_selected import refuse_nothing
from ensembles.run.selection import Selection
from ensembles.structure.ordinals.ensembles import OrdinalEnsembles, ordinal_class_index
from ensembles.structure.ordinals.numbering import ORDINAL_COLUMNS, with_ordinals
from ensembles.structure.phases.detect import detect_phases
from ensembles.summaries.bins import size_class
from ensembles.summaries.calltable import CallTable

if TYPE_CHECKING:
    from ensembles.passes.memory import Budget
    from ensembles.run.run import Run
    from ensembles.run.selection import Selection
    from ensembles.structure.ordinals.ensembles import OrdinalTotals
    from ensembles.structure.ordinals.trend import Trend
    from ensembles.structure.phases.detect import Phases


class Operations(Summary):
    """A mergeable summary: time, layers and nesting of the calls of each operation.

    Attributes
    ----------
    time_ns : Counter of str
        By operation: sum of durations.
    layers : dict of str to set of str
        By operation: layers with calls.
    nested : Counter of str
        By operation: number of calls inside other calls.
    """

    columns = ("call", "depth", "carried", "duration")
    results = added_up = ("time_ns", "layers", "nested")

    def __init__(self, _: Any = None) -> None:
        self.time_ns: Counter[str] = Counter()
        self.layers: dict[str, set[str]] = {}
        self.nested: Counter[str] = Counter()

    def add(self, chunk: Events) -> None:
        """Add events."""
        calls = chunk.calls
        time_ns = np.bincount(chunk.call, chunk.duration.astype(float), minlength=len(calls))
        inside = np.bincount(chunk.call, ~chunk.outermost, minlength=len(calls))
        for number in np.flatnonzero(np.bincount(chunk.call, minlength=len(calls))).tolist():
            call = calls[number]
            self.time_ns[call.op] += int(time_ns[number])
            self.layers.setdefault(call.op, set()).add(call.layer)
            self.nested[call.op] += int(inside[number])


class OrdinalSummary(Summary):
    """A mergeable summary: the calls of one operation by ordinal.

    All calls of the operation are counted; those that are selected are added to ensembles.

    Parameters
    ----------
    phases : Phases or None
        Phases of the run; needed if phases are selected or calls are counted within phases.
    within_phases : bool
        Count the calls of a rank within each phase, whatever their file.
    """

    added_up = ("ensembles",)

    results: tuple[str, ...] = ("ensembles",)

    def __init__(
        self,
        op: str,
        chosen: Selection,
        selection: Selection,
        nested: bool,
        phases: Phases | None,
        within_phases: bool,
        _: Any = None,
    ) -> None:
        self.ensembles = OrdinalEnsembles()
        self._op, self._chosen, self._selection, self._nested = op, chosen, selection, nested
        self._phases, self._within_phases = phases, within_phases

    def prepare_chunks(self, chunks: Iterator[Events], budget: Budget, path: str) -> Iterator[Events]:
        """Reduce chunks to the calls that count, with ordinals."""
        counted = (chunk[self._counts(chunk)] for chunk in chunks)
        phase = self._phases.phase_index if self._within_phases and self._phases is not None else None
        return with_ordinals(counted, budget.held_events, path, phase)

    def _counts(self, chunk: Events) -> np.ndarray:
        layers = self._selection.layers
        wanted = [call.op == self._op and (layers is None or call.layer in layers) for call in chunk.calls]
        counts = np.array(wanted, bool)[chunk.call]
        return counts & chunk.outermost if self._nested else counts

    def _selected(self, events: Events) -> tuple[Events, np.ndarray]:
        """Return the selected calls, and their ordinals."""
        ordinal = events.ordinal
        phase = None if self._phases is None else self._phases.phase_index(events)
        mine = self._chosen.mask(events)
        if self._within_phases and phase is not None:
            mine &= phase > 0
        for numbers, ranges in ((phase, self._selection.phases), (ordinal, self._selection.ordinals)):
            if ranges is not None and numbers is not None:
                mine &= np.logical_or.reduce([(low <= numbers) & (numbers <= high) for low, high in ranges])
        assert ordinal is not None  # `prepare_chunks` counted them
        return events[mine], ordinal[mine]

    def add(self, events: Events) -> None:
        """Add calls with ordinals."""
        events, ordinal = self._selected(events)
        duration = events.duration
        if self._selection.per_byte:
            duration = np.rint(duration / (events.moved / MIB)).astype(np.int64)
        self.ensembles.add(ordinal, duration, events.rank)


class SizesOfOrdinals(OrdinalSummary):
    """A mergeable summary: the least and the largest size class of the calls of each ordinal.

    Parameters are those of `OrdinalSummary`.
    """

    results = ("_calls", "_low", "_high")

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._calls, self._low, self._high = (np.zeros(0, np.int64) for _ in range(3))

    def add(self, events: Events) -> None:
        """Add calls with ordinals."""
        events, ordinal = self._selected(events)
        if not len(ordinal):
            return
        number = ordinal_class_index(ordinal)
        self._grow(int(number.max()) + 1)
        of_call = size_class(events.requested)
        self._calls += np.bincount(number, minlength=len(self._calls))
        np.minimum.at(self._low, number, of_call)
        np.maximum.at(self._high, number, of_call)

    def merge(self, other: OrdinalSummary) -> None:
        """Add the calls of other ranks."""
        assert isinstance(other, SizesOfOrdinals)
        self._grow(len(other._calls))
        size = len(other._calls)
        self._calls[:size] += other._calls
        self._low[:size] = np.minimum(self._low[:size], other._low)
        self._high[:size] = np.maximum(self._high[:size], other._high)

    def _grow(self, size: int) -> None:
        more = max(size - len(self._calls), 0)
        self._calls, self._high = (
            np.append(old, np.zeros(more, np.int64)) for old in (self._calls, self._high)
        )
        self._low = np.append(self._low, np.full(more, np.iinfo(np.int64).max))

    @property
    def mixed_share(self) -> float:
        """Share of the calls whose ordinal has calls of another size class too."""
        return float(self._calls[self._low < self._high].sum() / max(int(self._calls.sum()), 1))


_ONE_SIZE_EACH = (
    "sizes are not separated: the calls of one call index have one size, within a factor of two, but those "
    "of different ones differ"
)


@dataclass(frozen=True)
class RunOrdinals:
    """What `durations_by_ordinal` found: the numbers of ``ensio ordinals``.

    Attributes
    ----------
    path : str
        The run.
    op : str
        Kind of calls.
    within : {"file", "phase"}
        Where calls are counted.
    per : {"call", "MiB"}
        Unit of the durations: s, or s/MiB.
    ensembles : OrdinalEnsembles
        The durations by ordinal.
    notes : list of str
        What was chosen or left out.
    size : str or None
        Request sizes of these calls, as for ``--size``, if calls of other sizes were left out.
    layers : tuple of str or None
        Their layers, as for ``--layer``; None: all.
    """

    path: str
    op: str
    within: str
    per: str
    ensembles: OrdinalEnsembles
    notes: list[str]
    size: str | None = None
    layers: tuple[str, ...] | None = None

    @property
    def what(self) -> str:
        """The calls, such as ``write calls of 1.00 MiB``; without sizes if none were left out."""
        if self.size is None:
            return f"{self.op} calls"
        ends = dict.fromkeys(bytes_text(int(size)) for size in self.size.split(".."))
        return f"{self.op} calls of {' to '.join(ends)}"

    @cached_property
    def totals(self) -> list[OrdinalTotals]:
        """Of each ordinal: calls, tasks, median, 90 % quantile and slowest call."""
        return self.ensembles.totals()

    @cached_property
    def trend(self) -> Trend:
        """Whether durations grow with the ordinal, with a test."""
        return self.ensembles.trend()

    def __repr__(self) -> str:
        where = "in each phase" if self.within == "phase" else "on each file"
        indices = f"{len(self.totals):,} call {'index' if len(self.totals) == 1 else 'indices'}"
        return f"Ordinals of {self.path}: {indices} of the {self.what} of a task {where}; {self.trend}"

    def to_json(self) -> dict[str, Any]:
        """Return the keys of ``ensio ordinals --json`` that are about ordinals."""
        return {
            "run": self.path,
            "op": self.op,
            "size_bytes": None if self.size is None else [int(end) for end in self.size.split("..")],
            "within": self.within,
            "per": self.per,
            "exact_quantiles": self.ensembles.exact,
            "ordinals": [entry.to_json() for entry in self.totals],
            "trend": self.trend.to_json(),
            "calls_of_unknown_ordinal": self.ensembles.n_unknown,
        }


def durations_by_ordinal(
    run: Run,
    selection: Selection,
    within: Literal["file", "phase"] = "file",
) -> RunOrdinals:
    """Order the durations of one kind of calls by call index."""
    if run.info.has(Holds.ALL_CALLS):
        found = _from_events(run, selection, within)
    else:
        found = _from_summary(run, selection, within)
    refuse_nothing(run, selection, len(found.totals) + found.ensembles.n_unknown)
    return found


def _ordinals(run: Run, selection: Selection, within: str, op: str, *found: Any) -> RunOrdinals:
    return RunOrdinals(run.path, op, within, "MiB" if selection.per_byte else "call", *found)


def _from_events(run: Run, selection: Selection, within: str) -> RunOrdinals:
    in_phases = within == "phase" or selection.phases is not None
    phases = detect_phases(run) if in_phases else None
    chosen = replace(selection, phases=None, ordinals=None).for_run(run)
    op, nested, notes, layers = _in_one_layer(run, chosen) or _in_layers(run, chosen)
    chosen, selection = replace(chosen, layers=layers), replace(selection, layers=layers)
    if within == "phase":
        if phases is None or phases.count == 0:
            raise EnsioError(f"{run.path} contains no I/O, hence no phases: leave out --by phase")
        notes.append(f"{phases.count:,} phases: {phases.sentence}")
    # Calls are counted among all calls of their task: of the filters, ranks alone limit what is read.
    of_ranks = None if selection.ranks is None else replace(Selection(), ranks=selection.ranks).for_run(run)
    counted = (nested, phases, within == "phase")
    columns = {*ORDINAL_COLUMNS, *chosen.columns, *selection.columns, "carried", "duration"}
    columns |= {"moved"} if selection.per_byte else set()
    sizes, left_out = _main_size(run, replace(chosen, ops=(op,), outermost=chosen.outermost or nested))
    if sizes is not None:
        of_sizes = partial(SizesOfOrdinals, op, chosen, selection, *counted)
        if run.summarize(of_sizes, {*columns, "requested"}, of_ranks).mixed_share > NOTABLE_PART:
            chosen, selection = replace(chosen, sizes=sizes), replace(selection, sizes=sizes)
            columns |= {*chosen.columns}
            notes += left_out
        else:
            sizes = None
            notes.append(_ONE_SIZE_EACH)
    make = partial(OrdinalSummary, op, chosen, selection, *counted)
    ensembles = run.summarize(make, columns, of_ranks).ensembles
    return _ordinals(run, selection, within, op, ensembles, notes, _size_text(sizes), layers)


_Counted: TypeAlias = tuple[str, bool, list[str], tuple[str, ...] | None]
"""The operation, whether only outermost calls count, notes about both, and the layers that count."""


def _in_one_layer(run: Run, chosen: Selection) -> _Counted | None:
    """Find the operation by the table of calls, which a collected run keeps."""
    if chosen.sizes is not None or not chosen.is_of_calls_and_sizes:
        return None
    totals = run.summarize(ignoring_run(CallTable)).totals
    mine = {call: each.time_ns for call, each in totals.items() if chosen.wants_call(call)}
    time_ns: Counter[str] = Counter()
    for call, call_ns in mine.items():
        time_ns[call.op] += call_ns
    if not time_ns:
        return None
    op = _chosen_op(chosen, time_ns)
    return (
        (op, False, [], chosen.layers) if len({call.layer for call in mine if call.op == op}) == 1 else None
    )


def _in_layers(run: Run, chosen: Selection) -> _Counted:
    op, nested, notes = _operation(run, chosen)
    layers, left_out = _main_layer(run, chosen, op)
    return op, nested, notes + left_out, layers


def _operation(run: Run, chosen: Selection) -> tuple[str, bool, list[str]]:
    """Return the operation, whether only outermost calls count, and notes about both."""

    found = run.summarize(Operations, selection=chosen)
    if not found.time_ns:
        refuse_nothing(run, chosen, 0)
    op = _chosen_op(chosen, found.time_ns)
    several = sorted(found.layers.get(op, ()))
    if len(several) > 1 and found.nested[op]:
        note = (
            f"calls of {len(several)} layers ({', '.join(several)}) are nested: only the outermost are "
            "counted; select a layer with --layer"
        )
        return op, True, [note]
    return op, False, []


def _main_layer(run: Run, chosen: Selection, op: str) -> tuple[tuple[str, ...] | None, list[str]]:
    """Return the layer whose outermost calls of an operation moved most bytes, and a note on the others."""

    if chosen.layers is not None or chosen.calls is not None:
        return chosen.layers, []
    calls: Counter[str] = Counter()
    moved: Counter[str] = Counter()
    for group in call_groups(run, replace(chosen, ops=(op,))):
        calls[group.layer] += group.calls
        moved[group.layer] += group.bytes
    if len(calls) < 2:
        return None, []
    noun = op if op in ("read", "write") else f"{op} call"
    main = max(calls, key=lambda layer: (moved[layer], calls[layer]))
    others = [
        f"{count_text(count, noun)}, --layer {layer}" for layer, count in calls.most_common() if layer != main
    ]
    whole = moved.total()
    share = f", which moved {share_text(moved[main] / whole, None)} of the bytes" if whole else ""
    taken = f"taken are {count_text(calls[main], noun)} of {main}{share}; left out: {'; '.join(others)}"
    return (main,), [taken]


def _main_size(run: Run, chosen: Selection) -> tuple[tuple[tuple[int, int], ...] | None, list[str]]:
    """Return the sizes of the class that is taken, and a note on the others; None: calls have no other."""
    found, notes = main_group(run, chosen)
    return (found.sizes, notes) if notes and found.sizes != chosen.sizes else (None, [])


def _mixed_share_of_cells(cells: Mapping[str, np.ndarray], taken: np.ndarray) -> float:
    """Return the share of the calls whose class of ordinals has calls of another size class too."""
    ordinal, sizes, count = (cells[name][taken] for name in ("ordinal_class", "size_class", "count"))
    names, at = np.unique(ordinal, return_inverse=True)
    low, high = np.full(len(names), np.iinfo(np.int64).max), np.zeros(len(names), np.int64)
    np.minimum.at(low, at, sizes)
    np.maximum.at(high, at, sizes)
    return float(count[(low < high)[at]].sum() / max(int(count.sum()), 1))


def _size_text(sizes: tuple[tuple[int, int], ...] | None) -> str | None:
    if sizes is None:
        return None
    ((low, high),) = sizes
    return f"{low}..{high}"


def _chosen_op(selection: Selection, time: Counter[str]) -> str:
    """Return the selected operation or, of reads and writes, the one that took the most time."""
    if selection.ops is not None:
        if len(set(selection.ops)) > 1:
            raise EnsioError("ordinals count the calls of one operation: name one with --op")
        return selection.ops[0]
    transfers = {op: time[op] for op in ("read", "write") if op in time} or dict(time)
    if not transfers:
        raise EnsioError("the selection contains no calls: change the filters")
    return max(transfers, key=lambda op: transfers[op])


def _from_summary(run: Run, selection: Selection, within: str) -> RunOrdinals:
    asked = {"sizes": selection.sizes, "bytes": selection.per_byte, "phases": within == "phase"}
    refuse_sums(run, [*selection.beyond_sums, *(word for word, is_asked in asked.items() if is_asked)])
    selection = selection.for_run(run) if selection.ordinals is None else replace(selection, ordinals=None)
    summary = run.summary
    time: Counter[str] = Counter()
    wanted = np.zeros(len(summary.calls), bool)
    for number, call in enumerate(summary.calls):
        of_call = (selection.ops, call.op), (selection.calls, call.name), (selection.layers, call.layer)
        wanted[number] = all(choices is None or name in choices for choices, name in of_call)
        mine = summary.cells["call"] == number
        if wanted[number] and mine.any():
            time[call.op] += int(summary.cells["time_ns"][mine].sum())
    op = _chosen_op(selection, time)
    layers, notes = _main_layer(run, selection, op)
    wanted &= np.array([layers is None or call.layer in layers for call in summary.calls], bool)
    of_op = np.array([call.op == op for call in summary.calls], bool)
    taken = (wanted & of_op)[summary.cells["call"]]
    sizes, left_out = _main_size(run, replace(selection, ops=(op,), layers=layers))
    if sizes is not None and _mixed_share_of_cells(summary.cells, taken) <= NOTABLE_PART:
        sizes, left_out = None, [_ONE_SIZE_EACH]
    for low, high in sizes or ():
        taken &= (summary.cells["min_requested"] <= high) & (summary.cells["max_requested"] >= low)
    notes += left_out
    found = OrdinalEnsembles.from_cells(summary, taken)
    notes += [
        "from the recorder's summary: calls are counted in the order of their completion, over all layers, "
        "and ordinals above 16 are grouped by octaves"
    ]
    if found.n_unknown:
        notes.append(f"excluded: {found.n_unknown:,} calls of unknown ordinal")
    return _ordinals(run, selection, within, op, found, notes, _size_text(sizes), layers)


def answer_ordinals(found: RunOrdinals, notes: Sequence[str] = ()) -> PlainAnswer:
    """Show the durations of calls by their index."""
    unit = "s/MiB" if found.per == "MiB" else "s"
    units = {"ordinal": "count", "calls": "count", "tasks": "count"}
    units |= dict.fromkeys(("median", "p90", "max"), unit)
    rows = [
        (
            entry.ordinal if entry.ordinal == entry.to else f"{entry.ordinal:,} to {entry.to:,}",
            entry.n,
            entry.tasks,
            entry.median_s,
            entry.p90_s,
            entry.max_s,
        )
        for entry in found.totals
    ]
    where = "in each phase" if found.within == "phase" else "on each file"
    sizes = None if found.size is None else found.what
    head = Statement("ordinals.what", {"op": found.op, "where": where, "sizes": sizes, "is_none": not rows})
    trend = (Statement("ordinals.trend", {"trend": found.trend.sentence}),) if rows else ()
    values = found.to_json() | {"complete": not notes, "notes": [*notes, *found.notes]}
    parts = ((head,), Table.of_rows("row", units, rows), trend)
    return PlainAnswer("ordinals", parts, values, (*notes, *found.notes))
