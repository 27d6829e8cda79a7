"""Answers as text for a terminal of 80 columns."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from ensembles.faces.words import cell, sentence
from ensembles.model.statement import Bars, Column, Facts, Part, Table
from ensembles.model.table import first_that_fits, folded_table_text, table_text
from ensembles.model.units import count_text, seconds_text
from ensembles.model.wrapped import WIDTH, wrapped


def answer_text(parts: Iterable[Part], limit: int | None = None) -> str:
    """Format the parts of an answer, one below the other."""
    return "\n\n".join(filter(None, (_part(part, limit) for part in parts)))


def _part(part: Part, limit: int | None) -> str:
    if isinstance(part, Table):
        return _table(part, limit)
    if isinstance(part, Bars):
        return bars_text(part)
    if isinstance(part, Facts):
        return _facts(part)
    return "\n".join(wrapped(sentence(each)) for each in part)


def _facts(facts: Facts) -> str:
    """Format the labels in a column; what is said beside them is in lines of the other."""
    left, rest = " " * facts.indent, " " * (facts.indent + max(facts.width, 2))
    lines = [] if facts.title is None else [wrapped(sentence(facts.title), indent=rest)]
    for label, said in facts.rows:
        lines.append(wrapped(cell(said, ""), f"{left}{label:<{facts.width}}", rest))
    return "\n".join(lines)


def _table(table: Table, limit: int | None) -> str:
    """Format the rows that are shown, and count the others."""
    shown, left_out = table.shown(limit)
    parts = [first_that_fits(_tables(table, shown))] if shown else []
    if left_out:
        parts.append(f"{count_text(left_out, f'more {table.noun}')}: raise --limit to see them")
    return "\n\n".join(parts)


def _tables(table: Table, shown: Sequence[int]) -> Iterator[str]:
    """Format the rows: whole, then narrower step by step, then as tables one below the other."""
    columns = table.columns
    headers, rows, left = _arguments(columns, shown)
    yield table_text(headers, rows, left)
    cells = zip(*rows, strict=True)
    yield table_text([_in_lines(*each) for each in zip(headers, cells, strict=True)], rows, left)
    for step in table.narrower:
        columns = tuple(_replaced(columns, step))
        yield table_text(*_arguments(columns, shown))
    if table.below:
        yield _with_last_below(headers, rows, left)
    else:
        rest = len(table.columns) - table.key - sum(table.together)
        together = (*table.together, rest) if table.together else ()
        yield folded_table_text(headers, rows, left, together=together, first=table.key)


def _in_lines(header: str, cells: Sequence[str]) -> str:
    """Break a header into lines that are not longer than the cells below, nor cut in a word."""
    width = max(map(len, (*cells, *header.split())), default=1)
    return "\n".join(textwrap.wrap(header, max(width, 1), break_on_hyphens=False))


def _with_last_below(headers: Sequence[str], rows: Sequence[Sequence[str]], left: set[int]) -> str:
    """Format a table with its last column in a line below each row."""
    head, rule, *lines = table_text(headers[:-1], [row[:-1] for row in rows], left).split("\n")
    below = [f"{line}\n    {row[-1]}" for line, row in zip(lines, rows, strict=True)]
    return "\n".join([f"{head}\n    {headers[-1]}", rule, *below])


def _replaced(columns: Iterable[Column], step: Mapping[str, Column | None]) -> Iterator[Column]:
    """Put other columns in the places of those that a step names."""
    for column in columns:
        other = step.get(column.header, column)
        if other is not None:
            yield other


def _arguments(
    columns: Sequence[Column], shown: Sequence[int]
) -> tuple[list[str], list[tuple[str, ...]], set[int]]:
    """Return headers, rows, and the columns of texts, which are aligned to the left."""
    texts = [[cell(column.values[row], column.unit) for row in shown] for column in columns]
    left = {at for at, column in enumerate(columns) if not column.unit}
    return [column.header for column in columns], list(zip(*texts, strict=True)), left


_BLOCKS = " ▁▂▃▄▅▆▇█"
_EIGHTHS = len(_BLOCKS) - 1
_MARGIN = "  "
COLUMNS = WIDTH - 2 * len(_MARGIN)
ROWS = 5
_PER_OCTAVE = (32, 16, 8, 4, 2, 1)
_FEW_BINS = 16
_CALLS_PER_BIN = 5


def bars_text(bars: Bars, rows: int = ROWS) -> str:
    """Format a histogram on a log scale of durations, with its caption.

    Examples
    --------
    >>> from ensembles.model.statement import Bars, Statement
    >>> ensemble = en.Ensemble(np.repeat([0.001, 0.002, 0.004], [10, 40, 20]))
    >>> bars = Bars(lambda bins: ensemble.histogram(bins=bins), 70, [0.002], Statement("sites.none"))
    >>> for line in bars_text(bars, rows=2).splitlines()[:-1]:
    ...     print("|" + line.rstrip())
    |                                  ████████
    |  ▄▄▄▄▄▄▄▄                        ████████                        ████████
    |                                       1
    |       1.00 ms                         2.00 ms
    """
    for per_octave in _PER_OCTAVE:
        found = bars.histogram(per_octave)
        if len(found.amounts) <= min(COLUMNS, max(_FEW_BINS, bars.calls // _CALLS_PER_BIN)):
            break
    edges_s, amounts = found.edges_s, found.amounts
    if len(amounts) < 2 or not edges_s[0] > 0:
        return ""
    wide = COLUMNS // len(amounts)
    amounts = np.repeat(amounts, wide)
    edges_s = np.exp(np.interp(np.arange(len(amounts) + 1) / wide, np.arange(len(edges_s)), np.log(edges_s)))
    eighths = np.ceil(amounts / amounts.max() * rows * _EIGHTHS).astype(int)
    lines = [
        "".join(_BLOCKS[min(max(height - row * _EIGHTHS, 0), _EIGHTHS)] for height in eighths)
        for row in reversed(range(rows))
    ]
    if len(bars.marks_s):
        marks = " " * (len(amounts) + len(bars.marks_s))
        for number, column in enumerate(_columns(edges_s, bars.marks_s), 1):
            at = marks.index(" ", column)  # modes of one column stand side by side
            marks = marks[:at] + (str(number) if number < 10 else "+") + marks[at + 1 :]
        lines.append(marks)
    lines += [_labels(edges_s), sentence(bars.caption)]
    return "\n".join((_MARGIN + line).rstrip() for line in lines)


def _columns(edges_s: np.ndarray, at_s: Sequence[float] | np.ndarray) -> list[int]:
    found = np.searchsorted(edges_s, np.asarray(at_s) * (1 + 1e-9), side="right") - 1
    return np.clip(found, 0, len(edges_s) - 2).tolist()  # type: ignore[no-any-return]


def _labels(edges_s: np.ndarray) -> str:
    """Write round durations below their columns: powers of ten first, then others where there is room."""
    line = " " * (len(edges_s) - 1)
    low, high = math.floor(math.log10(edges_s[0])), math.ceil(math.log10(edges_s[-1]))
    round_s = np.array([factor * 10.0**decade for factor in (1, 2, 5) for decade in range(low, high + 1)])
    inside_s = round_s[(round_s >= edges_s[0] * (1 - 1e-9)) & (round_s <= edges_s[-1] * (1 - 1e-9))]
    for t_s, at in zip(inside_s.tolist(), _columns(edges_s, inside_s), strict=True):
        text = seconds_text(t_s)
        free = not line[max(0, at - 2) : at + len(text) + 2].strip()
        if free and at + len(text) <= COLUMNS:
            line = line[:at] + text + line[at + len(text) :]
    if not line.strip():
        first, last = seconds_text(edges_s[0]), seconds_text(edges_s[-1])
        line = first + last.rjust(len(line) - len(first))
    return line
