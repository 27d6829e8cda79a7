"""The cells of a run: what each task does in each window, at whose end tasks may wait for each other."""

from __future__ import annotations

import numpy as np


class Cells:
    """Sums by window and task.

    Parameters
    ----------
    rows : dict of str to ndarray, shape (n,)
        With ``start_ns`` and ``end_ns`` of each row of the shared evidence.
    window, task : ndarray of int64, shape (n,)
        Number of the window and of the task of each row, from 0.

    Attributes
    ----------
    present : ndarray of bool, shape (windows, tasks)
        Whether the task has calls in the window.
    arrival_ns : ndarray of float64, shape (windows, tasks)
        From the first call of the window to the last end of the task; -1: it has no call.
    """

    def __init__(self, rows: dict[str, np.ndarray], window: np.ndarray, task: np.ndarray) -> None:
        self.window, self.task = window, task
        shape = int(window.max(initial=-1)) + 1, int(task.max(initial=-1)) + 1
        ends = np.full(shape, -1, np.int64)
        np.maximum.at(ends, (window, task), rows["end_ns"])
        begin = np.full(shape[0], np.iinfo(np.int64).max)
        np.minimum.at(begin, window, rows["start_ns"])
        self.present = ends >= 0
        self.arrival_ns = np.where(self.present, ends - begin[:, None], -1).astype(np.float64)

    @property
    def length_s(self) -> np.ndarray:
        """From the first call of each window to its last arrival: shape (windows,)."""
        length: np.ndarray = self.arrival_ns.max(axis=1) * 1e-9
        return length

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Add up values of the rows: shape (windows, tasks)."""
        windows, tasks = self.present.shape
        total: np.ndarray = np.bincount(self.window * tasks + self.task, values, windows * tasks)
        return total.reshape(windows, tasks)
