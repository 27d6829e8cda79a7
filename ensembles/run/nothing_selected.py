"""Why filters select nothing: what the run has instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.model.error_names import error_name
from ensembles.model.errors import EnsioError
from ensembles.model.events import Events
from ensembles.model.nearest_names import nearest_names, suggestion
from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.spans import find_spans, some_spans_text, spans_text
from ensembles.model.units import S_PER_NS, count_text, number_text, seconds_text, size_text
from ensembles.passes.summary import ANY_ORDER, Summary, ignoring_run
from ensembles.run.selection import Selection
from ensembles.summaries.calltable import CallTable
from ensembles.summaries.failed_calls import FailedCalls

if TYPE_CHECKING:
    from ensembles.run.run import Run

_MEASURED = ("requested", "start", "duration", "offset")


class _Extent(Summary):
    """A mergeable summary: which calls, files and ranks occurred, and the ends of `_MEASURED` columns."""

    columns = ("call", "file", "rank", *_MEASURED)
    requires = ANY_ORDER

    def __init__(self) -> None:
        self.calls: set[Any] = set()
        self.files: set[str] = set()
        self.ranks: set[int] = set()
        self.ends: dict[str, tuple[int, int]] = {}

    def add(self, chunk: Events) -> None:
        """Add events."""
        self.calls |= {chunk.calls[number] for number in np.unique(chunk.call).tolist()}
        self.files |= {chunk.files[number] for number in np.unique(chunk.file).tolist() if number}
        self.ranks |= set(np.unique(chunk.rank).tolist())
        for name in _MEASURED:
            values = getattr(chunk, name)
            known = values[values >= 0] if name == "offset" else values
            if len(known):
                self._widen(name, (int(known.min()), int(known.max())))

    def _widen(self, name: str, ends: tuple[int, int]) -> None:
        low, high = self.ends.get(name, ends)
        self.ends[name] = min(low, ends[0]), max(high, ends[1])

    def merge(self, other: _Extent) -> None:
        """Add a summary of other events of the same run."""
        self.calls |= other.calls
        self.files |= other.files
        self.ranks |= other.ranks
        for name, ends in other.ends.items():
            self._widen(name, ends)

    def span(self, name: str, text: Callable[[Any], str]) -> str:
        """Return the ends of a column as texts."""
        low, high = self.ends.get(name, (0, 0))
        return f"from {text(low)} to {text(high)}"


def refuse_nothing(run: Run, selection: Selection, found: int) -> None:
    """Raise an error if filters match no call."""
    if not found and selection != Selection():
        raise EnsioError(why_nothing(run, selection))


def not_nothing(run: Run, selection: Selection, parts: Iterator[Events]) -> Iterator[Events]:
    """Return the selected events, of which the first are read before anything is written."""
    first = list(islice((part for part in parts if len(part)), 1))
    refuse_nothing(run, selection, len(first))
    return chain(first, parts)


def why_nothing(run: Run, selection: Selection) -> str:
    """Say in a sentence which filter matches no call of a run, and what the run has."""
    extent = run.summarize(ignoring_run(_Extent))
    extent.calls |= set(run.summarize(ignoring_run(CallTable)).totals)
    if not extent.calls:
        return f"{run.path} has no calls, so that no filter matches any"
    given = [name for name in _CONDITIONS if getattr(selection, name) != getattr(Selection(), name)]
    for name in given:
        if _matches_nothing(run, name, selection, extent):
            option, words = _CONDITIONS[name]
            said = words(run, getattr(selection, name), extent)
            said = said.replace(" ", "=", 1) if option.startswith("--where") and said[0] == " " else said
            return f"no call of {run.path} matches {option}{said}"
    options = ", ".join(_CONDITIONS[name][0] for name in given)
    return f"no call of {run.path} matches all filters together ({options}): leave one out"


def _matches_nothing(run: Run, name: str, selection: Selection, extent: _Extent) -> bool:
    """Whether a condition alone matches no call."""
    wanted = getattr(selection, name)
    if name in ("ops", "calls", "layers"):
        of = {"ops": "op", "calls": "name", "layers": "layer"}[name]
        return not {getattr(call, of) for call in extent.calls} & set(wanted)
    alone = replace(Selection(), **{name: wanted})
    if alone.needs_whole_run and run.reading.phases_of_calls is None:
        return True
    return not run.summarize(ignoring_run(_Extent), selection=alone.for_run(run)).calls


def _names(of: str) -> Callable[[Run, Any, _Extent], str]:
    def words(run: Run, wanted: Any, extent: _Extent) -> str:
        known = {getattr(call, of) for call in extent.calls}
        missing = [name for name in wanted if name not in known] or list(wanted)
        return f" {','.join(missing)}: {suggestion(missing[0], known, 'the run has')}"

    return words


def _files(run: Run, wanted: Any, extent: _Extent) -> str:
    paths = sorted(map(sanitize_text, extent.files))
    if not paths:
        return f' "{wanted[0]}": the calls of the run used no files'
    text = wanted[0].strip("*")
    by_name = {path.rsplit("/", 1)[-1]: path for path in paths}
    near = [by_name[name] for name in nearest_names(text.rsplit("/", 1)[-1], by_name)] or paths[:3]
    used = f"the run used {count_text(len(paths), 'file')}, such as {', '.join(near)}"
    return f' "{wanted[0]}": {used}'


def _ranks(run: Run, wanted: Any, extent: _Extent) -> str:
    one = "rank" if len(extent.ranks) == 1 else "ranks"
    having = f"{one} {some_spans_text(find_spans(sorted(extent.ranks)))}" if extent.ranks else "no rank"
    return f" {spans_text(wanted)}: the run has calls of {having}"


def _phases(run: Run, wanted: Any, extent: _Extent) -> str:
    count = 0 if run.phases is None else run.phases.count
    return f" {spans_text(wanted)}: the run has {count_text(count, 'phase')}, numbered from 1"


def _errors(run: Run, wanted: Any, extent: _Extent) -> str:
    names = ",".join(map(error_name, wanted))
    found = run.summarize(ignoring_run(FailedCalls), selection=replace(Selection(), failed=True))
    having = sorted({error_name(kind.error) for kind in found.kinds() if kind.error})
    has = f"the failed calls of the run have {', '.join(having)}"
    if not having:
        has = "the trace has no errno of its failed calls" if found.count else "no call of the run failed"
    return f" {names}: {has}"


def _offsets(run: Run, wanted: Any, extent: _Extent) -> str:
    if "offset" not in extent.ends:
        return ": no call of the run has a known offset"
    return f": the calls of the run begin at offsets {extent.span('offset', size_text)}"


def _says(what: str) -> Callable[[Run, Any, _Extent], str]:
    return lambda run, wanted, extent: what


_CONDITIONS: dict[str, tuple[str, Callable[[Run, Any, _Extent], str]]] = {
    "ops": ("--op", _names("op")),
    "calls": ("--call", _names("name")),
    "layers": ("--layer", _names("layer")),
    "file_globs": ("--file", _files),
    "ranks": ("--rank", _ranks),
    "sizes": (
        "--size",
        lambda run, wanted, extent: f": the calls of the run request {extent.span('requested', size_text)}",
    ),
    "times_s": (
        "--time",
        lambda run, wanted, extent: (
            f": the calls of the run start {extent.span('start', lambda ns: number_text(ns * S_PER_NS, 6))} s"
        ),
    ),
    "durations_ns": (
        "--where duration",
        lambda run, wanted, extent: (
            f": the calls of the run take {extent.span('duration', lambda ns: seconds_text(ns * S_PER_NS))}"
        ),
    ),
    "offsets": ("--where offset", _offsets),
    "rates": ("--where rate", _says(": no call of the run moved bytes at such a rate")),
    "failed": ("--where failed", _says(": no call of the run failed")),
    "errors": ("--where error", _errors),
    "regions": ("--where region", lambda run, wanted, extent: f" {', '.join(wanted)}: no call starts in it"),
    "sites": ("--where site", lambda run, wanted, extent: f" {', '.join(wanted)}: no call comes from there"),
    "phases": ("--phase", _phases),
    "ordinals": (
        "--where ordinal",
        lambda run, wanted, extent: (
            f" {spans_text(wanted)}: no task makes so many calls of one operation on one file"
        ),
    ),
    "per_byte": ("--per-byte", _says(": no call moved bytes")),
    "quantity": (
        "--quantity",
        _says(" flight: no call posts a non-blocking request whose flight is known"),
    ),
    "outermost": ("the outermost calls", _says("")),
}
"""By condition: its option, and words for its value and what the run has."""
