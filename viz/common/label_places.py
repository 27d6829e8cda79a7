"""Places of labels above marks: no label touches another one, the line of another one, or the frame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

_CHARACTER, _BESIDES = 6.4, 8
"""Pixels of a character of a label of 9.5 points, and of its margins."""
_BROKEN = 1000.0
"""Cost of a label that is crossed, in pixels beyond the frame."""
_SIDES = {"left": 0.0, "center": -0.5, "right": -1.0}


class Places(NamedTuple):
    """Where labels are."""

    rows: list[int]  # Row of each label, from the highest, 0
    align: list[str]  # Side of each label that is at its mark: ``left``, ``center`` or ``right``


def label_width(text: str) -> float:
    """Return the width of a label in pixels, roughly.

    Examples
    --------
    >>> label_width("187 ms, 37.5 %")
    97.6
    """
    return round(_CHARACTER * len(text) + _BESIDES, 1)


def label_places(marks: Sequence[float], widths: Sequence[float], frame: float) -> Places:
    """Place labels in rows above their marks, each of which a vertical line connects with its label.

    Examples
    --------
    >>> from ensembles.viz.common.label_places import label_places
    >>> label_places([50, 300], [80, 80], 500)
    Places(rows=[0, 0], align=['center', 'center'])
    >>> label_places([50, 70, 490], [80, 80, 80], 500)
    Places(rows=[0, 1, 0], align=['left', 'left', 'right'])
    """
    order = sorted(range(len(marks)), key=lambda number: marks[number])
    rows, align = [0] * len(marks), ["center"] * len(marks)
    for chain in _chains(order, marks, widths):
        mine, its = [marks[number] for number in chain], [widths[number] for number in chain]
        best = min(
            ((_placed(mine, its, sides, frame), sides) for sides in _choices(len(chain))),
            key=lambda choice: choice[0][0],
        )
        for number, row, side in zip(chain, best[0][1], best[1], strict=True):
            rows[number], align[number] = row, side
    return Places(rows, align)


def _chains(order: Sequence[int], marks: Sequence[float], widths: Sequence[float]) -> Iterator[list[int]]:
    """Yield the labels that may touch each other, from the left."""
    chain: list[int] = []
    for number in order:
        if chain and marks[number] - marks[chain[-1]] >= widths[number] + max(widths[each] for each in chain):
            yield chain
            chain = []
        chain.append(number)
    if chain:
        yield chain


def _choices(count: int) -> Iterator[list[str]]:
    yield ["center"] * count
    for first in range(count, -1, -1):
        yield ["left"] * first + ["right"] * (count - first)
    for first in range(1, count):
        yield ["right"] * first + ["left"] * (count - first)


def _placed(
    marks: Sequence[float], widths: Sequence[float], sides: Sequence[str], frame: float
) -> tuple[float, list[int]]:
    """Return the cost of labels at these sides of their marks, and their rows."""
    starts = [mark + width * _SIDES[side] for mark, width, side in zip(marks, widths, sides, strict=True)]
    ends = [start + width for start, width in zip(starts, widths, strict=True)]
    every = range(len(marks))
    # The line to a label that is higher would cross this one.
    below = [[i != j and starts[j] < marks[i] < ends[j] for j in every] for i in every]
    rows: dict[int, int] = {}
    cost = sum(max(-start, 0) + max(end - frame, 0) for start, end in zip(starts, ends, strict=True))
    while len(rows) < len(marks):
        left = [i for i in every if i not in rows]
        free = [i for i in left if not any(below[i][j] for j in left)]
        cost += 0 if free else _BROKEN
        one = (free or left)[0]
        over = [
            row
            for j, row in rows.items()
            if below[one][j] or (starts[j] < ends[one] and starts[one] < ends[j])
        ]
        rows[one] = 1 + max(over, default=-1)
    return cost + max(rows.values()), [rows[i] for i in every]
