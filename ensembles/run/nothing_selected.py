"""Why filters select nothing: what the run has instead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
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

_MOST_ERRORS = 12


class _Extent(Summary):
    """A mergeable summary: which calls, files, sizes, times and ordinals occurred."""

    columns = ("call", "file", "requested", "start", "rank", "moved")
    requires = ANY_ORDER
    results = ("calls", "files", "ranks", "moves", "size", "start_ns")

    def __init__(self) -> None:
        self.calls: set[Any] = set()
        self.files: set[str] = set()
        self.ranks: set[int] = set()
        self.moves = 0
        self.size: tuple[int, int] | None = None
        self.start_ns: tuple[int, int] | None = None

    def add(self, chunk: Events) -> None:
        """Add events."""
        if not len(chunk):
            return
        self.calls |= {chunk.calls[number] for number in np.unique(chunk.call).tolist()}
        self.files |= {chunk.files[number] for number in np.unique(chunk.file).tolist() if number}
        self.ranks |= set(np.unique(chunk.rank).tolist())
        self.moves += int(np.count_nonzero(chunk.moved > 0))
        self.size = _joined(self.size, (int(chunk.requested.min()), int(chunk.requested.max())))
        self.start_ns = _joined(self.start_ns, (int(chunk.start.min()), int(chunk.start.max())))

    def merge(self, other: _Extent) -> None:
        """Add a summary of other events of the same run."""
        self.calls |= other.calls
        self.files |= other.files
        self.ranks |= other.ranks
        self.moves += other.moves
        self.size = _joined(self.size, other.size)
        self.start_ns = _joined(self.start_ns, other.start_ns)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return ``calls`` and ``ranks``."""
        calls = sorted(call.name for call in self.calls)
        return {"calls": np.array(calls, dtype=str), "ranks": np.array(sorted(self.ranks))}


