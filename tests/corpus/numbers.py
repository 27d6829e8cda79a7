"""Numbers in the texts of commands, and whether the JSON of the same command has them."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_SECONDS = {"ns": 1e-9, "µs": 1e-6, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_BYTES = {"B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40, "PiB": 2.0**50}
_UNITS = {**_SECONDS, **_BYTES, "%": 0.01}
_NUMBER = re.compile(
    r"(?<![\w.,/:+*\-])(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?(e[+-]?\d+)?"
    r"(?:[  ]?(ns|µs|us|ms|s|min|h|B|KiB|MiB|GiB|TiB|PiB|%)(?!\w|\.\w))?(?![\w*]|:\d|\.\w|-\d|/\d)"
)
_RANKS = re.compile(r"\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*")
_COMPOSITE = re.compile(r"(\d[\d,]*) (min|h) (\d+) (s|min)\b")


_BOUND = re.compile(r"([<>])\s(\d+(?:\.\d+)?) %")  # of a share that is not 0, or not all

_LIMITS = (20, 30, 40, 50)
"""Rows that tables show: they say how many more there are."""


@dataclass(frozen=True)
class Told:
    """A number in a text: its value in SI units, and half a unit of its last digit."""

    text: str
    value: float
    half: float


def numbers_in(text: str) -> Iterator[Told]:
    """All numbers of a text, with their units."""
    for match in _COMPOSITE.finditer(text):
        value = float(match[1].replace(",", "")) * _SECONDS[match[2]] + float(match[3]) * _SECONDS[match[4]]
        yield Told(match[0], value, 0.5 * _SECONDS[match[4]])
    for match in _BOUND.finditer(text):
        low, high = (0.0, float(match[2]) / 100) if match[1] == "<" else (float(match[2]) / 100, 1.0)
        yield Told(match[0], (low + high) / 2, (high - low) / 2)
    for match in _NUMBER.finditer(_COMPOSITE.sub(" ", _BOUND.sub(" ", text))):
        digits, exponent = match[2] or ".", int((match[3] or "e0")[1:])
        scale = _UNITS[match[4]] if match[4] else 1.0
        value = float(match[1].replace(",", "") + (match[2] or "") + (match[3] or "")) * scale
        yield Told(match[0], value, 0.5 * 10.0 ** (exponent - len(digits) + 1) * scale)


class Known:
    """The numbers of a JSON text: its values, those in its sentences, and the lengths of its lists."""

    def __init__(self, result: Any, *more: str) -> None:
        values: set[float] = set()
        for value in _leaves(result):
            if isinstance(value, bool) or value is None:
                continue
            if isinstance(value, str):
                values |= {told.value for told in numbers_in(value)}
                if _RANKS.fullmatch(value):
                    values |= set(map(float, re.findall(r"\d+", value)))
                name = value.rpartition("/")[2]  # a file may be named by a number
                values |= {float(name)} if name.isdecimal() else set()
            else:
                values |= {abs(float(value)), abs(1 - float(value))}
        for text in more:
            values |= {told.value for told in numbers_in(text)}
        self._sorted = sorted(values)

    def has(self, told: Told) -> bool:
        """Whether a number of the text is one of these, rounded."""
        slack = told.half * 1.001 + 1e-9 * abs(told.value) + 1e-15
        low = bisect_left(self._sorted, told.value - slack)
        return low < bisect_right(self._sorted, told.value + slack)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for key, below in value.items():
            yield key
            yield from _leaves(below)
    elif isinstance(value, list):
        yield len(value)
        yield from (len(value) - limit for limit in _LIMITS if len(value) > limit)
        for below in value:
            yield from _leaves(below)
    else:
        yield value
