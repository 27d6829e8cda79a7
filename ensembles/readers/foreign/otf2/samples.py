"""Samples of the kernel's counters, from the metrics of an archive of ensio."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ensembles.model.surroundings import COLUMNS, UNKNOWN, SurroundingsTable


def samples_from_metrics(
    parts: Sequence[np.ndarray], counters: Mapping[int, str], tasks: int
) -> SurroundingsTable:
    """Put the values of each rank and time into a row.

    Parameters
    ----------
    counters : mapping of int to str
        Names of the counters by number. Unknown ones, of a later version, are left out.
    """
    if not parts:
        return SurroundingsTable.empty()
    rows = np.concatenate(parts)
    count = 1 + max(counters, default=0)
    metric = rows["metric"].astype(np.int64)
    rank = metric // count - 1
    known = (rank >= 0) & (rank < tasks)
    rows, rank, number = rows[known], rank[known], metric[known] % count
    sample = np.stack([rank, rows["time"]], axis=1)
    unique, place = np.unique(sample, axis=0, return_inverse=True)
    place = place.ravel()
    columns = {name: np.full(len(unique), UNKNOWN, dtype=np.int64) for name in COLUMNS}
    columns["rank"], columns["time"] = unique.T
    for counter, name in counters.items():
        if name in columns and name not in ("rank", "time"):
            mine = number == counter
            columns[name][place[mine]] = rows["value"][mine]
    return SurroundingsTable(columns)
