"""The ensemble of the calls that a selection chooses, or of the main ones: of one layer, op and size class.

The durations of calls of several kinds have different causes. So of the outermost calls that the
filters choose, those that took most time are taken, and the others are named.

Splitting assumes that k calls of a k-th of the bytes could take as long as one: this is checked here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Unpack

import numpy as np

from ensembles.ensemble.from_run import ensemble_from_run, has_single_calls, single_calls
from ensembles.ensemble.splitting import too_small, without_bytes
from ensembles.model.events import OPS, Call, Events
from ensembles.model.metadata import OPEN_FLAGS, WAITS_FOR_DEVICE
from ensembles.model.units import MOST_NAMED, bytes_text, count_text, share_text, size_text
from ensembles.passes.summary import Summary, ignoring_run
from ensembles.run.nothing_selected import refuse_nothing
from ensembles.run.selection import Selection
from ensembles.summaries.bins import size_class
from ensembles.summaries.keyed_sums import sum_by_keys

if TYPE_CHECKING:
    from ensembles.ensemble.ensemble import Ensemble
    from ensembles.ensemble.from_run import Per
    from ensembles.model.filters import Quantity
    from ensembles.run.run import Run
    from ensembles.run.selection import Filters


_TRANSFERS = ("read", "write")


@dataclass(frozen=True)
class CallGroup:
    """The outermost calls of a layer, an operation and a size class."""

    layer: str
    op: str
    # calls, bytes: Their number, and the bytes that they moved
    calls: int
    bytes: int
    time_ns: int  # Sum of their durations
    # least_bytes, most_bytes: Their least and their largest size, as requested
    least_bytes: int
    most_bytes: int
    longest_call: str = ""  # The function with most time
    # longest_ns, longest_count: Time and number of its calls
    longest_ns: int = 0
    longest_count: int = 0

    @property
    def size_class(self) -> int:
        """The size class (`ensembles.summaries.bins.size_class`)."""
        return self.most_bytes.bit_length()

    @property
    def filters(self) -> str:
        """The filters that choose this group."""
        return f"--layer {self.layer} --op {self.op} --size {self._size}"

    @property
    def _size(self) -> str:
        low, high = self.least_bytes, self.most_bytes
        texts = [size_text(size).replace(" ", "").replace(",", "") for size in (low, high)]
        return texts[0] if low == high else "..".join(texts)

    def __str__(self) -> str:
        noun = self.op if self.op in _TRANSFERS else f"{self.op} call"
        low, high = bytes_text(self.least_bytes), bytes_text(self.most_bytes)
        sizes = f" of {low}" if low == high else f" of {low} to {high}"
        if self.op in _TRANSFERS and self.bytes < self.calls * self.least_bytes:
            sizes += " requested"
        return f"{count_text(self.calls, noun)}{sizes if self.most_bytes else ''} ({self.layer})"


class CallGroups(Summary):
    """A mergeable summary: number, bytes, time and sizes of calls by function and size class."""

    columns = ("call", "depth", "carried", "requested", "moved", "duration")
    results = ("_rows",)

    def __init__(self, outermost: bool = True, quantity: str = "duration") -> None:
        self._outermost, self.of_all_calls = outermost, quantity == "duration"
        self._sums: dict[tuple[Call, int], np.ndarray] = {}

    def add(self, chunk: Events) -> None:
        """Add events."""
        if self._outermost and chunk.depth.any():
            chunk = chunk[chunk.outermost]
        rows = sum_by_keys(
            {"call": chunk.call, "size_class": size_class(chunk.requested)},
            {"bytes": np.maximum(chunk.moved, 0), "time_ns": chunk.duration},
            {"least": chunk.requested},
            {"most": chunk.requested},
        )
        columns = (
            rows[name].tolist() for name in ("call", "size_class", "n", "bytes", "time_ns", "least", "most")
        )
        for call, number, *sums in zip(*columns, strict=True):
            self._put((chunk.calls[call], number), np.array(sums, dtype=object))

    def merge(self, other: CallGroups) -> None:
        """Add other sums."""
        for key, sums in other._sums.items():
            self._put(key, sums)

    def _put(self, key: tuple[Call, int], sums: np.ndarray) -> None:
        known = self._sums.get(key)
        if known is not None:
            low, high = min(known[3], sums[3]), max(known[4], sums[4])
            sums = np.array([*(known[:3] + sums[:3]), low, high], dtype=object)
        self._sums[key] = sums

    def groups(self) -> list[CallGroup]:
        """The groups, the one with most time first, and of equal ones that with most bytes."""
        return _sorted_groups((call, number, *sums) for (call, number), sums in self._sums.items())

    @property
    def _rows(self) -> list[tuple[Call, int, list[int]]]:
        return [(call, number, [int(n) for n in sums]) for (call, number), sums in self._sums.items()]

    @_rows.setter
    def _rows(self, rows: list[tuple[Call, int, list[int]]]) -> None:
        self._sums = {(call, number): np.array(sums, dtype=object) for call, number, sums in rows}


def _sorted_groups(sums: Iterable[tuple[Call, int, int, int, int, int, int]]) -> list[CallGroup]:
    found: dict[tuple[str, str, int], CallGroup] = {}
    for call, number, *numbers in sums:
        calls, moved, time_ns, low, high = map(int, numbers)
        key = (call.layer, call.op, number)
        known = found.get(key, CallGroup(call.layer, call.op, 0, 0, 0, low, high))
        longest = (known.longest_call, known.longest_ns, known.longest_count)
        found[key] = CallGroup(
            call.layer,
            call.op,
            known.calls + calls,
            known.bytes + (moved if call.op in _TRANSFERS else 0),
            known.time_ns + time_ns,
            min(known.least_bytes, low),
            max(known.most_bytes, high),
            *max(longest, (call.name, time_ns, calls), key=lambda one: one[1]),
        )
    order = [
        (-group.time_ns, -group.bytes, OPS.index(group.op), group.layer, group.least_bytes)
        for group in found.values()
    ]
    return [group for _, group in sorted(zip(order, found.values(), strict=True), key=lambda pair: pair[0])]


def call_groups(run: Run, selection: Selection) -> list[CallGroup]:
    """Group the calls that a selection chooses.

    Calls inside others count only if the selection names layers or functions. The group with most time comes
    first; calls that wait for other tasks are included.
    """
    outermost = selection.layers is None and selection.calls is None
    make, found = partial(CallGroups, outermost, selection.quantity), None
    if has_single_calls(run):
        found = run.summarize(ignoring_run(make), selection=selection)
    elif not (selection.is_of_calls_and_sizes and run.reading.has_summary):
        # Phases and ordinals need the whole run, and have calls of all kinds.
        found = run.summarize(ignoring_run(make), selection=replace(selection, phases=None, ordinals=None))
    return _groups_in_cells(run, selection, outermost) if found is None else found.groups()


def _groups_in_cells(run: Run, selection: Selection, outermost: bool) -> list[CallGroup]:
    """Group the cells of the recorder's summary."""
    summary = run.summary
    cells = summary.cells
    wanted = np.array([selection.wants_call(call) for call in summary.calls], bool)[cells["call"]]
    for low, high in selection.sizes or ():
        wanted &= (cells["min_requested"] <= high) & (cells["max_requested"] >= low)
    sums = ("outer_count", "outer_moved", "outer_ns") if outermost else ("count", "moved", "time_ns")
    wanted &= cells[sums[0]] > 0
    columns = [cells[name] for name in ("call", "size_class", *sums, "min_requested", "max_requested")]
    rows = zip(*(column[wanted].tolist() for column in columns), strict=True)
    return _sorted_groups((summary.calls[call], *rest) for call, *rest in rows)


