"""Parse filters as they are written on the command line: comma-separated texts, numbers and ranges."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np

from ensembles.model.calls import OPS
from ensembles.model.error_names import parse_error
from ensembles.model.errors import EnsioError
from ensembles.model.nearest_names import suggestion
from ensembles.model.units import HALF_INT64

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
"""Bytes of each unit of sizes."""

TIME_UNITS = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0}
"""Seconds of each unit of durations."""

NO_RATE = 1 << 63
"""End of a range of rates that has none, in bytes per second."""

_DURATION = re.compile(r"\s*((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*([a-zµ]*)\s*")
_SIZE = re.compile(r"\s*([0-9]{1,3}(?:,[0-9]{3})+|[0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")
_NUMBERS = re.compile(r"\s*([0-9]+)\s*(?:-\s*([0-9]+)\s*)?")

_MAX_DIGITS = 40
"""More digits than any quantity here needs. Python refuses to convert thousands of digits."""

Quantity = Literal["duration", "flight"]
QUANTITIES: tuple[Quantity, ...] = ("duration", "flight")
"""What ensembles are made of: the time that calls blocked, or that requests were in flight."""

Text = str | int | float | Iterable[str | int | float] | None


def parse_size(text: str) -> int:
    """Parse a size such as ``4096``, ``4,096 B``, ``1MiB`` or ``1.5 kB``.

    `text`: a number with an optional unit of `UNITS`; the case of the unit does not matter.
    `EnsioError`: the text is not a size, or not a whole number of bytes.
    """
    match = _SIZE.fullmatch(text)
    units = {unit.lower(): factor for unit, factor in UNITS.items()}
    if match is None or match[2].lower() not in units:
        known = ", ".join(unit for unit in UNITS if unit)
        raise EnsioError(f'size "{text}" is not a number of bytes: write it like 4096 or 1MiB ({known})')
    _check_length(match[1], "size")
    whole, _, fraction = match[1].replace(",", "").partition(".")
    scaled = int(whole + fraction) * units[match[2].lower()]
    divisor: int = 10 ** len(fraction)
    size, rest = divmod(scaled, divisor)
    if rest:
        raise EnsioError(f'size "{text}" is not a whole number of bytes')
    return size


def _check_length(digits: str, what: str) -> None:
    if len(digits) > _MAX_DIGITS:
        raise EnsioError(f"{what} {digits[:8]}... has {len(digits)} digits: at most {_MAX_DIGITS} make sense")


def _parts(value: Any) -> list[str]:
    if isinstance(value, str):
        return value.split(",")
    if isinstance(value, (int, float, np.number)):
        return [str(value)]
    return [part for item in value for part in _parts(item)]


def parse_names(value: Text, what: str, known: Sequence[str] | None) -> tuple[str, ...] | None:
    """Parse a list of names.

    None if `value` is None: no filter.

    Examples
    --------
    >>> from ensembles.model.filters import parse_names
    >>> parse_names("read, write", "operation", ("read", "write", "open"))
    ('read', 'write')
    """
    if value is None:
        return None
    chosen = tuple(part.strip() for part in _parts(value))
    for name in chosen:
        if not name or (known is not None and name not in known):
            remedy = suggestion(name, known, "it is one of") if known else "give a name"
            if what == "op" and remedy.startswith("it is one of"):
                remedy += "; a function, such as fsync, is chosen by --call"
            raise EnsioError(f'there is no {what} "{name}": {remedy}')
    return chosen


def parse_list(value: Text, parse: Any) -> tuple[Any, ...] | None:
    """Parse each entry of a list.

    None if `value` is None: no filter.
    """
    return None if value is None else tuple(parse(part) for part in _parts(value))


def parse_numbers(what: str, text: str) -> tuple[int, int]:
    """Parse a number or a range of numbers.

    `low`, `high`: both are included.

    Examples
    --------
    >>> from ensembles.model.filters import parse_numbers
    >>> parse_numbers("rank", "0-63"), parse_numbers("rank", "5")
    ((0, 63), (5, 5))
    """
    match = _NUMBERS.fullmatch(text)
    if match is None:
        raise EnsioError(f'{what} "{text}" is neither a number nor a range: write it like 5 or 0-63')
    for digits in match.groups(default=""):
        _check_length(digits, what)
    low, high = int(match[1]), int(match[2] or match[1])
    if high < low:
        raise EnsioError(f'{what} "{text}" is an empty range: write the smaller number first')
    return low, high


class Range(NamedTuple):
    """How ranges of a quantity are written."""

    convert: Callable[[str], Any]  # Convert the text of an end; ValueError: it is none
    least: float  # Beginning of a range without one
    most: float  # End of a range without one
    of: str  # What it is a range of
    form: str  # How one is written
    order: str  # Which end comes first
    is_one: bool = False  # Whether a number alone is a range, too
    after: int = 0  # How far behind the largest value the end lies


def parse_range(name: str, text: str) -> tuple[Any, Any]:
    """Parse a range of one of `RANGES`; either end may be missing.

    Sizes and a single number include their end, which is else excluded. Of durations and offsets, the
    largest value is returned; times and rates are compared with their excluded end.

    Returns
    -------
    low, high : int or float
        Bytes, s of times, ns of durations, bytes/s of rates.

    Examples
    --------
    >>> from ensembles.model.filters import parse_range
    >>> parse_range("size", "1MiB..4MiB"), parse_range("size", "..4096")
    ((1048576, 4194304), (0, 4096))
    >>> parse_range("time", "10.."), parse_range("rate", "..1kB/s")
    ((10.0, inf), (0, 1000))
    >>> parse_range("duration", "10us..1.5ms"), parse_range("offset", "1MiB..2MiB")
    ((10000, 1499999), (1048576, 2097151))
    """
    how, is_range = RANGES[name], ".." in text
    ends = [end.strip() for end in text.partition("..")[::2]]
    try:
        if how.is_one and not is_range:
            return (how.convert(text),) * 2
        low = how.convert(ends[0]) if ends[0] else how.least
        high = how.convert(ends[1]) if ends[1] else how.most
    except EnsioError as error:
        raise EnsioError(str(error).replace("size", name, 1)) from None
    except ValueError:
        is_range = False
    if not is_range:
        raise EnsioError(f'{name} "{text}" is not a range of {how.of}: write it like {how.form}')
    if low >= high + (name == "size"):
        raise EnsioError(f'{name} "{text}" is an empty range: write the {how.order} {name} first')
    return low, high - how.after


def _seconds(text: str) -> float:
    _check_length(text, "time")
    return float(text)


def _duration_ns(text: str) -> int:
    """Convert seconds, or a number with a unit, to whole ns."""
    match = _DURATION.fullmatch(text)
    if match is None or match[2] not in TIME_UNITS:
        raise ValueError
    _check_length(match[1], "duration")
    seconds = float(match[1]) * TIME_UNITS[match[2]]
    # As `_ns` of selections: numbers of seconds of a link mean the same here.
    return round(min(seconds * 1e9, float(HALF_INT64)))


def _rate(text: str) -> int:
    try:
        return parse_size(text.removesuffix("/s"))
    except EnsioError as error:
        raise ValueError from error


RANGES = {
    "size": Range(parse_size, 0, 2**64 - 1, "bytes", "1MiB..4MiB", "smaller", is_one=True),
    "time": Range(_seconds, -math.inf, math.inf, "seconds", "10..20", "earlier"),
    "duration": Range(_duration_ns, 0, HALF_INT64, "durations", "10ms..2s", "shorter", after=1),
    "offset": Range(parse_size, 0, 2**63, "bytes", "1MiB..2MiB", "smaller", is_one=True, after=1),
    "rate": Range(_rate, 0, NO_RATE, "bytes per second", "50MiB..1GiB", "lower"),
}
"""Quantities whose ranges have units."""


def within_rates(moved: np.ndarray, duration_ns: np.ndarray, ranges: Iterable[tuple[int, int]]) -> np.ndarray:
    """Test which calls moved bytes at a rate of at least one range.

    `moved`, `duration_ns`: bytes that each call moved, and its duration. A call of 0 ns is faster than every
    rate.

    Examples
    --------
    >>> import numpy as np
    >>> from ensembles.model.filters import within_rates
    >>> within_rates(np.array([0, 100, 300]), np.array([1, 10**9, 10**9]), [(100, 300)])
    array([False,  True, False])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = np.where(moved > 0, moved * 1e9 / duration_ns, -1.0)
    mask = np.zeros(len(rates), bool)
    for low, high in ranges:
        mask |= (rates >= low) & ((rates < high) | (high >= NO_RATE))
    return mask


