"""Answers as text for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ensembles.faces.bars import bars_text
from ensembles.faces.words import cell, sentence
from ensembles.model.statement import Bars, Column, Facts, Part, Table
from ensembles.model.table import first_that_fits, folded_table_text, table_text
from ensembles.model.units import count_text
from ensembles.model.wrapped import wrapped


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
    yield table_text(*_arguments(columns, shown))
    for step in table.narrower:
        columns = tuple(_replaced(columns, step))
        yield table_text(*_arguments(columns, shown))
    arguments = _arguments(table.columns, shown)
    if table.below:
        yield _with_last_below(*arguments)
    else:
        rest = len(table.columns) - table.key - sum(table.together)
        together = (*table.together, rest) if table.together else ()
        yield folded_table_text(*arguments, together=together, first=table.key)


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