class _Ends(Summary):
    """A mergeable summary: the least and the largest value of a column, without negative ones."""

    requires = ANY_ORDER

    def __init__(self, name: str) -> None:
        self.columns = (name,)
        self._name = name
        self.ends: tuple[int, int] | None = None

    def add(self, chunk: Events) -> None:
        """Add events."""
        values = getattr(chunk, self._name)
        known = values[values >= 0]
        if len(known):
            self.ends = _joined(self.ends, (int(known.min()), int(known.max())))

    def merge(self, other: _Ends) -> None:
        """Add a summary of other events of the same run."""
        self.ends = _joined(self.ends, other.ends)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return ``ends``."""
        return {"ends": np.array(self.ends or ())}


def _ends_of(run: Run, name: str) -> tuple[int, int] | None:
    return run.summarize(ignoring_run(partial(_Ends, name))).ends


def _joined(mine: tuple[int, int] | None, other: tuple[int, int] | None) -> tuple[int, int] | None:
    if mine is None or other is None:
        return mine or other
    return min(mine[0], other[0]), max(mine[1], other[1])


def refuse_nothing(run: Run, selection: Selection, found: int) -> None:
    """Raise an error if filters match no call."""
    if not found and selection != Selection():
        raise EnsioError(why_nothing(run, selection))


def why_nothing(run: Run, selection: Selection) -> str:
    """Say in a sentence which filter matches no call of a run, and what the run has."""
    extent = run.summarize(ignoring_run(_Extent))
    extent.calls |= set(run.summarize(ignoring_run(CallTable)).totals)
    if not extent.calls:
        return f"{run.path} has no calls, so that no filter matches any"
    given = [
        (name, words)
        for name, words in _WORDS.items()
        if getattr(selection, name) != getattr(Selection(), name)
    ]
    for name, words in given:
        what = words(run, getattr(selection, name), extent)
        if _matches_nothing(run, name, selection, extent):
            return f"no call of {run.path} matches {what}"
    options = ", ".join(_OPTIONS[name] for name, _ in given)
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


def _names(of: str, noun: str) -> Callable[[Run, Any, _Extent], str]:
    def words(run: Run, wanted: Any, extent: _Extent) -> str:
        known = {getattr(call, of) for call in extent.calls}
        missing = [name for name in wanted if name not in known] or list(wanted)
        return f"--{noun} {','.join(missing)}: {suggestion(missing[0], known, 'the run has')}"

    return words


def _files(run: Run, wanted: Any, extent: _Extent) -> str:
    paths = sorted(map(sanitize_text, extent.files))
    if not paths:
        return f'--file "{wanted[0]}": the calls of the run used no files'
    text = wanted[0].strip("*")
    by_name = {path.rsplit("/", 1)[-1]: path for path in paths}
    near = [by_name[name] for name in nearest_names(text.rsplit("/", 1)[-1], by_name)] or paths[:3]
    hint = "" if "*" in wanted[0] else "; a path is absolute, or has wildcards such as '*/name'"
    used = f"the run used {count_text(len(paths), 'file')}, such as {', '.join(near)}"
    return f'--file "{wanted[0]}": {used}{hint}'


def _ranks(run: Run, wanted: Any, extent: _Extent) -> str:
    one = "rank" if len(extent.ranks) == 1 else "ranks"
    having = f"{one} {some_spans_text(find_spans(sorted(extent.ranks)))}" if extent.ranks else "no rank"
    return f"--rank {spans_text(wanted)}: the run has calls of {having}"


def _phases(run: Run, wanted: Any, extent: _Extent) -> str:
    count = 0 if run.phases is None else run.phases.count
    return f"--phase {spans_text(wanted)}: the run has {count_text(count, 'phase')}, numbered from 1"


def _ordinals(run: Run, wanted: Any, extent: _Extent) -> str:
    return f"--ordinal {spans_text(wanted)}: no task makes so many calls of one operation on one file"


def _sizes(run: Run, wanted: Any, extent: _Extent) -> str:
    low, high = extent.size or (0, 0)
    return f"--size: the calls of the run request from {size_text(low)} to {size_text(high)}"


def _times(run: Run, wanted: Any, extent: _Extent) -> str:
    low, high = extent.start_ns or (0, 0)
    return (
        f"--time: the calls of the run start from {number_text(low * S_PER_NS, 6)} to "
        f"{number_text(high * S_PER_NS, 6)} s"
    )


def _durations(run: Run, wanted: Any, extent: _Extent) -> str:
    low, high = (seconds_text(end * S_PER_NS) for end in _ends_of(run, "duration") or (0, 0))
    return f"--duration: the calls of the run take from {low} to {high}"


def _offsets(run: Run, wanted: Any, extent: _Extent) -> str:
    ends = _ends_of(run, "offset")
    if ends is None:
        return "--offset: no call of the run has a known offset"
    low, high = ends
    return f"--offset: the calls of the run begin at offsets from {size_text(low)} to {size_text(high)}"


def _rates(run: Run, wanted: Any, extent: _Extent) -> str:
    return "--rate: no call of the run moved bytes at such a rate"


def _failed(run: Run, wanted: Any, extent: _Extent) -> str:
    return "--failed: no call of the run failed"


def _errors(run: Run, wanted: Any, extent: _Extent) -> str:
    names = ",".join(map(error_name, wanted))
    found = run.summarize(ignoring_run(FailedCalls), selection=replace(Selection(), failed=True))
    having = sorted({error_name(kind.error) for kind in found.kinds() if kind.error})
    has = f"the failed calls of the run have {', '.join(having[:_MOST_ERRORS])}"
    if not having:
        has = "the trace has no errno of its failed calls" if found.count else "no call of the run failed"
    return f"--error {names}: {has}"


def _regions(run: Run, wanted: Any, extent: _Extent) -> str:
    return f"--region {', '.join(wanted)}: no call starts in it"


def _sites(run: Run, wanted: Any, extent: _Extent) -> str:
    return f"--site {', '.join(wanted)}: no call comes from there"


def _per_byte(run: Run, wanted: Any, extent: _Extent) -> str:
    return "--per-byte: no call moved bytes"


def _quantity(run: Run, wanted: Any, extent: _Extent) -> str:
    return "--quantity flight: no call posts a non-blocking request whose flight is known"


def _outermost(run: Run, wanted: Any, extent: _Extent) -> str:
    return "the outermost calls"


_WORDS: dict[str, Callable[[Run, Any, _Extent], str]] = {
    "ops": _names("op", "op"),
    "calls": _names("name", "call"),
    "layers": _names("layer", "layer"),
    "file_globs": _files,
    "ranks": _ranks,
    "sizes": _sizes,
    "times_s": _times,
    "durations_ns": _durations,
    "offsets": _offsets,
    "rates": _rates,
    "failed": _failed,
    "errors": _errors,
    "regions": _regions,
    "sites": _sites,
    "phases": _phases,
    "ordinals": _ordinals,
    "per_byte": _per_byte,
    "quantity": _quantity,
    "outermost": _outermost,
}
"""By condition: words for it, and what the run has."""

_OPTIONS = {
    "ops": "--op",
    "calls": "--call",
    "layers": "--layer",
    "file_globs": "--file",
    "ranks": "--rank",
    "sizes": "--size",
    "times_s": "--time",
    "durations_ns": "--duration",
    "offsets": "--offset",
    "rates": "--rate",
    "failed": "--failed",
    "errors": "--error",
    "regions": "--region",
    "sites": "--site",
    "phases": "--phase",
    "ordinals": "--ordinal",
    "per_byte": "--per-byte",
    "quantity": "--quantity",
    "outermost": "outermost calls",
}