def checked_quantity(quantity: str) -> Quantity:
    """Return `quantity`, which must be ``"duration"`` or ``"flight"``."""
    for known in QUANTITIES:
        if quantity == known:
            return known
    raise EnsioError(f'calls have no quantity "{quantity}": choose {" or ".join(QUANTITIES)}')


def within_ranges(values: np.ndarray, ranges: Iterable[tuple[int, int]]) -> np.ndarray:
    """Test which integers lie in at least one range.

    `ranges`: lowest and highest value of each range; both are included.
    """
    limits = np.iinfo(values.dtype)
    mask = np.zeros(len(values), dtype=bool)
    for low, high in ranges:
        if low <= limits.max and high >= limits.min:
            mask |= (values >= max(low, limits.min)) & (values <= min(high, limits.max))
    return mask


class Filter(NamedTuple):
    """A filter of commands and of `Run.select`."""

    attribute: str  # Of `ensembles.run.selection.Selection`
    parse: Callable[[Any], Any]  # Parse what the user writes


def _numbers(what: str) -> Callable[[Any], Any]:
    return partial(parse_list, parse=partial(parse_numbers, what))


def _ranges(name: str) -> Callable[[Any], Any]:
    return partial(parse_list, parse=partial(parse_range, name))


def _texts(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(map(str, value))


NUMBERS = ("rank", "phase", "ordinal")
"""Filters of whole numbers, whose ranges include their ends."""

FILTERS = {
    "op": Filter("ops", partial(parse_names, what="op", known=OPS)),
    "call": Filter("calls", partial(parse_names, what="call", known=None)),
    "layer": Filter("layers", partial(parse_names, what="layer", known=None)),
    "file": Filter("file_globs", _texts),
    "rank": Filter("ranks", _numbers("rank")),
    "size": Filter("sizes", _ranges("size")),
    "time": Filter("times_s", _ranges("time")),
    "duration": Filter("durations_ns", _ranges("duration")),
    "offset": Filter("offsets", _ranges("offset")),
    "rate": Filter("rates", _ranges("rate")),
    "failed": Filter("failed", bool),
    "error": Filter("errors", partial(parse_list, parse=parse_error)),
    "region": Filter("regions", _texts),
    "site": Filter("sites", _texts),
    "phase": Filter("phases", _numbers("phase")),
    "ordinal": Filter("ordinals", _numbers("ordinal")),
    "per_byte": Filter("per_byte", bool),
}
"""All filters by name."""

WITH_OPTION = ("op", "call", "layer", "file", "rank", "size", "time", "phase", "per_byte")
"""Filters with an option of their name; ``--where`` takes all."""
