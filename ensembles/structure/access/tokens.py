"""Calls of a task as numbers: calls of one operation whose sizes are printed alike have the same number."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensembles.model.events import OPS
from ensembles.model.units import bytes_text
from ensembles.summaries.keyed_sums import groups_of_rows

READ, WRITE, SEEK, SYNC = (OPS.index(op) for op in ("read", "write", "seek", "sync"))
"""Operations of which patterns are made."""

MOST_SIZES = 16
"""Sizes of an operation of a task that are distinguished; of more, octaves are."""

_MOST_TEXTS = 4096
VARIED = "varied"


class Tokens(NamedTuple):
    """The calls of a task as numbers.

    Attributes
    ----------
    token : ndarray of int64, shape (n,)
    steps : list of (int, int, int)
        Of each token: operation, smallest and largest size in bytes.
    labels : list of (int, str)
        Of each token: operation, and its size as tasks are compared by it.
    """

    token: np.ndarray
    steps: list[tuple[int, int, int]]
    labels: list[tuple[int, str]]


def tokens_of(op: np.ndarray, size: np.ndarray, by_size: bool = True) -> Tokens:
    """Number the calls of a task by operation and size; seeks and syncs have no size.

    Parameters
    ----------
    op, size : ndarray of int64, shape (n,)
        Index into `OPS`, and bytes.

    Examples
    --------
    >>> from ensembles.structure.access.tokens import WRITE, tokens_of
    >>> found = tokens_of(np.full(4, WRITE), np.array([2413, 64, 2414, 64]))
    >>> found.token, found.labels
    (array([1, 0, 1, 0]), [(1, '64 B'), (1, '2.36 KiB')])
    """
    size = np.where((op == READ) | (op == WRITE), size, 0)
    kind = np.zeros(len(op), np.int64)
    octaves: set[int] = set()
    for each in (READ, WRITE):
        mine = op == each
        if not mine.any() or not by_size:
            continue
        kind[mine], is_octave = _kinds(size[mine])
        if is_octave:
            octaves.add(each)
    token, first = numbered([op, kind])
    low, high = np.full(len(first), 1 << 62), np.zeros(len(first), np.int64)
    np.minimum.at(low, token, size)
    np.maximum.at(high, token, size)
    steps, labels = [], []
    for at, (which, least, most) in enumerate(
        zip(op[first].tolist(), low.tolist(), high.tolist(), strict=True)
    ):
        if which in octaves:
            exponent = int(kind[first[at]])
            least, most = (1 << exponent - 1 if exponent else 0), (1 << exponent) - 1
        alike = bytes_text(least) == bytes_text(most)
        octave = f"{least} to {most}" if which in octaves else VARIED
        steps.append((which, least, most))
        labels.append((which, bytes_text(least) if alike else octave))
    return Tokens(token, steps, labels)


def _kinds(size: np.ndarray) -> tuple[np.ndarray, bool]:
    """Number sizes by their text; by octaves, and True, if there are too many."""
    sizes, where = np.unique(size, return_inverse=True)
    if len(sizes) <= _MOST_TEXTS:
        texts: dict[str, int] = {}
        kinds = np.array([texts.setdefault(bytes_text(each), len(texts)) for each in sizes.tolist()])
        if len(texts) <= MOST_SIZES:
            return kinds[where], False
    return np.frexp(size.astype(np.float64))[1].astype(np.int64), True


def numbered(keys: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Number rows by their keys, in the order of the keys; return the first row of each number too."""
    if not len(keys[0]):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    group, first = groups_of_rows([np.asarray(key, np.int64) for key in keys])
    order = np.lexsort([key[first] for key in reversed(keys)])
    return np.argsort(order)[group], first[order]
