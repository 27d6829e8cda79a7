"""What a reader of the explorer looks at: runs, filters, marked calls, and the window of the trace diagram.

A view is the query of a link, a command, and a line of Python.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from urllib.parse import urlencode

from ensembles.model.errors import EnsioError
from ensembles.model.filters import FILTERS, NUMBERS, WITH_OPTION

FLAGS = ("failed", "per_byte")
"""Filters without a value on the command line."""

YES = "yes"
"""Value of these: only calls that failed; only calls that moved bytes, and histograms of seconds per MiB."""

_MOST_CHARACTERS = 1000

Interval = tuple[float, float]
Ranks = tuple[int, int]


class Ranged(NamedTuple):
    """What a range of a view is elsewhere."""

    link: str  # Name in a link
    filter: str  # The filter of the calls in it; empty: a window, which selects none
    title: str  # Title of its field
    hint: str
    is_whole: bool = False  # Its ends are whole numbers
    width: int = 190  # Pixels of its field; ranges have up to 24 characters


RANGES = {
    "time_s": Ranged("marked-time", "time", "marked time (s)", "10..20"),
    "ranks": Ranged("marked-ranks", "rank", "marked ranks", "0-63", True, 120),
    "durations_s": Ranged("marked-durations", "duration", "marked durations (s)", "10ms..2"),
    "rates": Ranged("marked-rates", "rate", "marked rates (bytes/s)", "100MiB..1GiB", True),
    "offsets": Ranged("marked-offsets", "offset", "marked offsets (bytes)", "1GiB..2GiB", True),
    "zoom_s": Ranged("shown-time", "", "time in view (s)", "10..20"),
    "zoom_ranks": Ranged("shown-ranks", "", "ranks in view", "0-63", width=120),
}
"""The ranges of a view by attribute."""

_MARKS = tuple(name for name, each in RANGES.items() if each.filter)


class Chosen(NamedTuple):
    """A single call that a reader chose among the slowest ones."""

    rank: int
    # start_s, duration_s: Start since the origin, and duration, in seconds
    start_s: float
    duration_s: float
    file: str = ""  # Its file; empty: none


@dataclass(frozen=True)
class View:
    """What is shown."""

    run: int = 0  # Number of the run, from 0
    # Filters that are not empty, by name, as on the command line
    filters: Mapping[str, str] = field(default_factory=dict)
    # Marked calls start from the first of these times, before the second. Seconds since the origin.
    time_s: Interval | None = None
    ranks: Ranks | None = None  # Marked calls are of these ranks, both included
    # Marked calls took at least the first of these durations, and less than the second
    durations_s: Interval | None = None
    # Marked calls moved bytes at rates from the first of these, below the second. Bytes per second.
    rates: Ranks | None = None
    # Marked calls begin from the first of these offsets in a file, before the second. Bytes.
    offsets: Ranks | None = None
    # Marked calls match these filters too: what a finding, a phase or an ordinal is about. Several globs of
    # ``file`` are lines.
    marks: Mapping[str, str] = field(default_factory=dict)
    what: str = ""  # What the `marks` are about, such as ``finding 1``
    beside: int | None = None  # Number of a second run, which is drawn on the same time axis
    zoom_s: Interval | None = None  # Times that the trace diagram shows; None: all
    zoom_ranks: Interval | None = None  # Rows that the trace diagram shows, first and last edge; None: all
    chosen: Chosen | None = None  # The call that is outlined
    # The file whose offsets are drawn; empty: that of the chosen call, or one in which marked calls move
    # bytes
    file: str = ""
    # Number of the run whose findings, phases and call indices are shown; None, or that of another run: of
    # two runs, the one that takes longer
    causes: int | None = None

    @property
    def is_marked(self) -> bool:
        """Whether calls are marked."""
        return bool(self.marks) or any(getattr(self, name) is not None for name in _MARKS)

    @property
    def per_byte(self) -> bool:
        """Whether calls that moved bytes are shown, with histograms of seconds per MiB."""
        return "per_byte" in self.filters

    def marking(self, **marks: Any) -> View:
        """Return this view with other marks: those that are not given, and a chosen call, are cleared."""
        cleared: dict[str, Any] = {**dict.fromkeys((*_MARKS, "chosen")), "marks": {}, "what": ""}
        return replace(self, **(cleared | marks))

    @property
    def within(self) -> View:
        """This view without what changes neither marks nor tables: window, chosen call, and file."""
        return replace(self, zoom_s=None, zoom_ranks=None, chosen=None, file="")

    def around_call(self, call: Chosen, tasks: int) -> View:
        """Return this view with a call chosen, and a window around it.

        The window has twice the duration of the call, and two ranks on each side.
        """
        took_s = max(call.duration_s, 1e-8)
        times = round(max(0.0, call.start_s - took_s / 2), 9), round(call.start_s + 1.5 * took_s, 9)
        ranks = max(-0.5, call.rank - 2.5), min(tasks - 0.5, call.rank + 2.5)
        return replace(self, zoom_s=times, zoom_ranks=ranks, chosen=call, file="")

    def around_calls(self, extent_ns: tuple[int, int], first: int, last: int) -> View:
        """Return this view with a window around all calls of a time and of ranks, both of these included."""
        low, high = (end * 1e-9 for end in extent_ns)
        more = max(0.02 * (high - low), 1e-8)
        times = round(max(0.0, low - more), 9), round(high + more, 9)
        return replace(self, zoom_s=times, zoom_ranks=(first - 0.5, last + 0.5))

    @classmethod
    def from_query(cls, query: Mapping[str, str], runs: int = 1) -> View:
        """Read a view from the parameters of a link."""
        beside = query.get("beside")
        ranges: dict[str, Any] = {
            name: (_whole if each.is_whole else _interval)(query, each.link) for name, each in RANGES.items()
        }
        return cls(
            **ranges,
            run=_number(query.get("run", "0"), runs),
            filters=_filters(query, ""),
            marks=_filters(query, "marked-"),
            what=query.get("marked", "")[:_MOST_CHARACTERS],
            beside=None if beside is None else _number(beside, runs),
            chosen=_chosen(query),
            file=query.get("offsets-file", "")[:_MOST_CHARACTERS],
            causes=None if "causes" not in query else _number(query["causes"], runs),
        )

    def query(self) -> str:
        """Return the query of the link that restores this view."""
        parts = {"run": str(self.run)} if self.run else {}
        if self.beside is not None:
            parts["beside"] = str(self.beside)
        if self.causes is not None:
            parts["causes"] = str(self.causes)
        parts |= dict(self.filters)
        parts |= {f"marked-{name}": text for name, text in self.marks.items()}
        if self.what:
            parts["marked"] = self.what
        for name, each in RANGES.items():
            if (interval := getattr(self, name)) is not None:
                parts[each.link] = range_text(*interval)
        if self.chosen is not None:
            rank, start_s, duration_s, file = self.chosen
            parts["chosen-rank"] = str(rank)
            parts["chosen-time"] = range_text(start_s, start_s + duration_s)
            if file:
                parts["chosen-file"] = file
        if self.file:
            parts["offsets-file"] = self.file
        return urlencode(parts, errors="surrogateescape")

    def selecting(self) -> dict[str, str]:
        """Return the filters of the marked calls.

        Several globs of ``file`` are lines.
        """
        filters = dict(self.filters)
        for name, text in self.marks.items():
            filters[name] = _both(name, filters[name], text) if name in filters else text
        for mark in sorted(_MARKS, key="ranks".__ne__):  # ranks first
            name, ends = RANGES[mark].filter, getattr(self, mark)
            if ends is not None:
                own = numbers_text(*ends) if name == "rank" else range_text(*ends)
                filters[name] = _both(name, filters[name], own) if name in filters else own
        return filters

    def command(self, path: str) -> str:
        """Return the command that lists all marked calls, as CSV: a table would have the first ones."""
        words = []
        for name, text in self.selecting().items():
            begin = f"--{name.replace('_', '-')} " if name in WITH_OPTION else f"--where {name}="
            parts = text.split("\n") if name == "file" else [text]
            words += [begin[:-1]] if name in FLAGS else [begin + shlex.quote(part) for part in parts]
        return " ".join(["ensio events", shlex.quote(path), *words, "--format csv"])

    def python(self, path: str, number: str = "") -> str:
        """Return the lines of Python that select the marked calls."""
        run, calls = f"run{number}", f"calls{number}"
        given = ", ".join(f"{name}={_literal(name, text)}" for name, text in self.selecting().items())
        lines = ["import ensembles as en", f"{run} = en.open({path!r})", f"{calls} = {run}.select({given})"]
        return "\n".join(lines)


def range_text(low: float, high: float) -> str:
    """Return an interval as filters have it; times have ns, which sums of numbers hide."""
    return "..".join(repr(end if isinstance(end, int) else round(end, 9)) for end in (low, high))


def end_of(path: str, most: int = 28) -> str:
    """Return the end of a path, by which runs are distinguished where there is no room for all of it."""
    if len(path) <= most:
        return path
    end = path[-(most - 1) :]
    _, slash, rest = end.partition("/")
    return f"…/{rest}" if slash and rest else f"…{end}"


def rounded(low: float, high: float, is_log: bool = False) -> Interval:
    """Round the ends of a range that was drawn: pixels do not tell more than a thousandth of it."""
    width = high - low
    of_log = math.log(high / low) if is_log and high > low > 0 else 0.0
    steps = (low * of_log, high * of_log) if of_log else (width, width)
    low, high = (
        round(end, min(3 - math.floor(math.log10(max(size, 1e-9))), 9))
        for end, size in zip((low, high), steps, strict=True)
    )
    return low, max(high, round(low + 1e-9, 9))


def rounded_offsets(low: float, high: float) -> Ranks:
    """Widen a range of bytes that was drawn to multiples of a power of two, below a thousandth of it."""
    step = 1 << max(math.floor(math.log2(max((high - low) / 1000, 1))), 0)
    first = max(math.floor(low / step), 0) * step
    return first, max(math.ceil(high / step) * step, first + 1)


def _literal(name: str, text: str) -> str:
    if name in FLAGS:
        return "True"
    return repr(text.split("\n")) if name == "file" and "\n" in text else repr(text)


def _number(text: str, runs: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 6 and int(text) < runs):
        raise EnsioError(f'the link asks for run "{text[:20]}", and there are {runs}, numbered from 0')
    return int(text)


def _filters(query: Mapping[str, str], prefix: str) -> dict[str, str]:
    filters = {}
    for name in FILTERS:
        if prefix and name == "time":
            continue  # The marked range of time, which _interval reads.
        text = query.get(prefix + name, "").strip()
        if len(text) > _MOST_CHARACTERS * (8 if prefix and name == "file" else 1):
            raise EnsioError(f"the filter {name} of the link has more than {_MOST_CHARACTERS} characters")
        if name in FLAGS and text not in ("", YES):
            raise EnsioError(f'"{text[:20]}" of the link is not a value of {name}: write {name}={YES}')
        if text:
            filters[name] = text
    return filters


def _interval(query: Mapping[str, str], name: str, alone: bool = False) -> Interval | None:
    text = query.get(name)
    if not text:
        return None
    ends = [text, text] if alone else text.split("..")
    try:
        low, high = (float(end) for end in ends)
    except ValueError:
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise EnsioError(f'"{text[:40]}" of the link is not a range: write {name} like 1.5..3')
    return low, high


def _whole(query: Mapping[str, str], name: str, alone: bool = False) -> Ranks | None:
    found = _interval(query, name, alone)
    return None if found is None else (int(found[0]), int(found[1]))


def _chosen(query: Mapping[str, str]) -> Chosen | None:
    times, ranks = _interval(query, "chosen-time"), _whole(query, "chosen-rank", alone=True)
    if times is None or ranks is None:
        return None
    file = query.get("chosen-file", "")[:_MOST_CHARACTERS]
    return Chosen(ranks[0], times[0], round(times[1] - times[0], 9), file)


_LISTS = ("op", "call", "layer", "error")


def numbers_text(low: int, high: int) -> str:
    """Return a range of whole numbers as filters have it."""
    return f"{low}-{high}" if low < high else str(low)


_RANGES: dict[str, tuple[bool, Callable[[Any, Any], str]]] = {
    "time": (False, lambda low, high: f"{low!r}..{high!r}"),
    "duration": (True, lambda low, high: f"{low}ns..{high + 1}ns"),
    "offset": (True, lambda low, high: f"{low}..{high + 1}"),
    "rate": (False, lambda low, high: f"{low}..{high}"),
    **dict.fromkeys(NUMBERS, (True, numbers_text)),
}
"""Filters by ranges: whether these include their ends, and how they are written."""


def _both(name: str, filtered: str, marked: str) -> str:
    """Return the filter that selects what two of the same name select."""
    if name in _LISTS:
        wanted = [part.strip() for part in marked.split(",")]
        both = [part.strip() for part in filtered.split(",") if part.strip() in wanted]
        if not both:
            raise EnsioError(
                f"the filter {name} leaves out all calls of the mark: clear the filter or the mark"
            )
        return ",".join(both)
    if name in _RANGES:
        parse, (inclusive, form) = FILTERS[name].parse, _RANGES[name]
        ranges = _within(parse(filtered), parse(marked), inclusive=inclusive)
        return ",".join(form(low, high) for low, high in ranges)
    if filtered == marked:
        return filtered
    raise EnsioError(f"the filter and the mark both choose by {name}: clear the filter or the mark")


def _within(
    ranges: Iterable[tuple[Any, Any]] | None, bounds: Iterable[tuple[Any, Any]] | None, *, inclusive: bool
) -> list[tuple[Any, Any]]:
    """Return the parts of ranges that are within bounds."""
    cut = [(max(one[0], other[0]), min(one[1], other[1])) for one in ranges or () for other in bounds or ()]
    left = sorted({(low, high) for low, high in cut if low < high or (inclusive and low == high)})
    if not left:
        raise EnsioError("the mark is outside of what the filters select: mark something else, or clear it")
    return left
