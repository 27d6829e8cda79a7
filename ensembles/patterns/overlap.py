"""Regions of files that more than one task writes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensembles.errors import EnsioError


def refuse_overlaps(
    rank: np.ndarray, file: np.ndarray, offset: np.ndarray, size: np.ndarray, names: Sequence[str], where: str
) -> None:
    """Refuses regions of different tasks that share a byte of a file.

    Parameters
    ----------
    rank, file, offset, size : ndarray of int, shape (n,)
        A region each; `offset` and `size` in bytes, `file` an index into `names`.
    names : sequence of str
        Names of the files.
    where : str
        Of the regions, for the message.

    Raises
    ------
    EnsioError
        With two of the tasks and the first byte they share.
    """
    order = np.lexsort((offset, file))
    for own in np.split(order, np.flatnonzero(np.diff(file[order])) + 1):
        starts, ends = offset[own], offset[own] + size[own]
        # The region that reaches farthest among those before each. If two tasks overlap anywhere, then the
        # first region that overlaps another task's overlaps the farthest, which is another task's as well:
        # were it of the same task, it would have overlapped before. So looking at the farthest is enough.
        reached = np.maximum.accumulate(ends)
        farthest = np.maximum.accumulate(np.where(ends == reached, np.arange(len(own)), 0))[:-1]
        shared = (starts[1:] < reached[:-1]) & (rank[own][1:] != rank[own][farthest])
        if shared.any():
            second = int(np.argmax(shared)) + 1
            first = int(farthest[second - 1])
            raise EnsioError(
                f"{where}: tasks {rank[own[first]]} and {rank[own[second]]} both write byte {starts[second]} "
                f"of {names[int(file[own[second]])]}: give each a region of its own"
            )
