"""Filters: a selection of the calls of a run.

Every command and `Run.select` take the same filters. Each is a text as on the command line (a comma-separated
list), a number, or a list of these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from glob import escape
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np

from ensembles.model.enclosed import among_themselves, as_outermost
from ensembles.model.errors import EnsioError
from ensembles.model.events import Call, Events
from ensembles.model.filters import (
    FILTERS,
    NUMBERS,
    RANGES,
    UNITS,
    Quantity,
    Text,
    checked_quantity,
    parse_size,
    within_ranges,
    within_rates,
)
from ensembles.model.holds import Holds
from ensembles.model.nearest_names import nearest_names, suggestion
from ensembles.passes.reading import Ranges, ascending_ranges
from ensembles.structure.ordinals.numbering import with_ordinals

if TYPE_CHECKING:
    from ensembles.model.regions import Spans
    from ensembles.passes.memory import Budget
    from ensembles.structure.recorded_run import RecordedRun

__all__ = ["UNITS", "Filters", "Selection", "Text", "parse_size", "select_chunks"]


class Filters(TypedDict, total=False):
    """Keywords of `Selection.parse`, for functions that pass them on."""

    op: Text
    call: Text
    layer: Text
    file: str | Iterable[str] | None
    rank: Text
    size: Text
    time: Text
    duration: Text
    offset: Text
    rate: Text
    failed: bool
    error: Text
    region: str | Iterable[str] | None
    site: str | Iterable[str] | None
    phase: Text
    ordinal: Text
    per_byte: bool


@dataclass(frozen=True)
class Selection:
    """A selection of calls: one condition an attribute; None selects all calls."""

    # ops, calls, layers: Operations, names of functions, layers
    ops: tuple[str, ...] | None = None
    calls: tuple[str, ...] | None = None
    layers: tuple[str, ...] | None = None
    # Paths of files or their ends, and globs for them; ``*`` matches any characters, including ``/``
    file_globs: tuple[str, ...] | None = None
    ranks: tuple[tuple[int, int], ...] | None = None  # Ranges of ranks, both ends included
    sizes: tuple[tuple[int, int], ...] | None = None  # Ranges of requested bytes, both ends included
    # Ranges of the start of a call, seconds since the origin of the run, the end excluded
    times_s: tuple[tuple[float, float], ...] | None = None
    durations_ns: tuple[tuple[int, int], ...] | None = None  # Ranges of durations in ns, both ends included
    # Ranges of offsets in bytes, both ends included. Calls without an offset match none.
    offsets: tuple[tuple[int, int], ...] | None = None
    # Ranges of bytes moved per second of the duration of a call, the end excluded
    rates: tuple[tuple[int, int], ...] | None = None
    failed: bool = False  # Only calls that failed
    errors: tuple[int, ...] | None = None  # The errno of failed calls
    # Names of phases and regions: the call's task must be in one of them when the call starts
    regions: tuple[str, ...] | None = None
    sites: tuple[str, ...] | None = None  # Call sites: ``file:line``, source file or function, with wildcards
    # phases, ordinals: Ranges of phase numbers and of ordinals, both ends included
    phases: tuple[tuple[int, int], ...] | None = None
    ordinals: tuple[tuple[int, int], ...] | None = None
    per_byte: bool = False  # Select only calls that moved bytes. The durations of ensembles are then per MiB.
    outermost: bool = False  # Select only calls that are not inside others
    # What ensembles are made of. "flight" selects only non-blocking requests whose flight is known.
    quantity: Quantity = "duration"
    # Select only calls that are under way in this time, ns since the origin, the end excluded
    under_way_ns: tuple[int, int] | None = None
    # Times at which the tasks of a run are in `regions`; `for_run` sets it
    spans: Spans | None = field(default=None, compare=False, repr=False)
    # Numbers of `sites` in a run; `for_run` sets it
    site_numbers: tuple[int, ...] | None = field(default=None, compare=False, repr=False)

    @classmethod
    def parse(cls, *, quantity: str = "duration", **filters: Unpack[Filters]) -> Selection:
        """Parse filters as they are written on the command line, by `ensembles.model.filters.FILTERS`."""
        for name in filters:
            if name not in FILTERS:
                raise TypeError(f'there is no filter "{name}": {suggestion(name, FILTERS)}')
        given: dict[str, Any] = {name: value for name, value in filters.items() if value is not None}
        chosen = {FILTERS[name].attribute: FILTERS[name].parse(value) for name, value in given.items()}
        return cls(quantity=checked_quantity(quantity), **chosen)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of events that the conditions need, apart from phases and ordinals."""
        wanted = (
            ("call", True),
            ("file", self.file_globs),
            ("rank", self.ranks or self.regions),
            ("requested", self.sizes),
            ("start", self.times_s or self.regions or self.under_way_ns),
            ("duration", self.under_way_ns or self.durations_ns or self.rates),
            ("offset", self.offsets),
            ("moved", self.per_byte or self.rates or self.failed),
            ("error", self.errors),
            *((name, self.outermost) for name in ("depth", "carried")),
            ("site", self.sites),
            ("flight", self.quantity == "flight"),
        )
        return tuple(name for name, needed in wanted if needed)

    @property
    def times_ns(self) -> list[tuple[int, int]] | None:
        """Ranges of starts in whole ns since the origin, both ends included."""
        if self.times_s is None:
            return None
        return [(_ns(low), _ns(high) - 1) for low, high in self.times_s]

    @property
    def read_ranks(self) -> Ranges | None:
        """Ranges of the ranks to read, ascending and disjoint; None: all."""
        return None if self.ranks is None else ascending_ranges(self.ranks)

    @property
    def selects_all(self) -> bool:
        """Whether there is no condition."""
        return self == Selection()

    @property
    def needs_whole_run(self) -> bool:
        """Whether the selection needs all events of a run: phases or ordinals."""
        return self.phases is not None or self.ordinals is not None

    @property
    def is_of_calls_and_sizes(self) -> bool:
        """Whether the conditions are only on operations, functions, layers and sizes."""
        return not (self.beyond_sums or self.ordinals or self.per_byte or self.quantity == "flight")

    @property
    def parts_calls(self) -> bool:
        """Whether calls can be selected without those around them: all conditions but that on ranks do."""
        return replace(self, ranks=None) != Selection()

    @property
    def beyond_sums(self) -> list[str]:
        """What the conditions distinguish that the sums of a recorder do not, in words."""
        found = [word for name, word in _BEYOND_SUMS.items() if getattr(self, name) not in (None, False)]
        return list(dict.fromkeys(found))

    def for_run(self, run: RecordedRun, from_summary: bool = False) -> Selection:
        """Check this selection against a run, and find the times of its regions.

        `from_summary`: allow phases and ordinals that only the summary of the run can give.
        """
        checked = self.checked(run.calls, partial(_calls_made, run))
        if self.phases is not None and not run.reading.has_phases and not from_summary:
            run.reading.need(Holds.CALL_ORDER, "phases need every call as an event")
        if self.ordinals is not None and not from_summary:
            run.reading.need(Holds.CALL_ORDER, "ordinals need every call as an event")
        if self.quantity == "flight":
            run.reading.need(Holds.UNBIASED_CALLS, "flights are of single calls (ensio info has their sums)")
        if self.sites is not None:
            checked = replace(checked, site_numbers=_numbers_of_sites(run, self.sites))
        if self.file_globs is not None:
            checked = replace(checked, file_globs=tuple(_glob_of(run, name) for name in self.file_globs))
        if self.regions is None:
            return checked
        for name in self.regions:
            if name not in run.regions.names:
                found = suggestion(name, run.regions.names, "the run has")
                if not run.regions.names:
                    found = "its program named none (docs: Phases and regions)"
                raise EnsioError(f'there is no phase or region "{name}" in this run: {found}')
        return replace(checked, spans=run.regions.named(*self.regions).spans())

    def checked(self, calls: Sequence[Call], find_made: Callable[[], set[Call]] | None = None) -> Selection:
        """Check the functions and layers of this selection against the calls of a run."""
        for wanted, part, what in ((self.calls, "name", "call"), (self.layers, "layer", "layer")):
            known = {getattr(call, part) for call in calls}
            for name in wanted or ():
                if name not in known:
                    made = {getattr(call, part) for call in (find_made() if find_made else ())}
                    names = suggestion(name, (made or known) - {"unknown"}, "the run has")
                    raise EnsioError(f'there is no {what} "{name}" in this run: {names}')
        return self

    def mask(self, chunk: Events) -> np.ndarray:
        """Compute which events of a chunk are selected."""
        wanted_calls = _wanted_calls(self.ops, self.calls, self.layers, chunk.calls)
        mask = np.ones(len(chunk), bool) if wanted_calls.all() else wanted_calls[chunk.call]
        if self.file_globs is not None:
            mask &= self._wanted_files(chunk)[chunk.file]
        for ranges, name in (
            (self.ranks, "rank"),
            (self.sizes, "requested"),
            (self.durations_ns, "duration"),
            (self.offsets, "offset"),
        ):
            if ranges is not None:
                mask &= within_ranges(getattr(chunk, name), ranges)
        if self.times_ns is not None:
            mask &= within_ranges(chunk.start, self.times_ns)
        if self.regions is not None:
            if self.spans is None:
                raise ValueError("the times of regions are unknown: use Selection.for_run first")
            mask &= self.spans.hold(chunk.rank, chunk.start)
        if self.sites is not None:
            if self.site_numbers is None:
                raise ValueError("the numbers of sites are unknown: use Selection.for_run first")
            mask &= np.isin(chunk.site, self.site_numbers)
        if self.under_way_ns is not None:
            low, high = self.under_way_ns
            mask &= (chunk.start < high) & (chunk.start + np.maximum(chunk.duration, 1) > low)
        if self.rates is not None:
            mask &= within_rates(chunk.moved, chunk.duration, self.rates)
        if self.failed:
            mask &= chunk.moved < 0
        if self.errors is not None:
            mask &= np.isin(chunk.error, self.errors)
        if self.per_byte:
            mask &= chunk.moved > 0
        if self.outermost:
            mask &= chunk.outermost
        if self.quantity == "flight":
            mask &= chunk.flight >= 0
        for ranges, name in ((self.phases, "phase"), (self.ordinals, "ordinal")):
            if ranges is not None:
                numbers = getattr(chunk, name)
                if numbers is None:
                    raise EnsioError(f"these events have no {name}, which needs a whole run: use Run.select")
                mask &= within_ranges(numbers, ranges)
        return mask

    def without_phases(self) -> Selection:
        """Copy this selection without its condition on phases."""
        return replace(self, phases=None)

    def apply(self, chunk: Events) -> Events:
        """Reduce events to those that are selected."""
        mask = self.mask(chunk)
        return chunk if mask.all() else chunk[mask]

    def wants_call(self, call: Call) -> bool:
        """Whether calls of this function can be selected, by operation, function and layer alone."""
        return bool(_wanted_calls(self.ops, self.calls, self.layers, (call,))[0])

    def is_of_one_layer(self, calls: Sequence[Call]) -> bool:
        """Whether all selected functions of a run, by operation, name and layer, are of one layer."""
        wanted = _wanted_calls(self.ops, self.calls, self.layers, tuple(calls))
        layers = {call.layer for call, chosen in zip(calls, wanted.tolist(), strict=True) if chosen}
        return len(layers) == 1

    def _wanted_files(self, chunk: Events) -> np.ndarray:
        """Compute which files match, of those that occur in the chunk."""
        wanted = np.zeros(len(chunk.files), dtype=bool)
        for number in np.flatnonzero(np.bincount(chunk.file)).tolist():
            path = chunk.files[number]
            wanted[number] = any(fnmatchcase(path, glob) for glob in self.file_globs or ())
        return wanted


