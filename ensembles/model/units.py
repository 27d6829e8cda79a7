"""Numbers with units, and shortened lists of sentences, as text for people."""

from __future__ import annotations

import math
from collections.abc import Sequence

BINARY_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
"""Units of bytes; each is 1024 times the one before it."""

MOST_TASKS = 1 << 24
MOST_THREADS = MOST_CALLS = 0xFFFF
"""Bounds of a plausible job; numbers of threads and of functions have 16 bits."""

LATEST_S, LONGEST_S = 1 << 33, 1e9
"""Bounds of a plausible time since 1970, and of a plausible duration."""

DEFLATE_RATIO = 1032  # Zlib makes at most so many bytes of one
LARGEST_INT64 = (1 << 63) - 1
HALF_INT64 = 1 << 62  # Two numbers below it add up within 64 bits: larger ones in a file are damage
MIB = float(1 << 20)  # Bytes
NS_PER_S, S_PER_NS, DAY_S = 1e9, 1e-9, 86_400

MOST_NAMED = 3
"""Names that a sentence lists; any others are counted."""

MOST_ROWS = 20
"""Rows of a table that shows the first ones only."""

ROWS_AT_ONCE = 1 << 15
"""Rows, events or tasks that a loop takes at a time: what is computed of them stays in the cache."""

BYTES_AT_ONCE = 1 << 20
"""Bytes that are read, written or held at a time, and the most of a line of text."""

HELD_EVENTS = 1 << 22
"""Events that are held in memory, read for a picture or sorted there: their columns take 0.1 to 0.4 GB."""

SCREEN_CELLS = 1024
"""Cells along an axis of a picture: about the pixels of a screen."""

AT_ONCE = 1 << 20
"""Pieces that are computed at once: their arrays take some 100 MiB."""

STRACE = "strace -f -ttt -T -y -o FILE records it (ensio info FILE)"
"""What to do about I/O that the recorder cannot see."""


def bytes_text(count: float) -> str:
    """Format a number of bytes to three digits with a binary unit."""
    if abs(count) < 1024:
        return f"{count:,.0f} B"
    power = 0
    while abs(count) >= 1023.5 and power < len(BINARY_UNITS) - 1:
        count /= 1024
        power += 1
    return f"{_three_digits(count)} {BINARY_UNITS[power]}"


def size_text(count: int) -> str:
    """Format a number of bytes exactly, in the largest binary unit that has an integer value.

    Examples
    --------
    >>> from ensembles.model.units import size_text
    >>> size_text(2**20), size_text(1000)
    ('1 MiB', '1,000 B')
    """
    power = 0
    while count and count % 1024 == 0 and power < len(BINARY_UNITS) - 1:
        count //= 1024
        power += 1
    return f"{count:,} {BINARY_UNITS[power]}"


def seconds_text(seconds: float) -> str:
    """Format a time in seconds to three digits with a unit from ns to h."""
    size = abs(seconds)
    if size >= 3600:
        hours, minutes = divmod(round(seconds / 60), 60)
        return f"{hours} h {minutes:02d} min"
    if size >= 120:
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes} min {rest:02d} s"
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if size >= 0.9995 * scale:
            return f"{_three_digits(seconds / scale)} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def number_text(value: float, digits: int = 3) -> str:
    """Format a number to some digits, or to a whole number if that has more."""
    whole = 10**digits - 0.5 <= abs(value) < math.inf
    return f"{value:,.0f}" if whole else f"{value:,.{digits}g}"


def ratio_text(ratio: float) -> str:
    """Format a ratio to three digits, or to a whole number if that has more."""
    return f"× {number_text(ratio)}"


def count_text(count: int, noun: str) -> str:
    """Format a count with its noun, in the plural if the count is not 1."""
    plural = "es" if noun.endswith("s") else "s"
    return f"{count:,} {noun}{'' if count == 1 else plural}"


def _three_digits(value: float) -> str:
    if abs(value) >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 9.995 else f"{value:.2f}"


def few(sentences: Sequence[str], what: str) -> list[str]:
    """Shorten a list to two sentences and the number of the others."""
    if len(sentences) <= 3:
        return list(sentences)
    return [*sentences[:2], f"{len(sentences) - 2} more {what}"]


def share_text(share: float, digits: int | None = 0) -> str:
    """Format a share as a percentage.

    `digits`: after the decimal point, as in a column of a table. None: one, where it is not zero. Shares are
    not rounded to nothing, and those of nearly all not to everything.
    """
    places = 1 if digits is None else digits
    percent, least = round(100 * share, places), 10.0**-places
    if share > 0 == percent:
        return f"< {least:g} %"
    if share < 1 and percent == 100:
        return f"> {100 - least:g} %"
    return f"{percent:g} %" if digits is None else f"{percent:.{places}f} %"
