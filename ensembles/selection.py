"""Filters: which calls of a run are meant.

The same filters are understood by every command and by `Run.select`. Each is a text as on the command line
(or a number, or a list of these); several choices are parted by commas.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.errors import EnsioError
from ensembles.events import OPS, Call, Events

if TYPE_CHECKING:
    from ensembles.regiontable import Spans
    from ensembles.run import Run

UNITS = {
    "": 1,
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "TiB": 1 << 40,
}
"""Units of sizes, and how many bytes each has."""

_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")
_NUMBERS = re.compile(r"\s*([0-9]+)\s*(?:-\s*([0-9]+)\s*)?")

_MAX_DIGITS = 40
"""More digits than any quantity here has; Python itself refuses to convert some thousands."""

Text = str | int | float | Iterable[str | int | float] | None


def parse_size(text: str) -> int:
    """Bytes of a size such as ``4096``, ``1MiB`` or ``1.5 kB``.

    Raises
    ------
    EnsioError
        It is no size, or not a whole number of bytes.
    """
    match = _SIZE.fullmatch(text)
    units = {unit.lower(): factor for unit, factor in UNITS.items()}
    if match is None or match[2].lower() not in units:
        known = ", ".join(unit for unit in UNITS if unit)
        raise EnsioError(f'size "{text}" is no number of bytes: write it like 4096 or 1MiB ({known})')
    _check_length(match[1], "size")
    whole, _, fraction = match[1].partition(".")
    scaled = int(whole + fraction) * units[match[2].lower()]
    size, rest = divmod(scaled, 10 ** len(fraction))
    if rest:
        raise EnsioError(f'size "{text}" is not a whole number of bytes')
    return size


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
        file: Text = None,
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
            ops=_names(op, "op", OPS),
            calls=_names(call, "call", None),
            layers=_names(layer, "layer", None),
            file_globs=None if file is None else tuple([file] if isinstance(file, str) else map(str, file)),
            ranks=_each(rank, partial(_parse_numbers, "rank")),
            sizes=_each(size, _parse_sizes),
            times_s=_each(time, _parse_times),
            regions=None if region is None else (region,) if isinstance(region, str) else tuple(region),
            phases=_each(phase, partial(_parse_numbers, "phase")),
            ordinals=_each(ordinal, partial(_parse_numbers, "ordinal")),
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
        what = "phases" if self.phases is not None and not run.tells_phases else "ordinals"
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
        if self.times_s is not None:
            mask &= within_ranges(chunk.start, [(_ns(low), _ns(high) - 1) for low, high in self.times_s])
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

    def of(self, chunk: Events) -> Events:
        """Those of these events that are meant."""
        mask = self.mask(chunk)
        return chunk if mask.all() else chunk[mask]

    def wants_call(self, call: Call) -> bool:
        """Whether calls of this function are meant, as far as that alone tells."""
        return bool(_wanted_calls(self.ops, self.calls, self.layers, (call,))[0])

    def _wanted_files(self, chunk: Events) -> np.ndarray:
        """Which entries of the dictionary of files match; only those that occur are looked at."""
        wanted = np.zeros(len(chunk.files), dtype=bool)
        for number in np.flatnonzero(np.bincount(chunk.file)):
            path = chunk.files[number]
            wanted[number] = any(fnmatchcase(path, glob) for glob in self.file_globs or ())
        return wanted


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


def _check_length(digits: str, what: str) -> None:
    if len(digits) > _MAX_DIGITS:
        raise EnsioError(f"{what} {digits[:8]}... has {len(digits)} digits: at most {_MAX_DIGITS} make sense")


def within_ranges(values: np.ndarray, ranges: Iterable[tuple[int, int]]) -> np.ndarray:
    """Which of some integers lie in one of these ranges, both ends included: bool, shape (n,)."""
    limits = np.iinfo(values.dtype)
    mask = np.zeros(len(values), dtype=bool)
    for low, high in ranges:
        if low <= limits.max and high >= limits.min:
            mask |= (values >= max(low, limits.min)) & (values <= min(high, limits.max))
    return mask


def _ns(seconds: float) -> int:
    """Nanoseconds; infinities become the ends of int64."""
    return round(max(min(seconds * 1e9, 2.0**62), -(2.0**62)))


def _parts(value: Any) -> list[str]:
    if isinstance(value, str):
        return value.split(",")
    if isinstance(value, (int, float, np.number)):
        return [str(value)]
    return [part for item in value for part in _parts(item)]


def _names(value: Text, what: str, known: Sequence[str] | None) -> tuple[str, ...] | None:
    if value is None:
        return None
    names = tuple(part.strip() for part in _parts(value))
    for name in names:
        if not name or (known is not None and name not in known):
            remedy = f"it is one of {', '.join(known)}" if known else "give a name"
            raise EnsioError(f'there is no {what} "{name}": {remedy}')
    return names


def _each(value: Text, parse: Any) -> tuple[Any, ...] | None:
    return None if value is None else tuple(parse(part) for part in _parts(value))


def _parse_numbers(what: str, text: str) -> tuple[int, int]:
    match = _NUMBERS.fullmatch(text)
    if match is None:
        raise EnsioError(f'{what} "{text}" is no number and no range: write it like 5 or 0-63')
    for digits in match.groups(default=""):
        _check_length(digits, what)
    low, high = int(match[1]), int(match[2] or match[1])
    if high < low:
        raise EnsioError(f'{what} "{text}" is an empty range: write the smaller number first')
    return low, high


def _parse_sizes(text: str) -> tuple[int, int]:
    low_text, range_sign, high_text = text.partition("..")
    low = parse_size(low_text) if low_text.strip() or not range_sign else 0
    if not range_sign:
        return low, low
    high = parse_size(high_text) if high_text.strip() else 2**64 - 1
    if high < low:
        raise EnsioError(f'size "{text}" is an empty range: write the smaller size first')
    return low, high


def _parse_times(text: str) -> tuple[float, float]:
    low_text, range_sign, high_text = text.partition("..")
    for limit_text in (low_text, high_text):
        _check_length(limit_text.strip(), "time")
    try:
        low = float(low_text) if low_text.strip() else -math.inf
        high = float(high_text) if high_text.strip() else math.inf
    except ValueError:
        range_sign = ""
    if not range_sign:
        raise EnsioError(f'time "{text}" is no range of seconds: write it like 10..20')
    if not low < high:
        raise EnsioError(f'time "{text}" is an empty range: write the earlier time first')
    return low, high
