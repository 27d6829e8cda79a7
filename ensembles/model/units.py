"""Numbers with units, and short lists of sentences, for people."""

from __future__ import annotations

from collections.abc import Sequence

BINARY_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
"""Units of bytes, each 1024 times the one before."""


def bytes_text(count: float) -> str:
    """Bytes with a binary unit: ``512 B``, ``1.00 MiB``."""
    if abs(count) < 1024:
        return f"{count:.0f} B"
    power = 0
    while abs(count) >= 1023.995 and power < len(BINARY_UNITS) - 1:
        count /= 1024
        power += 1
    return f"{_three_digits(count)} {BINARY_UNITS[power]}"


def size_text(count: int) -> str:
    """Bytes, in the largest binary unit that tells them exactly: ``1 MiB``, ``1000 B``."""
    power = 0
    while count and count % 1024 == 0 and power < len(BINARY_UNITS) - 1:
        count //= 1024
        power += 1
    return f"{count} {BINARY_UNITS[power]}"


def seconds_text(seconds: float) -> str:
    """Seconds with a unit that suits them: ``1.25 ms``, ``3.4 s``, ``1 h 02 min``."""
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


def count_text(count: int, noun: str) -> str:
    """A number of things: ``1 task``, ``10,240 tasks``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _three_digits(value: float) -> str:
    if abs(value) >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 9.995 else f"{value:.2f}"


def few(sentences: Sequence[str], what: str) -> list[str]:
    """The first sentences, and how many more there are."""
    if len(sentences) <= 3:
        return list(sentences)
    return [*sentences[:2], f"{len(sentences) - 2} more {what}"]
