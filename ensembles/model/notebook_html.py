"""HTML with which objects show themselves in notebooks: every text is escaped, nothing is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.units import MOST_NAMED, bytes_text, count_text, seconds_text

_WIDTH, _HEIGHT, _ROW = 320, 60, 28


def escaped(text: str) -> str:
    """Return a text, which may come from a trace, for a place between tags."""
    from html import escape

    return escape(sanitize_text(text))


def escaped_lines(text: str) -> str:
    """Return a text of several lines for an element that keeps lines."""
    return "\n".join(escaped(line) for line in text.split("\n"))


class Printed:
    """A result that shows its text in notebooks, as ``print`` does."""

    def _repr_html_(self) -> str:
        return f'<pre style="white-space:pre-wrap;word-break:normal">{escaped_lines(str(self))}</pre>'


def facts_html(facts: Iterable[tuple[str, str]]) -> str:
    """Return a table with a row for each name and its value."""
    rows = "".join(f"<tr><th>{escaped(what)}</th><td>{escaped(text)}</td></tr>" for what, text in facts)
    return f"<table>{rows}</table>"


def notes_html(notes: Iterable[str]) -> str:
    """Return sentences as a list, or nothing."""
    items = "".join(f"<li>{escaped(note[:1].upper() + note[1:])}</li>" for note in notes)
    return f"<ul>{items}</ul>" if items else ""


def bars_svg(counts: Sequence[float], low: str, high: str, title: str, colour: str = "#1f77b4") -> str:
    """Draw a histogram of evenly spaced bins as an inline SVG."""
    most = max(counts, default=0)
    if most <= 0:
        return ""
    step = _WIDTH / len(counts)
    bars = "".join(
        f'<rect x="{step * place:.1f}" y="{_HEIGHT * (1 - count / most):.1f}" width="{0.9 * step:.1f}" '
        f'height="{_HEIGHT * count / most:.1f}"/>'
        for place, count in enumerate(counts)
        if count
    )
    return (
        f'<svg role="img" width="{_WIDTH}" height="{_HEIGHT + 32}" viewBox="0 -14 {_WIDTH} {_HEIGHT + 32}" '
        f'font-family="sans-serif" font-size="11"><title>{escaped(title)}</title>'
        f'<g fill="{colour}">{bars}</g><g fill="currentColor"><text y="-3">{escaped(title)}</text>'
        f'<text y="{_HEIGHT + 13}">{escaped(low)}</text>'
        f'<text x="{_WIDTH}" y="{_HEIGHT + 13}" text-anchor="end">{escaped(high)}</text></g></svg>'
    )


def intervals_svg(rows: Sequence[tuple[str, float, float, str]], low: str, high: str, title: str) -> str:
    """Draw named intervals below each other as an inline SVG.

    `rows`: name, the two ends as parts of the axis (0 to 1; what lies beyond is cut), and colour of each one.

    Examples
    --------
    >>> from ensembles.model.notebook_html import intervals_svg
    >>> intervals_svg([("median", 0.2, 0.6, "#777777")], "0 s", "1 s", "gain").count("<rect")
    1
    """
    if not rows:
        return ""
    bottom = _ROW * len(rows)
    drawn = []
    for number, (name, start, end, colour) in enumerate(rows):
        left, right = (_WIDTH * min(max(part, 0.0), 1.0) for part in (start, end))
        drawn.append(
            f'<text y="{_ROW * number + 12}" fill="currentColor">{escaped(name)}</text><rect x="{left:.1f}" '
            f'y="{_ROW * number + 16}" width="{max(right - left, 2):.1f}" height="8" fill="{colour}"/>'
        )
    return (
        f'<svg role="img" width="{_WIDTH}" height="{bottom + 36}" viewBox="0 -18 {_WIDTH} {bottom + 36}" '
        f'font-family="sans-serif" font-size="11" style="overflow:visible"><title>{escaped(title)}</title>'
        f'{"".join(drawn)}<g fill="currentColor"><text y="-5">{escaped(title)}</text>'
        f'<text y="{bottom + 14}">{escaped(low)}</text>'
        f'<text x="{_WIDTH}" y="{bottom + 14}" text-anchor="end">{escaped(high)}</text></g></svg>'
    )


def events_html(events: Any) -> str:
    """Return the size of a selection, its calls by function and a histogram of their durations."""
    import numpy as np

    title = f"<p><b>{escaped(repr(events))}</b></p>"
    if not len(events):
        return title
    counts = np.bincount(events.call, minlength=len(events.calls))
    time_ns = np.bincount(events.call, events.duration, len(events.calls))
    present = np.flatnonzero(counts)
    facts = []
    for number in present[np.lexsort((-counts[present], -time_ns[present]))][:MOST_NAMED].tolist():
        moved = int(np.maximum(events.moved[events.call == number], 0).sum())
        size = f", {bytes_text(moved)}" if moved else ""
        time_s = float(time_ns[number]) * 1e-9
        count = count_text(int(counts[number]), "call")
        facts.append((events.calls[number].name, f"{count}{size}, {seconds_text(time_s)} of all tasks"))
    if len(present) > MOST_NAMED:
        facts.append((f"and {count_text(len(present) - MOST_NAMED, 'more function')}", "with less time"))
    low_s, high_s = (float(value) * 1e-9 for value in (events.duration.min(), events.duration.max()))
    picture = ""
    if 0 < low_s < high_s:
        heights, _ = np.histogram(np.log(events.duration), bins=40)
        caption = "durations of all calls (logarithmic)"
        picture = bars_svg(heights.tolist(), seconds_text(low_s), seconds_text(high_s), caption, "#7f7f7f")
    return title + facts_html(facts) + picture