def main_group(run: Run, selection: Selection, transfers: bool = False) -> tuple[Selection, list[str]]:
    """Choose the calls of an ensemble where the filters leave the choice open: those with most time.

    A sentence about the calls that were left out; empty if there are none.
    """
    names_calls = selection.calls is not None
    is_open = {
        "layer": selection.layers is None and not names_calls,
        "op": selection.ops is None and not names_calls,
        "size_class": selection.sizes is None and not selection.per_byte,
    }
    if not any(is_open.values()):
        return selection, []
    found = call_groups(run, selection)
    if not found:
        return selection, []
    # Calls that wait for other tasks are left out, unless all do.
    groups = [group for group in found if group.op != "wait"] or found
    moves_bytes = transfers or selection.per_byte
    main = next((group for group in groups if group.bytes or not moves_bytes), groups[0])
    taken: list[CallGroup] = []
    left: list[CallGroup] = []
    for group in groups:
        alike = all(getattr(group, name) == getattr(main, name) for name, free in is_open.items() if free)
        (taken if alike else left).append(group)
    if is_open["layer"]:
        selection = replace(selection, outermost=True)
    if not left and len(groups) == len(found):
        return selection, []
    if is_open["layer"]:
        selection = replace(selection, layers=(main.layer,))
    if is_open["op"]:
        selection = replace(selection, ops=(main.op,))
    if is_open["size_class"]:
        low = min(group.least_bytes for group in taken)
        selection = replace(selection, sizes=((low, max(group.most_bytes for group in taken)),))
    return selection, [_left_out(taken, left)] if left else []


