"""Filters: which calls of a run are meant.

The same filters are understood by every command and by `Run.select`. Each is a text as on the command line
(or a number, or a list of these); several choices are parted by commas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.model.events import OPS, Call, Events
from ensembles.model.filters import (
    UNITS,
    Text,
    parse_list,
    parse_names,
    parse_numbers,
    parse_size,
    parse_sizes,
    parse_times,
    within_ranges,
)
from ensembles.structure.ordinals.numbering import with_ordinals

if TYPE_CHECKING:
    from ensembles.model.regions import Spans
    from ensembles.passes.memory import Budget
    from ensembles.run.run import Run

__all__ = ["UNITS", "Filters", "Selection", "Text", "parse_size", "select_chunks"]


class Filters(TypedDict, total=False):
    """The keywords of `Selection.parse`, for calls that pass them on."""

    op: Text
    call: Text
    layer: Text
    file: str | Iterable[str] | None
    rank: Text
    size: Text
    time: Text
    region: str | Iterable[str] | None
    phase: Text
    ordinal: Text
    per_byte: bool


@dataclass(frozen=True)
class Selection:
    """Which calls are meant; what is None is not looked at.

    Attributes
    ----------
    ops, calls, layers : tuple of str or None
        Kinds of operations, names of functions, layers.
    file_globs : tuple of str or None
        Patterns for absolute paths, where ``*`` stands for anything, ``/`` too.
    ranks : tuple of (int, int) or None
        Ranges, both ends included.
    sizes : tuple of (int, int) or None
        Ranges of requested bytes, both ends included.
    times_s : tuple of (float, float) or None
        Ranges of the call's start, seconds since the origin of the run, the end not included.
    regions : tuple of str or None
        Names of phases and regions in which the call's task is when it starts.
    phases, ordinals : tuple of (int, int) or None
        Ranges of the numbers of phases and of ordinals, both ends included.
    per_byte : bool
        Only calls that moved bytes; in ensembles their durations are per MiB.
    spans : Spans or None
        When the tasks of a run are in those; `for_run` finds it out.
    """

    ops: tuple[str, ...] | None = None
    calls: tuple[str, ...] | None = None
    layers: tuple[str, ...] | None = None
    file_globs: tuple[str, ...] | None = None
    ranks: tuple[tuple[int, int], ...] | None = None
    sizes: tuple[tuple[int, int], ...] | None = None
    times_s: tuple[tuple[float, float], ...] | None = None
    regions: tuple[str, ...] | None = None
    phases: tuple[tuple[int, int], ...] | None = None
    ordinals: tuple[tuple[int, int], ...] | None = None
    per_byte: bool = False
    spans: Spans | None = field(default=None, compare=False, repr=False)

    @classmethod
    def parse(
        cls,
        *,
        op: Text = None,
        call: Text = None,
        layer: Text = None,
        file: str | Iterable[str] | None = None,
        rank: Text = None,
        size: Text = None,
        time: Text = None,
        region: str | Iterable[str] | None = None,
        phase: Text = None,
        ordinal: Text = None,
        per_byte: bool = False,
    ) -> Selection:
        """A selection from filters as they are written.

        Parameters
        ----------
        op, call, layer : str or list of str
            ``"write"``, ``"pread,pwrite"``, ``"posix"``.
        file : str or list of str
            A glob for absolute paths; a list where several are meant (a comma may be part of a path).
        rank : str or int or list of these
            ``"0-63"``, ``"0,5,8-15"``, both ends included.
        size : str or int or list of these
            Requested bytes: ``"1MiB"``, ``"1MiB..4MiB"`` (both ends included), ``"1MiB.."``, ``"..4096"``.
        time : str or list of str
            Seconds since the origin of the run in which a call starts: ``"10..20"`` (from 10, before 20),
            ``"10.."``.
        region : str or list of str
            The name of a phase or region that the program named; a list where several are meant (a comma may
            be part of a name).
        phase, ordinal : str or int or list of these
            ``"3"``, ``"4-8"``, ``"1,3-5"``, both ends included: numbers of phases, as ``ensio phases`` tells
            them; which call of its rank, operation and file it is, from 1.
        per_byte : bool
            Only calls that moved bytes; durations per MiB.

        Raises
        ------
        EnsioError
            A filter makes no sense.
        """
        return cls(
            ops=parse_names(op, "op", OPS),
            calls=parse_names(call, "call", None),
            layers=parse_names(layer, "layer", None),
            file_globs=None if file is None else (file,) if isinstance(file, str) else tuple(map(str, file)),
            ranks=parse_list(rank, partial(parse_numbers, "rank")),
            sizes=parse_list(size, parse_sizes),
            times_s=parse_list(time, parse_times),
            regions=None if region is None else (region,) if isinstance(region, str) else tuple(region),
            phases=parse_list(phase, partial(parse_numbers, "phase")),
            ordinals=parse_list(ordinal, partial(parse_numbers, "ordinal")),
            per_byte=per_byte,
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of events that are looked at; phases and ordinals aside."""
        wanted = (
            ("call", True),
            ("file", self.file_globs),
            ("rank", self.ranks or self.regions),
            ("requested", self.sizes),
            ("start", self.times_s or self.regions),
            ("moved", self.per_byte),
        )
        return tuple(name for name, needed in wanted if needed)

    @property
    def times_ns(self) -> list[tuple[int, int]] | None:
        """The ranges of starts in whole ns, both ends included."""
        if self.times_s is None:
            return None
        return [(_ns(low), _ns(high) - 1) for low, high in self.times_s]

    @property
    def needs_whole_run(self) -> bool:
        """Whether only all events of a run together tell which of them are meant."""
        return self.phases is not None or self.ordinals is not None

    def for_run(self, run: Run, from_summary: bool = False) -> Selection:
        """This selection, once it is known that all names in it are known to a run.

        Parameters
        ----------
        run : Run
        from_summary : bool
            What the events do not tell, the run's summary may.

        Raises
        ------
        EnsioError
            A name is unknown.
        """
        checked = self.checked(run.calls)
        what = "phases" if self.phases is not None and not run.has_phases else "ordinals"
        missing = what == "phases" or (self.ordinals is not None and not run.keeps_all_calls)
        if missing and not from_summary:
            raise EnsioError(
                f"{run.path} keeps not every call as an event, and {what} can be told only from all of them: "
                "record the whole run with ensio run --mode trace"
            )
        if self.regions is None:
            return checked
        for name in self.regions:
            if name not in run.regions.names:
                known = ", ".join(sorted(run.regions.names))
                remedy = f"it knows {known}" if known else "its program named none (docs: Phases and regions)"
                raise EnsioError(f'there is no phase or region "{name}" in this run: {remedy}')
        return replace(checked, spans=run.regions.named(*self.regions).spans())

    def checked(self, calls: Sequence[Call]) -> Selection:
        """This selection, once it is known that the functions and layers it names are known to a run.

        Raises
        ------
        EnsioError
            A name is unknown.
        """
        for wanted, known, what in (
            (self.calls, {call.name for call in calls}, "call"),
            (self.layers, {call.layer for call in calls}, "layer"),
        ):
            for name in wanted or ():
                if name not in known:
                    names = ", ".join(sorted(known - {"unknown"}))
                    raise EnsioError(f'there is no {what} "{name}" in this run: it knows {names}')
        return self

    def mask(self, chunk: Events) -> np.ndarray:
        """Which of these events are meant: bool, shape (n,)."""
        mask = np.ones(len(chunk), dtype=bool)
        wanted_calls = _wanted_calls(self.ops, self.calls, self.layers, chunk.calls)
        if not wanted_calls.all():
            mask &= wanted_calls[chunk.call]
        if self.file_globs is not None:
            mask &= self._wanted_files(chunk)[chunk.file]
        for ranges, name in ((self.ranks, "rank"), (self.sizes, "requested")):
            if ranges is not None:
                mask &= within_ranges(getattr(chunk, name), ranges)
        if self.times_ns is not None:
            mask &= within_ranges(chunk.start, self.times_ns)
        if self.regions is not None:
            if self.spans is None:
                raise ValueError("regions are chosen of a run: use Selection.for_run first")
            mask &= self.spans.hold(chunk.rank, chunk.start)
        if self.per_byte:
            mask &= chunk.moved > 0
        for ranges, name in ((self.phases, "phase"), (self.ordinals, "ordinal")):
            if ranges is not None:
                numbers = getattr(chunk, name)
                if numbers is None:
                    raise EnsioError(f"only a whole run tells the {name} of calls: choose with Run.select")
                mask &= within_ranges(numbers, ranges)
        return mask

    def without_phases(self) -> Selection:
        """The same selection of calls of any phase."""
        return replace(self, phases=None)

    def apply(self, chunk: Events) -> Events:
        """Those of these events that are meant."""
        mask = self.mask(chunk)
        return chunk if mask.all() else chunk[mask]

    def wants_call(self, call: Call) -> bool:
        """Whether calls of this function are meant, as far as that alone tells."""
        return bool(_wanted_calls(self.ops, self.calls, self.layers, (call,))[0])

    def _wanted_files(self, chunk: Events) -> np.ndarray:
        """Which entries of the dictionary of files match; only those that occur are looked at."""
        wanted = np.zeros(len(chunk.files), dtype=bool)
        for number in np.flatnonzero(np.bincount(chunk.file)).tolist():
            path = chunk.files[number]
            wanted[number] = any(fnmatchcase(path, glob) for glob in self.file_globs or ())
        return wanted


