"""The parts of an answer: statements and tables as data, in SI units."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Statement:
    """One thing that is said, as data."""

    id: str  # Names the sentence in `ensembles.faces.words`
    # Its numbers, names and statements within it; None: not known, or not the case.
    values: Mapping[str, Any] = field(default_factory=dict)
    loss_s: float = 0.0  # Time that it is about, summed over tasks, s; 0: it is not about lost time
    # Names and values of the filters that select what it is about, such as ``phase``.
    where: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class LowerBound:
    """A lower bound in place of a number."""

    value: float


@dataclass(frozen=True)
class UpperBound:
    """An upper bound in place of a number."""

    value: float


@dataclass(frozen=True)
class Interval:
    """Both ends of an interval in place of a number."""

    low: float
    high: float


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    header: str
    unit: str  # One of `ensembles.faces.words.UNITS`; ``""``: texts
    values: Sequence[Any]  # A value for each row. None: an empty cell; a text is shown as it is


@dataclass(frozen=True)
class Table:
    """A table of an answer."""

    noun: str  # What a row is about
    columns: tuple[Column, ...]
    # Where not all rows are shown, those of the largest weights are. Empty: the first ones.
    weights: Sequence[float] = ()
    counts: Sequence[int] = ()  # How many of what `noun` names a row stands for. Empty: one
    hover: Sequence[Statement] = ()  # What is said of each row where a reader points at it. Empty: nothing
    # What takes the places of columns with these headers, step by step, in a table that is too wide. None:
    # nothing.
    narrower: Sequence[Mapping[str, Column | None]] = ()
    key: int = 1  # Number of columns with which each part begins if the table is still too wide
    # Numbers of columns, after these, that are then in one part if they fit into it, as are the columns that
    # remain. Empty: one each.
    together: Sequence[int] = ()
    below: bool = False  # Then the last column is in a line below each row

    @classmethod
    def of_rows(
        cls, noun: str, units: Mapping[str, str], rows: Sequence[Sequence[Any]], **more: Any
    ) -> Table:
        """Make a table of rows, without columns that are empty."""
        values = list(zip(*rows, strict=True)) or [()] * len(units)
        columns = (
            Column(header, unit, tuple(column))
            for (header, unit), column in zip(units.items(), values, strict=True)
            if not rows or any(value not in (None, "") for value in column)
        )
        return cls(noun, tuple(columns), **more)

    def __len__(self) -> int:
        return len(self.columns[0].values)

    def shown(self, limit: int | None) -> tuple[list[int], int]:
        """Return the rows that a table of so many has, and how many of what `noun` names it leaves out."""
        rows = list(range(len(self)))
        if limit is not None and limit < len(rows):
            weights = self.weights or [0.0] * len(rows)
            rows = sorted(sorted(rows, key=lambda row: -weights[row])[:limit])
        counts = self.counts or [1] * len(self)
        return rows, sum(counts) - sum(counts[row] for row in rows)


Paragraph = tuple[Statement, ...]
"""Statements that are shown together, one below the other."""


@dataclass(frozen=True)
class Bars:
    """A histogram of durations."""

    # Returns the histogram with so many bins per octave: ``edges_s`` and ``amounts``.
    histogram: Callable[[int], Any]
    calls: int
    marks_s: Sequence[float]  # Durations that are marked with their numbers, from 1
    caption: Statement


@dataclass(frozen=True)
class Facts:
    """What is said, each with a label."""

    # A label, and a statement, a name or a sentence; ``""``: the label of the row before.
    rows: Sequence[tuple[str, Statement | str]]
    title: Statement | None = None
    # width, indent: Columns of the labels, and before them.
    width: int = 11
    indent: int = 0


Part = Table | Paragraph | Bars | Facts
"""A part of an answer."""
