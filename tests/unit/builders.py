"""Events made by hand: rows that are added step by step, or columns of which some are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from ensembles.model.events import COLUMNS, Call, Events


def make_events(
    columns: Mapping[str, np.ndarray],
    calls: Sequence[Call],
    files: Sequence[str] = ("",),
    order_by: Literal["start", "end"] | None = None,
) -> Events:
    """Make events of some columns.

    Parameters
    ----------
    columns : mapping
        Columns of one length. Those that are not given are 0, but for ``carried``,
        which stays unknown.
    calls, files : sequence
        What numbers of calls and files mean.
    order_by : {"start", "end"}, optional
        Sort by rank, then by the start or the end of the call. Without, rows stay in their order.
    """
    length = len(next(iter(columns.values())))
    whole = {
        name: np.asarray(columns[name]) if name in columns else np.zeros(length, dtype)
        for name, dtype in COLUMNS.items()
        if name in columns or name != "carried"
    }
    if order_by:
        time = whole["start"] + (whole["duration"] if order_by == "end" else 0)
        order = np.lexsort((time, whole["rank"]))
        whole = {name: values[order] for name, values in whole.items()}
    return Events(whole, tuple(calls), list(files))


class EventRows:
    """Rows of columns, added some at a time: one value for all of them, or one for each."""

    def __init__(self) -> None:
        self._rows: list[dict[str, np.ndarray]] = []

    def add(self, **values: object) -> None:
        """Add rows; every call of this method gives the same columns."""
        names = tuple(values)
        self._rows.append(dict(zip(names, np.broadcast_arrays(*values.values()), strict=True)))

    def columns(self) -> dict[str, np.ndarray]:
        """All rows, in the order in which they were added."""
        return {name: np.concatenate([row[name] for row in self._rows]) for name in self._rows[0]}
