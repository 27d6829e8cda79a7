"""How long the buffers of a round take to reach the storage system.

A file is striped over targets. In a round each aggregator writes its window. The time of the round is

    max( longest write of an aggregator at its own rate
           + bytes at the busiest target that several aggregators write to in this round, at the shared rate,
         bytes at the busiest target, at the rate of a target )

The second term is that of the extent locks of Lustre: a lock belongs to one client, and a client that must
give it up writes back first. Bytes that only one aggregator writes to a target do not pay it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from testbed.tapioca.rounds import Columns, Schedule, cut

Holes = Literal["sieve", "pieces"]
Times = NDArray[np.float64]


@dataclass(frozen=True)
class Storage:
    """A striped file, and what limits writes to it."""

    targets: int  # Number of targets the file is striped over
    stripe_bytes: int
    aggregator_bytes_per_s: float = np.inf  # Rate at which one aggregator writes
    # Rate of bytes at a target that several aggregators write to in the same round
    shared_bytes_per_s: float = np.inf
    target_bytes_per_s: float = np.inf  # Rate of a target, or of the I/O node in front of the file
    read_factor: float = 1.0  # How much faster reads are than writes

    @property
    def peak_bytes_per_s(self) -> float:
        """Rate of all targets together."""
        return self.targets * self.target_bytes_per_s


@dataclass(frozen=True)
class Flushes:
    """What the aggregators write, and read before, in each round."""

    seconds: Times
    # written_bytes, read_bytes: Together with the holes that are read and written back
    written_bytes: int
    read_bytes: int


def flushes(made: Schedule, storage: Storage, holes: Holes = "pieces", file_bytes: int = 0) -> Flushes:
    """Return the times of the flushes of all rounds."""
    rounds, window, offset, size = made.rounds, made.window, made.offset, made.size
    read_s = np.zeros(rounds)
    read_bytes = 0
    if holes == "sieve" and rounds:
        window, offset, size, read = _spans(made, file_bytes)
        read_bytes = int(read.sum())
        read_s = _longest(window // made.aggregators, window, read, rounds) / storage.aggregator_bytes_per_s
        by_target = _by_target(window, offset, read, storage)
        read_s = np.maximum(
            read_s,
            _longest(by_target.window // made.aggregators, by_target.place(made), by_target.size, rounds)
            / storage.target_bytes_per_s,
        )
        read_s /= storage.read_factor

    own = _longest(window // made.aggregators, window, size, rounds)
    parts = _by_target(window, offset, size, storage)
    number, place = parts.window // made.aggregators, parts.place(made)
    busiest = _longest(number, place, parts.size, rounds)
    # A place is a target in a round; its writers are the windows that it has bytes of.
    pairs = np.unique(np.stack([place, parts.window]), axis=1)[0]
    several = np.bincount(pairs, minlength=int(place.max(initial=-1)) + 1) > 1
    shared = _longest(number, place, np.where(several[place], parts.size, 0), rounds)
    write_s = np.maximum(
        own / storage.aggregator_bytes_per_s + shared / storage.shared_bytes_per_s,
        busiest / storage.target_bytes_per_s,
    )
    return Flushes(read_s + write_s, int(size.sum()), read_bytes)


@dataclass(frozen=True)
class _Parts:
    """Bytes of windows at targets."""

    targets: int
    window: Columns
    target: Columns
    size: Columns

    def place(self, made: Schedule) -> Columns:
        """Number the targets of each round."""
        return self.window // made.aggregators * self.targets + self.target


def _by_target(window: Columns, offset: Columns, size: Columns, storage: Storage) -> _Parts:
    row, begin, length = cut(offset, size, storage.stripe_bytes)
    target = begin // storage.stripe_bytes % storage.targets
    return _Parts(storage.targets, window[row], target, length)


def _longest(number: Columns, place: Columns, size: Columns, rounds: int) -> Times:
    """Return, for each round, the largest sum of bytes at a place of this round."""
    longest = np.zeros(rounds)
    if len(place):
        known, inverse = np.unique(place, return_inverse=True)
        sums = np.bincount(inverse, size, len(known))
        of_round = np.zeros(len(known), np.int64)
        of_round[inverse] = number
        np.maximum.at(longest, of_round, sums)
    return longest


def _spans(made: Schedule, file_bytes: int) -> tuple[Columns, Columns, Columns, Columns]:
    """Return the windows that have bytes: first byte, length to the last byte, bytes to read before."""
    window, inverse = np.unique(made.window, return_inverse=True)
    first = np.full(len(window), np.iinfo(np.int64).max)
    last = np.zeros(len(window), np.int64)
    np.minimum.at(first, inverse, made.offset)
    np.maximum.at(last, inverse, made.offset + made.size)
    data = np.bincount(inverse, made.size, len(window))
    read = np.where(data < last - first, np.maximum(np.minimum(last, file_bytes) - first, 0), 0)
    return window, first, last - first, read