_CONDITION = re.compile(r"\s*([a-z_-]+)\s*(?:(=|[<>]=?)\s*(.*?)\s*)?", re.DOTALL)


def _value(text: str, name: str, sign: str | None, value: str | None) -> str:
    """Return the value of a condition as a filter takes it; a sign includes or excludes whole bytes."""
    how, is_flag = RANGES.get(name), FILTERS[name].parse is bool
    try:
        if is_flag != (sign is None) or not (is_flag or value) or (how is None and sign not in (None, "=")):
            raise ValueError
        end = 0 if how is None or sign in (None, "=") else how.convert(value or "")
    except (ValueError, EnsioError):
        form = name if is_flag else f"{name}={'0-63' if name in NUMBERS else 'VALUE'}"
        form = form if how is None else f"{name}>{how.form.partition('..')[0]} or {name}={how.form}"
        raise EnsioError(f'--where "{text}" is not understood: write it as {form}') from None
    if how is None or not how.is_one:
        return value or ""
    more = (sign == ">") - (sign == "<" and not how.after) + (sign == "<=" and how.after)
    return str(end + more) if more else value or ""


def parse_where(texts: Iterable[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """Parse conditions such as ``duration>10ms``, and add the filters that are given otherwise.

    Examples
    --------
    >>> parse_where(["duration>10ms", "duration<1s", "failed"], {"op": "read"})
    {'op': 'read', 'duration': ['10ms..1s'], 'failed': True}
    """
    found = dict(given)
    for text in texts:
        match = _CONDITION.fullmatch(text)
        name, sign, value = match.groups() if match else (text, None, None)
        name = name.replace("-", "_")
        if name not in FILTERS:
            raise EnsioError(f'there is no filter "{name}": {suggestion(name, FILTERS, "it is one of")}')
        if name in given:
            raise EnsioError(f'--where "{text}": {name} has to be given once')
        value = _value(text, name, sign, value)
        values = found.setdefault(name, [])
        if sign is None:
            found[name] = True
        elif sign == "=":
            values.append(value)
        elif values and values[-1].startswith("..") and sign[0] == ">":
            values[-1] = value + values[-1]
        elif values and values[-1].endswith("..") and sign[0] == "<":
            values[-1] += value
        else:
            values.append(f"{value}.." if sign[0] == ">" else f"..{value}")
    return found


_BEYOND_SUMS = {
    "ranks": "ranks",
    "file_globs": "files",
    "times_s": "times",
    "under_way_ns": "times",
    "durations_ns": "durations",
    "offsets": "offsets",
    "rates": "rates",
    "failed": "failed calls",
    "errors": "errors",
    "regions": "regions",
    "sites": "call sites",
    "phases": "phases",
}
"""Conditions that need single calls, and their words."""


def _calls_made(run: RecordedRun) -> set[Call]:
    """Find the functions that the run called."""
    from ensembles.passes.summary import ignoring_run
    from ensembles.summaries.calltable import CallTable

    return set(run.summarize(ignoring_run(CallTable)).totals)


def _glob_of(run: RecordedRun, name: str) -> str:
    """Return the glob of the one path that ends in a name, or that of all paths that a glob may end."""
    found = [path for path in run.files if path == name or (name and path.endswith(f"/{name}"))]
    if len(found) > 1 and name not in found:
        raise EnsioError(f'"{name}" is the end of {len(found):,} paths: {suggestion("", found)}')
    if found:
        return escape(name if name in found else found[0])
    is_whole = name[:1] in ("/", "*", "") or any(fnmatchcase(path, name) for path in run.files)
    return name if is_whole else f"*/{name}"


def _numbers_of_sites(run: RecordedRun, wanted: Sequence[str]) -> tuple[int, ...]:
    """Return the numbers of the sites in a run that filters name."""
    sites = run.info.sites[1:]
    for text in wanted:
        if not any(site.matches(text) for site in sites):
            found = [site.label for site in sites]
            near = nearest_names(text, found)
            some = "; ".join(found[:5]) + ("; ..." if len(found) > 5 else "")
            question = f"did you mean {' or '.join(near)}? " if near else ""
            known = f"the run has {some}" if found else "its recorder or its format knows no call sites"
            raise EnsioError(f'there is no call site "{text}" in this run: {question}{known}')
    return tuple(site.number for site in sites if any(site.matches(text) for text in wanted))


def select_chunks(
    selection: Selection,
    phase_of: Callable[[Events], np.ndarray] | None,
    chunks: Iterator[Events],
    budget: Budget,
    path: str,
    *,
    to_sum: bool = False,
) -> Iterator[Events]:
    """Reduce the chunks of a run to the selected events.

    The events have phases and ordinals if the selection filters by them.

    `phase_of`: gives the phase of each event; None if the selection does not filter by phases. `to_sum`: the
    calls have depths among those that are selected: no others count their bytes and times.
    """
    if selection.ordinals is not None:
        chunks = with_ordinals(chunks, budget.held_events, path)
    for chunk in chunks:
        if phase_of is not None:
            chunk.with_derived(partial(_known, phase_of(chunk), chunk.ordinal))
        found = selection.apply(chunk)
        if to_sum and selection.parts_calls:
            found = (as_outermost if selection.is_of_one_layer(chunk.calls) else among_themselves)(found)
        yield found
        del chunk, found  # so that its memory can be reused for the next one


def _known(phase: np.ndarray, ordinal: np.ndarray | None, name: str) -> np.ndarray | None:
    # The ordinals are passed in: a function that held the chunk would keep it alive as a reference cycle.
    return phase if name == "phase" else ordinal


@lru_cache(maxsize=64)
def _wanted_calls(
    ops: tuple[str, ...] | None,
    names: tuple[str, ...] | None,
    layers: tuple[str, ...] | None,
    calls: tuple[Call, ...],
) -> np.ndarray:
    """Compute, once for all chunks, which functions are selected: bool, shape (len(calls),)."""
    wanted = [
        (ops is None or call.op in ops)
        and (names is None or call.name in names)
        and (layers is None or call.layer in layers)
        for call in calls
    ]
    return np.array(wanted, dtype=bool)


def _ns(seconds: float) -> int:
    """Convert to nanoseconds; infinities become ±2**62."""
    return round(max(min(seconds * 1e9, 2.0**62), -(2.0**62)))