def select_chunks(
    selection: Selection,
    phase_of: Callable[[Events], np.ndarray] | None,
    chunks: Iterator[Events],
    budget: Budget,
    path: str,
) -> Iterator[Events]:
    """The events of a run's chunks that a selection for it chooses. They know their phases and ordinals where
    it asks for any.

    Parameters
    ----------
    selection : Selection
    phase_of : callable or None
        Events → phase of each, where the selection asks for phases.
    chunks : iterator of Events
        In the order of ranks.
    budget : Budget
        Of the pass.
    path : str
        Of the run, for messages.
    """
    if selection.ordinals is not None:
        chunks = with_ordinals(chunks, budget.held_events, path)
    for chunk in chunks:
        if phase_of is not None:
            chunk.with_derived(partial(_known, phase_of(chunk), chunk.ordinal))
        yield selection.apply(chunk)
        del chunk  # so that the memory of its columns can take the next one


def _known(phase: np.ndarray, ordinal: np.ndarray | None, name: str) -> np.ndarray | None:
    # Not asked of the chunk when it is needed: a chunk that refers to itself would be kept for long.
    return phase if name == "phase" else ordinal


@lru_cache(maxsize=64)
def _wanted_calls(
    ops: tuple[str, ...] | None,
    names: tuple[str, ...] | None,
    layers: tuple[str, ...] | None,
    calls: tuple[Call, ...],
) -> np.ndarray:
    """Which functions are meant: bool, shape (len(calls),); the same for each of many chunks."""
    wanted = [
        (ops is None or call.op in ops)
        and (names is None or call.name in names)
        and (layers is None or call.layer in layers)
        for call in calls
    ]
    return np.array(wanted, dtype=bool)


def _ns(seconds: float) -> int:
    """Nanoseconds; infinities become the ends of int64."""
    return round(max(min(seconds * 1e9, 2.0**62), -(2.0**62)))
