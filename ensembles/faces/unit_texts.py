"""How values are written, by the names of their units."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.units import bytes_text, number_text, ratio_text, seconds_text, share_text, size_text

UNITS: dict[str, Callable[[Any], str]] = {
    "": lambda value: sanitize_text(str(value)),
    "clause": lambda value: capital(sanitize_text(value)),
    "s": seconds_text,
    "s/MiB": lambda value: f"{seconds_text(value)}/MiB",
    "bytes": bytes_text,
    "bytes exactly": size_text,
    "bytes/s": lambda value: f"{bytes_text(value)}/s",
    "share": share_text,
    "share to 0.1 %": lambda value: share_text(value, 1),
    "share to 3 digits": lambda value: share_text(value, None),
    "share and interval": lambda value: _share(*value),
    "level": lambda value: f"{100 * value:g} %",
    "ratio": ratio_text,
    "ratio and interval": lambda value: ratio_text(value[0]) + _interval(*value[1:]),
    "change and interval": lambda value: _change(*value),
    "p": lambda value: f"{value:.2g}",
    "number": number_text,
    "time": lambda value: f"{value:%Y-%m-%d %H:%M:%S}",
    "to 0.01": lambda value: f"{value:z.2f}",
    "spread in log": lambda value: f"± {share_text(value)}" if value < 1 else f"× {math.exp(value):.1f}",
    "rate in time": lambda value: _rate_in_time(*value),
    "s of rank": lambda value: (
        seconds_text(value[0]) + (f" (rank {value[1]})" if value[1] >= 0 and value[0] > 0 else "")
    ),
    "of all": lambda value: _of_all(*value),
    "moment": lambda value: f"{value:z.3f}",
    "moment to 0.1 s": lambda value: f"{value:z.1f}",
    "count": lambda value: f"{value:,}",
    "file": lambda value: sanitize_text(os.path.basename(value)),
    "part": lambda value: f"{value[0]:,} ({share_text(value[0] / value[1], None)})",
}


def capital(text: str) -> str:
    """Begin a text with a capital."""
    return text[:1].upper() + text[1:]


WIDEST = 30.0
"""Intervals of ratios that are wider are not written."""


def _interval(low: float | None, high: float | None) -> str:
    """Write the interval of a ratio; "" if it is not known."""
    if low is None or high is None:
        return ""
    if not high <= WIDEST * low:
        return " (the interval is too wide)"
    ends = [ratio_text(end).removeprefix("× ") for end in (low, high)]
    return f" ({ends[0]} to {ends[1]})"


def _change(change: float, low: float | None, high: float | None) -> str:
    """Write the difference of two shares, and its interval if it is known."""
    interval = "" if low is None or high is None else f" ({low * 100:+.1f} to {high * 100:+.1f})"
    return f"{change * 100:+.1f} %{interval}"


def _share(share: float, low: float, high: float) -> str:
    """Write a share, and its interval if it has one."""
    text = share_text(share, 1)
    return text if low == high else f"{text} ({100 * low:.1f} – {100 * high:.1f})"


def _rate_in_time(rate: float, time_s: float, rank: int | None) -> str:
    """Write a rate, the time that it is by, and whose time that is."""
    return f"{bytes_text(rate)}/s in {seconds_text(time_s)}" + ("" if rank is None else f" (rank {rank})")


def _of_all(count: float, whole: int | None) -> str:
    """Write an effective number: with a decimal where rounding hides that it is most of the whole."""
    digits = int(whole is not None and round(count) <= whole / 2 < count)
    return f"{count:.{digits}f}" if whole is None else f"{count:.{digits}f}/{whole}"