def _left_out(taken: list[CallGroup], left: list[CallGroup]) -> str:
    groups = (*taken, *left)
    whole = sum(group.bytes for group in groups)
    time_ns = sum(group.time_ns for group in groups)
    parts = []
    if moved := sum(group.bytes for group in taken):
        parts.append(f"moved {share_text(moved / whole, None)} of the bytes")
    if time_ns:
        parts.append(f"took {share_text(sum(group.time_ns for group in taken) / time_ns, None)} of the time")
    share = f", which {' and '.join(parts)}" if parts else ""
    # Of calls without bytes, only the operations are named where others moved some.
    named = [group for group in left if group.bytes or not whole]
    told = [f"{group}, {group.filters}" for group in named[:MOST_NAMED]]
    if len(named) > MOST_NAMED:
        told.append(count_text(len(named) - MOST_NAMED, "other group"))
    ops = dict.fromkeys(group.op for group in left if group not in named)
    if ops:
        told.append(f"{', '.join(ops)} calls (--op)")
    text = f"taken are {' and '.join(map(str, taken[:MOST_NAMED]))}{share}; left out: {'; '.join(told)}"
    return text + _where_most_time_is(taken, left, time_ns)


def _where_most_time_is(taken: list[CallGroup], left: list[CallGroup], time_ns: int) -> str:
    """Name what took more time than the calls taken, as where only calls that move bytes are.

    Of the operation that is taken anyhow it is a size: the filters of the function would lead back to what is
    taken.
    """
    most = max(left, key=lambda group: group.time_ns)
    if most.time_ns <= sum(group.time_ns for group in taken):
        return ""
    is_size = (most.layer, most.op) in {(group.layer, group.op) for group in taken}
    filters = most.filters if is_size else f"--layer {most.layer} --call {most.longest_call}"
    what = f"{most.longest_count:,} x {most.longest_call}"
    return f". Most time is in {what}, {share_text(most.time_ns / time_ns, None)}: {filters}"


def main_ensemble(
    run: Run, selection: Selection, per: Per = "call", transfers: bool = False
) -> tuple[Selection, Ensemble]:
    """Make the ensemble of the calls that `main_group` chooses."""
    chosen, notes = main_group(run, selection, transfers or per == "MiB")
    ensemble = ensemble_from_run(run, chosen, per)
    note_left_out(ensemble, notes)
    if per == "call" and chosen.quantity == "duration":
        ensemble._why_not_split = partial(why_not_split, run, chosen)
    return chosen, ensemble


def ensemble_of(
    run: Run, per: Per = "call", quantity: Quantity = "duration", **filters: Unpack[Filters]
) -> Ensemble:
    """Make the ensemble of filters, as `ensembles.Run.ensemble` documents it."""
    selection = Selection.parse(quantity=quantity, **filters).for_run(run, from_summary=True)
    ensemble = main_ensemble(run, selection, per)[1]
    refuse_nothing(run, selection, ensemble.n)
    return ensemble


def tasks_of(ensemble: Ensemble, otherwise: int = 1) -> int:
    """Return the number of tasks that make the calls of an ensemble, one of each of which `tail` is about."""
    if ensemble.rank is None or not ensemble.n:
        return otherwise
    return len(np.unique(ensemble.rank))


def note_left_out(ensemble: Ensemble, notes: Sequence[str]) -> None:
    """Let an ensemble, and what is computed from it, say which calls were left out (`main_group`)."""
    ensemble.notes[:0] = notes
    ensemble.left_out = tuple(notes)


def why_not_split(run: Run, selection: Selection) -> str | None:
    """Say why a part of these calls would take as long as a whole one."""
    found = call_groups(run, selection)
    groups = [group for group in found if group.op != "wait"] or found
    calls, moved = sum(group.calls for group in groups), sum(group.bytes for group in groups)
    if calls and not moved:
        return without_bytes({group.op for group in groups})
    small = too_small(calls, moved)
    if small is not None:
        return small
    share, flags = _waiting_for_device(run, selection, {group.op for group in groups})
    if share > 0.5:
        return (
            f"{share_text(share)} of the time of these writes is in files opened with {flags}: each waits "
            "for the device, whatever its size, so that k of them may take k times as long"
        )
    return None


def _waiting_for_device(run: Run, selection: Selection, ops: set[str]) -> tuple[float, str]:
    """Return the share of the time of writes in files with O_SYNC or O_DSYNC, and these flags."""
    facts = {path: facts.get(OPEN_FLAGS, "") for path, facts in run.info.file_facts.items()}
    flagged = {path: flags for path, flags in facts.items() if "SYNC" in flags}
    if not flagged or ops != {"write"}:
        return 0.0, ""
    text = " and ".join(sorted(set(flagged.values())))
    events = single_calls(run, selection, ("carried", "file", "duration"))
    if events is None:
        return (1.0 if len(flagged) >= len(run.files) - 1 else 0.0), text
    whole = int(events.duration.sum())
    if not whole:
        return 0.0, text
    numbers = [number for number, path in enumerate(run.files) if path in flagged]
    waits = np.isin(events.file, numbers) & ((events.carried & WAITS_FOR_DEVICE) > 0)
    return float(events.duration[waits].sum()) / whole, text
