"""Parse filters as they are written on the command line: comma-separated texts, numbers and ranges."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np

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


def parse_sizes(text: str) -> tuple[int, int]:
    """Parse a size or a range of sizes; either end of a range may be missing.

    `low`, `high`: bytes; both are included.

    Examples
    --------
    >>> from ensembles.model.filters import parse_sizes
    >>> parse_sizes("1MiB..4MiB"), parse_sizes("..4096")
    ((1048576, 4194304), (0, 4096))
    """
    low, high, is_range = _limits(text, 2**64 - 1)
    if is_range and high < low:
        raise EnsioError(f'size "{text}" is an empty range: write the smaller size first')
    return low, high


def _limits(text: str, most: int) -> tuple[int, int, bool]:
    """Return the ends of a range of bytes as they are written, a missing one as `most`; and if it is one."""
    low_text, range_sign, high_text = text.partition("..")
    low = parse_size(low_text) if low_text.strip() or not range_sign else 0
    if not range_sign:
        return low, low, False
    return low, parse_size(high_text) if high_text.strip() else most, True


def parse_times(text: str) -> tuple[float, float]:
    """Parse a range of times; either end may be missing.

    `low`, `high`: seconds; `high` is excluded.

    Examples
    --------
    >>> from ensembles.model.filters import parse_times
    >>> parse_times("10..20"), parse_times("10..")
    ((10.0, 20.0), (10.0, inf))
    """
    low_text, range_sign, high_text = text.partition("..")
    for limit_text in (low_text, high_text):
        _check_length(limit_text.strip(), "time")
    try:
        low = float(low_text) if low_text.strip() else -math.inf
        high = float(high_text) if high_text.strip() else math.inf
    except ValueError:
        range_sign = ""
    if not range_sign:
        raise EnsioError(f'time "{text}" is not a range of seconds: write it like 10..20')
    if not low < high:
        raise EnsioError(f'time "{text}" is an empty range: write the earlier time first')
    return low, high


def parse_durations(text: str) -> tuple[int, int]:
    """Parse a range of durations; either end may be missing.

    `text`: numbers of seconds, or numbers with a unit of `TIME_UNITS`.
    `low`, `high`: nanoseconds; both are included. The end that is written is excluded, as in a range of
    times.

    Examples
    --------
    >>> from ensembles.model.filters import parse_durations
    >>> parse_durations("0.5..2"), parse_durations("10us..1.5ms"), parse_durations("..1us")
    ((500000000, 1999999999), (10000, 1499999), (0, 999))
    """
    low_text, range_sign, high_text = text.partition("..")
    low = _duration_ns(low_text) if low_text.strip() else 0
    high = _duration_ns(high_text) if high_text.strip() else HALF_INT64
    if not range_sign or low is None or high is None:
        raise EnsioError(f'duration "{text}" is not a range of durations: write it like 0.5..2 or 10ms..2s')
    if low >= high:
        raise EnsioError(f'duration "{text}" is an empty range: write the shorter duration first')
    return low, high - 1


def _duration_ns(text: str) -> int | None:
    """Convert seconds, or a number with a unit, to whole ns; None: it is not a duration."""
    match = _DURATION.fullmatch(text)
    if match is None or match[2] not in TIME_UNITS:
        return None
    _check_length(match[1], "duration")
    seconds = float(match[1]) * TIME_UNITS[match[2]]
    # As `_ns` of selections: numbers of seconds of a link mean the same here.
    return round(min(seconds * 1e9, float(HALF_INT64)))


def parse_offsets(text: str) -> tuple[int, int]:
    """Parse an offset or a range of offsets; either end of a range may be missing.

    `low`, `high`: bytes; both are included. The end of a range that is written is excluded: it is the first
    byte after the part of the file.
    `EnsioError`: the text is neither an offset nor a range of them.

    Examples
    --------
    >>> from ensembles.model.filters import parse_offsets
    >>> parse_offsets("1MiB..2MiB"), parse_offsets("4096")
    ((1048576, 2097151), (4096, 4096))
    """
    try:
        low, high, is_range = _limits(text, 2**63)
    except EnsioError as error:
        raise EnsioError(str(error).replace("size", "offset", 1)) from None
    if not is_range:
        return low, low
    if low >= high:
        raise EnsioError(f'offset "{text}" is an empty range: write the smaller offset first')
    return low, high - 1


def parse_rates(text: str) -> tuple[int, int]:
    """Parse a range of rates; either end may be missing.

    `text`: bytes per second: sizes as those of `parse_size`, also with ``/s`` behind them.
    `low`, `high`: bytes per second; `high` is excluded. Without an end, it is above all rates.

    Examples
    --------
    >>> from ensembles.model.filters import parse_rates
    >>> parse_rates("50MiB..1GiB"), parse_rates("..1kB/s")
    ((52428800, 1073741824), (0, 1000))
    """
    low_text, range_sign, high_text = (part.strip() for part in text.partition(".."))
    try:
        low, high, _ = _limits(f"{low_text.removesuffix('/s')}..{high_text.removesuffix('/s')}", NO_RATE)
    except EnsioError:
        range_sign, low, high = "", 0, 0
    if not range_sign:
        raise EnsioError(f'rate "{text}" is not a range of bytes per second: write it like 50MiB..1GiB')
    if low >= high:
        raise EnsioError(f'rate "{text}" is an empty range: write the lower rate first')
    return low, high


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
