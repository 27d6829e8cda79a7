"""Why calls are not among the events of a process: what its spool, or a job file, says about that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ensembles.model.c_layout import CONSTANTS, LOSSES

POSITION = CONSTANTS["ENSIO_SPOOL_LOSSES_BYTES"]

PROPERTY = b"losses"
"""In a job file: the calls on other paths, then the events by reason, with blanks between."""

WORDS = {
    "budget": "the budget was used up: ENSIO_MAX_BYTES, or without it a tenth of the free space",
    "free_space": "less than 5 % of the file system and less than 1 GiB was free",
    "file_system_full": "the file system or a quota was full",
    "file_size_limit": "the process's limit on the size of files was reached",
    "run_directory": "the run directory was gone or could not be written to any more",
    "memory": "the process's limits on memory were reached",
    "unknown": "the reason was not recorded",
}
"""Names of the reasons, and what to say of each."""

_NAMES = {
    CONSTANTS["ENSIO_DROPPED_BUDGET"]: "budget",
    CONSTANTS["ENSIO_DROPPED_FLOOR"]: "free_space",
    CONSTANTS["ENSIO_DROPPED_FULL"]: "file_system_full",
    CONSTANTS["ENSIO_DROPPED_FILE_SIZE"]: "file_size_limit",
    CONSTANTS["ENSIO_DROPPED_UNREACHABLE"]: "run_directory",
    CONSTANTS["ENSIO_DROPPED_MEMORY"]: "memory",
}
"""By their numbers; others are unknown."""

_REASONS = CONSTANTS["ENSIO_DROP_REASONS"]
_MOST = 1 << 62


class Losses(NamedTuple):
    """What a process did not keep.

    Attributes
    ----------
    dropped_for : tuple of int
        Events that were dropped, by the number of the reason; shorter, or all 0, where that is not known.
    calls_on_other_paths : int
        Calls that name a path beyond those that a process keeps.
    """

    dropped_for: tuple[int, ...] = ()
    calls_on_other_paths: int = 0


NOTHING_KNOWN = Losses()


def losses_of_spool(beginning: bytes) -> Losses:
    """What the first window of a spool says; of numbers that make no sense, nothing."""
    if len(beginning) < POSITION + LOSSES.size:
        return NOTHING_KNOWN
    *dropped_for, other = LOSSES.unpack(beginning, POSITION)
    return _sound(tuple(dropped_for), other)


def losses_in_job_file(properties: Mapping[bytes, bytes]) -> Losses:
    """What a job file says of a process."""
    words = properties.get(PROPERTY, b"").split()
    if not words or not all(word.isdigit() and len(word) < 20 for word in words):
        return NOTHING_KNOWN
    other, *dropped_for = map(int, words)
    return _sound(tuple(dropped_for[:_REASONS]), other)


def by_reason(losses: Iterable[Losses], dropped_events: int) -> dict[str, int]:
    """Dropped events by reason, the commonest first, those of reasons that are not known last.

    Parameters
    ----------
    losses : iterable of Losses
    dropped_events : int
        How many there are in all.
    """
    known: Counter[str] = Counter()
    for one in losses:
        for number, count in enumerate(one.dropped_for):
            if number in _NAMES and count:
                known[_NAMES[number]] += count
    found = dict(known.most_common())
    unknown = dropped_events - known.total()
    return found | ({"unknown": unknown} if unknown > 0 else {})


def _sound(dropped_for: tuple[int, ...], other: int) -> Losses:
    return Losses(dropped_for, other) if max((*dropped_for, other)) < _MOST else NOTHING_KNOWN
