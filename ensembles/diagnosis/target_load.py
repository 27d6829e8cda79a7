"""How many bytes each storage target has to move, by the layouts of the files."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.limits import NEARLY_ALL

TARGET_BYTES_PER_NS = (0.2, 1.0)
"""Rates of a storage target, for the least and the likely gain: its bytes take time whatever the requests."""

MOST_STRIPES = 512
"""Files with more stripes are taken to be on all targets."""


class TargetLoad(NamedTuple):
    """Parts of files on targets: a row for each use of a file by a task, and each target of the file."""

    # rank, target: int64, shape (n,)
    rank: np.ndarray
    target: np.ndarray
    # float64, shape (n,): Bytes of the task on the target, if it uses all stripes of the file alike
    bytes: np.ndarray

    @property
    def of_targets(self) -> np.ndarray:
        """Bytes of each target: shape (targets,)."""
        return np.bincount(self.target, self.bytes)


def load_of_targets(case: Case, most_stripes: int) -> TargetLoad:
    """Divide the bytes of files with a known layout, and at most so many stripes, among their targets."""
    uses, stripes = case.evidence.uses.columns(), case.evidence.stripes
    _, count, first, listed = stripes[np.minimum(uses["file"], len(stripes) - 1)].T
    known = np.flatnonzero((listed > 0) & (count > 0) & (count <= most_stripes))
    count, first, listed = count[known], first[known], listed[known]
    number = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    target = (np.repeat(first, count) + number) % np.maximum(np.repeat(listed, count), 1)
    part = np.repeat(uses["bytes"][known] / np.maximum(count, 1), count)
    return TargetLoad(np.repeat(uses["rank"][known], count), target, part)


def busiest_share(case: Case) -> float | None:
    """Return the share of all bytes that is on the target with most of them; None: it is not known."""
    load, moved = load_of_targets(case, MOST_STRIPES), float(case.evidence.uses.columns()["bytes"].sum())
    known = float(load.bytes.sum())
    return float(load.of_targets.max()) / known if known > NEARLY_ALL * moved > 0 else None


def within_targets(case: Case, saved_ns: np.ndarray, rate: float) -> np.ndarray:
    """Limit savings: no phase is shorter than the time in which its busiest target moves its bytes."""
    busiest = busiest_share(case)
    if busiest is None:
        return saved_ns
    data = (case.layer == "posix") & np.isin(case.op, ("read", "write"))
    needed = case.by_cell(np.where(data, case.rows["bytes"], 0)).sum(axis=1) * busiest / rate
    room = np.maximum(case.length_s * 1e9 - needed, 0)
    most = case.by_cell(saved_ns).max(axis=1)
    part = np.minimum(np.divide(room, most, out=np.ones_like(most), where=most > 0), 1.0)
    limited: np.ndarray = saved_ns * case.of_cells(np.repeat(part[:, None], len(case.ranks), axis=1))
    return limited
