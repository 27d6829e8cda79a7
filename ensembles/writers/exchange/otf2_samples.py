"""Samples of the kernel's counters as messages to ``ensio-otf2``, which writes them as metrics."""

from __future__ import annotations

import numpy as np

from ensembles.model.surroundings import COLUMN_MEANINGS, COUNTERS, LEVELS, UNKNOWN, SurroundingsTable
from ensembles.recorder import otf2_program as link


def counters_of(table: SurroundingsTable) -> list[str]:
    """Return the names of the counters that any sample includes, after ``cost``."""
    return ["cost", *(name for name in COUNTERS if (table.columns[name] != UNKNOWN).any())]


def words_of(name: str) -> list[str]:
    """Describe a counter for the program: name, unit, meaning, ``sum`` or ``level``."""
    unit, meaning = COLUMN_MEANINGS[name]
    level = name in LEVELS or name == "cost"
    return [name, unit or "#", meaning.removesuffix("; -1: not in this sample"), "level" if level else "sum"]


def sample_rows(table: SurroundingsTable) -> np.ndarray:
    """Return each known counter of each sample as a row of `otf2_program.SAMPLE`, by time.

    Returns
    -------
    structured ndarray, shape (m,)
    """
    names = counters_of(table)
    parts = []
    for number, name in enumerate(names):
        column = table.columns[name]
        known = column != UNKNOWN if name != "cost" else np.ones(len(table), bool)
        part = np.zeros(int(known.sum()), link.SAMPLE)
        part["time"], part["value"] = table.columns["time"][known], column[known]
        part["metric"] = len(names) * (1 + table.columns["rank"][known].astype(np.int64)) + number
        parts.append(part)
    rows = np.concatenate(parts)
    return rows[np.argsort(rows["time"], kind="stable")]
