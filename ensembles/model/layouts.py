"""Layouts of files as arrays: which bytes lie on which storage target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ensembles.model.lustre import Component, Striping
from ensembles.model.units import AT_ONCE

if TYPE_CHECKING:
    from ensembles.model.run_info import RunInfo

_MOST = np.iinfo(np.int64).max


class Pieces(NamedTuple):
    """Bytes of ranges on targets; a range has at most one piece on each stripe of a layout."""

    number: np.ndarray  # Number of the range, rising
    target: np.ndarray  # Place of the target in `Layouts.targets`
    bytes: np.ndarray


class Layouts:
    """The layouts of files on Lustre.

    The target of a byte follows from its offset if the layout lists the target of its stripe. It does not
    follow in files that are mirrored, on the metadata target or in the archive only, in components that
    Lustre has not allocated, and on stripes whose targets the layout does not list.

    `targets`: indices of all targets in the layouts, rising.
    """

    def __init__(self, stripings: Mapping[int, Striping]) -> None:
        rows: list[tuple[int, ...]] = []
        targets: list[int] = []
        for file in sorted(stripings):
            for part, known in _known_targets(stripings[file]):
                end = _MOST if part.end_bytes is None else min(part.end_bytes, _MOST)
                rows.append(
                    (file, part.start_bytes, end, part.stripe_bytes, part.stripe_count, len(targets), known)
                )
                targets += part.targets[:known]
        table = np.array(rows, np.int64).reshape(-1, 7)
        self._file, self._start, self._end, self._size, self._stripes, self._first, self._known = table.T
        self.targets, place = np.unique(np.array(targets, np.int64), return_inverse=True)
        self._place = place.reshape(-1).astype(np.int64)
        self._table = table

    @classmethod
    def of_files(cls, info: RunInfo, files: Sequence[str]) -> Layouts:
        """Read the layouts of files of a run, those that are known."""
        if not any("lustre.lov" in facts for facts in info.file_facts.values()):
            return cls({})
        found = {number: info.striping_of(path) for number, path in enumerate(files) if path}
        return cls({number: striping for number, striping in found.items() if striping is not None})

    def __bool__(self) -> bool:
        """Whether the target of any byte is known."""
        return bool(len(self.targets))

    @property
    def described(self) -> tuple[np.ndarray, np.ndarray]:
        """The content, by which results are kept (`ensembles.passes.kept`)."""
        return self._table, self.targets[self._place] if len(self._place) else self._place

    def most_pieces(self, calls: int, moved_bytes: int) -> int:
        """Bound the number of pieces of calls.

        `calls`, `moved_bytes`: number of ranges of bytes, and the sum of their lengths.
        """
        if not self:
            return 0
        known = self._known > 0
        of_stripes = 2 * calls + moved_bytes // int(self._size[known].min())
        return min(calls * int(self._stripes[known].max()) * len(np.unique(self._start)), of_stripes)

    def pieces(self, file: np.ndarray, offset: np.ndarray, length: np.ndarray) -> Iterator[Pieces]:
        """Divide ranges of bytes among the targets that follow from the layouts.

        `file`, `offset`, `length`: ranges of bytes; those at negative offsets have no known targets.

        Of bytes whose target is known, in blocks of bounded size. No bytes are in two pieces.
        """
        if not len(self._file):
            return
        length = np.where(offset < 0, 0, np.minimum(length, _MOST - np.maximum(offset, 0)))
        low = np.searchsorted(self._file, file, side="left")
        number, each = _spread(np.searchsorted(self._file, file, side="right") - low)
        part = low[number] + each
        begin = np.maximum(offset[number], self._start[part])
        end = np.minimum((offset + length)[number], self._end[part])
        some = np.flatnonzero((begin < end) & (self._known[part] > 0))
        number, part, begin, end = number[some], part[some], begin[some], end[some]
        first = begin // self._size[part]
        count = np.minimum((end - 1) // self._size[part] - first + 1, self._stripes[part])
        behind = np.cumsum(count)
        cuts = np.searchsorted(behind, np.arange(AT_ONCE, behind[-1] if len(behind) else 0, AT_ONCE))
        for mine in np.split(np.arange(len(count)), np.unique(cuts)):
            if len(mine):
                yield self._on_stripes(number[mine], part[mine], begin[mine], end[mine], count[mine])

    def _on_stripes(
        self, number: np.ndarray, part: np.ndarray, begin: np.ndarray, end: np.ndarray, count: np.ndarray
    ) -> Pieces:
        place, each = _spread(count)
        own = part[place]
        # Stripes are counted from the start of the file, in components that begin later too.
        stripe = (begin[place] // self._size[own] + each) % self._stripes[own]
        listed = np.flatnonzero(stripe < self._known[own])
        place, own, stripe = place[listed], own[listed], stripe[listed]
        size, stripes = self._size[own], self._stripes[own]
        bytes_ = _below(end[place], stripe, size, stripes) - _below(begin[place], stripe, size, stripes)
        return Pieces(number[place], self._place[self._first[own] + stripe], bytes_)


def _known_targets(striping: Striping) -> Iterator[tuple[Component, int]]:
    """Return the components of a file, and how many of their stripes have a known target."""
    mirrored = len({part.mirror for part in striping.components}) > 1
    for part in striping.components:
        exact = part.kind == "raid0" and part.instantiated and part.stripe_count > 0 and part.stripe_bytes > 0
        known = min(len(part.targets), part.stripe_count) if exact and not mirrored else 0
        if part.start_bytes < _MOST:
            yield part, known


def _spread(count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Repeat each number as often as its count says, and number its repetitions from 0."""
    number = np.repeat(np.arange(len(count)), count)
    return number, np.arange(len(number)) - np.repeat(np.cumsum(count) - count, count)


def _below(offset: np.ndarray, stripe: np.ndarray, size: np.ndarray, stripes: np.ndarray) -> np.ndarray:
    """Count the bytes of a stripe's object that lie below an offset of the file."""
    width = size * stripes
    found: np.ndarray = offset // width * size + np.clip(offset % width - stripe * size, 0, size)
    return found
