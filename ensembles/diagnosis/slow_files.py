"""Files on one storage target that take longer than others, with what their syncs and closes wait for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensembles.diagnosis.case import Case, p_of_chance
from ensembles.diagnosis.evidence import size_classes
from ensembles.diagnosis.file_uses import FileUses
from ensembles.diagnosis.limits import FEW, LEAST_UNITS, LEVEL
from ensembles.diagnosis.target_residuals import LEAST_FACTOR, OUTLIER
from ensembles.summaries.keyed_sums import groups_of_rows

MOST_STRIPES = 4
"""Targets of a file, of which one slow one is a notable part."""


class SlowFiles(NamedTuple):
    """Files on a slow target."""

    target: int
    factor: float  # By which they take longer than other files of the same size in the same phase
    p: float  # Of a permutation of files
    files: np.ndarray  # int64, shape (k,): Their numbers
    # compared, targets: Files and targets that were compared
    compared: int
    targets: int
    rows: np.ndarray  # bool, shape (m,): Of `FileUses.table`: their transfers, syncs and closes


def find_slow_files(case: Case, uses: FileUses) -> SlowFiles | None:
    """Return the files of the slowest target, if load and chance do not explain that they are slower."""
    table, stripes = uses.table.columns(), case.evidence.stripes
    calls = case.run.calls
    waits = np.array([c.layer == "posix" and c.op in ("read", "write", "sync", "close") for c in calls])
    at = stripes[np.minimum(table["file"], len(stripes) - 1)]
    known = waits[table["call"]] & (at[:, 3] > 0) & (at[:, 1] > 0) & (at[:, 1] <= MOST_STRIPES)
    files, slower, moved = _slowness(table, known)
    if len(files) < LEAST_UNITS:
        return None
    _, count, first, listed = stripes[files].T
    number = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    file = np.repeat(np.arange(len(files)), count)
    targets, of = np.unique(
        (np.repeat(first, count) + number) % np.repeat(listed, count), return_inverse=True
    )
    if len(targets) < LEAST_UNITS:
        return None
    load = np.bincount(of, (moved / count)[file])
    busiest = np.zeros(len(files))
    np.maximum.at(busiest, file, np.log(np.maximum(load[of], 1) / max(np.median(load), 1)))
    users = np.bincount(of)
    score = np.bincount(of, (slower - busiest)[file]) / np.sqrt(users)
    worst = int(np.argmax(score))
    mine = np.zeros(len(files), bool)
    mine[file[of == worst]] = True
    value = slower - _slope(busiest[~mine], slower[~mine]) * busiest
    score = np.bincount(of, value[file]) / np.sqrt(users)
    factor = float(np.exp(np.median(value[mine]) - np.median(value)))
    if mine.sum() < FEW or mine.all() or factor < LEAST_FACTOR:
        return None
    p = p_of_chance(
        score[worst], lambda rng: (np.bincount(of, rng.permutation(value)[file]) / np.sqrt(users)).max()
    )
    elsewhere = ~mine[file]
    others = [np.median(value[file[elsewhere & (of == each)]]) for each in np.unique(of[elsewhere])]
    if p > LEVEL or np.log(factor) < OUTLIER * max(others):
        return None
    rows = known & np.isin(table["file"], files[mine])
    return SlowFiles(int(targets[worst]), factor, p, files[mine], len(files), len(targets), rows)


def _slope(load: np.ndarray, slower: np.ndarray) -> float:
    """Estimate how much slower files are where their busiest target has more bytes (logarithms).

    Between 0 and 2: a target that is asked for more than it serves falls behind by more than in proportion.
    """
    spread = load - load.mean() if len(load) else load
    square = float((spread**2).sum())
    return float(np.clip((spread * slower).sum() / square, 0.0, 2.0)) if square > 0 else 1.0


def _slowness(table: dict[str, np.ndarray], known: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compare the time in each file with that in others of the same phase and size class."""
    rows = np.flatnonzero(known)
    cell, first = groups_of_rows([table["file"][rows], table["phase"][rows]])
    time_ns, moved = (np.bincount(cell, table[name][rows]) for name in ("time_ns", "bytes"))
    file, phase = table["file"][rows][first], table["phase"][rows][first]
    group = groups_of_rows([phase, size_classes(moved)])[0]
    value = np.log(np.maximum(time_ns, 1))
    alike = np.bincount(group)[group] >= LEAST_UNITS
    median, length = np.zeros(len(value)), np.zeros(len(value))
    for each in np.unique(group[alike]):
        mine = group == each
        median[mine], length[mine] = np.median(value[mine]), np.median(time_ns[mine])
    files, where = np.unique(file[alike], return_inverse=True)
    weight = np.bincount(where, length[alike], len(files))
    slower = np.bincount(where, ((value - median) * length)[alike], len(files)) / np.maximum(weight, 1)
    return files, slower, np.bincount(where, moved[alike], len(files))
