"""What a reader of the explorer looks at: a run, filters, and the calls marked with the mouse.

A view is the query of a link, a command, and a line of Python.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from ensembles.model.errors import EnsioError
from ensembles.model.filters import parse_list, parse_numbers, parse_times

FILTERS = ("op", "call", "layer", "file", "rank", "size", "time", "phase", "ordinal")
"""Filters of the explorer, named as on the command line."""

_MOST_CHARACTERS = 1000

Interval = tuple[float, float]


@dataclass(frozen=True)
class View:
    """What is shown.

    Attributes
    ----------
    run : int
        Number of the run, from 0.
    filters : mapping of str to str
        Filters that are not empty, by name, as on the command line.
    time_s : (float, float) or None
        Marked calls start from the first of these times, before the second. Seconds since the origin.
    ranks : (int, int) or None
        Marked calls are of these ranks, both included.
    durations_s : (float, float) or None
        Marked calls took at least the first of these durations, and less than the second.
    """

    run: int = 0
    filters: Mapping[str, str] = field(default_factory=dict)
    time_s: Interval | None = None
    ranks: tuple[int, int] | None = None
    durations_s: Interval | None = None

    @property
    def is_marked(self) -> bool:
        """Whether calls are marked."""
        return not (self.time_s is None and self.ranks is None and self.durations_s is None)

    @classmethod
    def from_query(cls, query: Mapping[str, str], runs: int = 1) -> View:
        """Read a view from the parameters of a link.

        Parameters
        ----------
        query : mapping of str to str
            Other parameters are ignored.
        runs : int
            Number of runs that can be shown.

        Raises
        ------
        EnsioError
            A parameter is malformed.
        """
        number = query.get("run", "0")
        if not (number.isascii() and number.isdigit() and len(number) < 6 and int(number) < runs):
            raise EnsioError(f'the link asks for run "{number[:20]}", and there are {runs}, numbered from 0')
        filters = {}
        for name in FILTERS:
            text = query.get(name, "").strip()
            if len(text) > _MOST_CHARACTERS:
                raise EnsioError(f"the filter {name} of the link has more than {_MOST_CHARACTERS} characters")
            if text:
                filters[name] = text
        marked_ranks = _interval(query, "marked-ranks")
        return cls(
            int(number),
            filters,
            _interval(query, "marked-time"),
            None if marked_ranks is None else (int(marked_ranks[0]), int(marked_ranks[1])),
            _interval(query, "marked-durations"),
        )

    def query(self) -> str:
        """Return the query of the link that restores this view.

        Examples
        --------
        >>> View(filters={"op": "write"}, ranks=(0, 3)).query()
        'op=write&marked-ranks=0..3'
        """
        parts = {"run": str(self.run)} if self.run else {}
        parts |= dict(self.filters)
        for name, interval in (
            ("marked-time", self.time_s),
            ("marked-ranks", self.ranks),
            ("marked-durations", self.durations_s),
        ):
            if interval is not None:
                parts[name] = f"{interval[0]!r}..{interval[1]!r}"
        return urlencode(parts)

    def selecting(self) -> dict[str, str]:
        """Return the filters of the marked calls, without the range of durations.

        Raises
        ------
        EnsioError
            A filter is malformed, or no rank or no time is in both the filter and the marked rectangle.
        """
        filters = dict(self.filters)
        if self.ranks is not None:
            of_filter = parse_list(filters.get("rank"), lambda text: parse_numbers("rank", text))
            ranges = _within(of_filter or (self.ranks,), self.ranks, inclusive=True)
            filters["rank"] = ",".join(f"{low}-{high}" if low < high else str(low) for low, high in ranges)
        if self.time_s is not None:
            times = parse_list(filters.get("time"), parse_times)
            ranges = _within(times or (self.time_s,), self.time_s, inclusive=False)
            filters["time"] = ",".join(f"{low!r}..{high!r}" for low, high in ranges)
        return filters

    def command(self, path: str) -> str:
        """Return the command that lists the marked calls.

        Parameters
        ----------
        path : str
            The run.

        Returns
        -------
        str
            A comment says so where calls are marked by duration, for which commands have no filter.
        """
        options = " ".join(f"--{name} {shlex.quote(text)}" for name, text in self.selecting().items())
        command = f"ensio events {shlex.quote(path)} {options}".rstrip()
        if self.durations_s is not None:
            command += "  # of any duration: commands have no filter for it, see Python"
        return command

    def python(self, path: str) -> str:
        """Return the lines of Python that select the marked calls."""
        given = ", ".join(f"{name}={text!r}" for name, text in self.selecting().items())
        lines = ["import ensembles as en", f"run = en.open({path!r})", f"calls = run.select({given})"]
        if self.durations_s is not None:
            low, high = (round(end * 1e9) for end in self.durations_s)
            lines.append(f"calls = calls[(calls.duration >= {low}) & (calls.duration < {high})]  # ns")
        return "\n".join(lines)


def _interval(query: Mapping[str, str], name: str) -> Interval | None:
    text = query.get(name)
    if not text:
        return None
    ends = text.split("..")
    try:
        low, high = (float(end) for end in ends)
    except ValueError:
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise EnsioError(f'"{text[:40]}" of the link is not a range: write {name} like 1.5..3')
    return low, high


def _within(
    ranges: Iterable[tuple[Any, Any]], bounds: tuple[Any, Any], *, inclusive: bool
) -> list[tuple[Any, Any]]:
    """Return the parts of ranges that are within bounds."""
    cut = [(max(low, bounds[0]), min(high, bounds[1])) for low, high in ranges]
    left = [(low, high) for low, high in cut if low < high or (inclusive and low == high)]
    if not left:
        raise EnsioError(
            "the marked rectangle is outside of what the filters select: mark another, or clear it"
        )
    return left
