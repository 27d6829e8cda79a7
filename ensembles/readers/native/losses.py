"""Reasons for which calls have no event, as recorded in a spool or a job file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ensembles.model.c_layout import CONSTANTS, LOSSES

POSITION = CONSTANTS["ENSIO_SPOOL_LOSSES_BYTES"]

PROPERTY = b"losses"
"""Property in a job file: calls on other paths, then dropped events by reason, separated by blanks."""

_NAMES = {
    CONSTANTS["ENSIO_DROPPED_BUDGET"]: "budget",
    CONSTANTS["ENSIO_DROPPED_FLOOR"]: "free_space",
    CONSTANTS["ENSIO_DROPPED_FULL"]: "file_system_full",
    CONSTANTS["ENSIO_DROPPED_FILE_SIZE"]: "file_size_limit",
    CONSTANTS["ENSIO_DROPPED_UNREACHABLE"]: "run_directory",
    CONSTANTS["ENSIO_DROPPED_MEMORY"]: "memory",
}
"""Name of each reason by its number in ``event.h``; other numbers are unknown reasons."""

_REASONS = CONSTANTS["ENSIO_DROP_REASONS"]
_MOST = 1 << 62


class Losses(NamedTuple):
    """Counts of calls that a process did not keep as events."""

    # Dropped events by number of the reason. Empty or all 0 if the reasons are unknown.
    dropped_for: tuple[int, ...] = ()
    calls_on_other_paths: int = 0  # Calls on paths beyond the number of paths that a process keeps


NOTHING_KNOWN = Losses()
_NOTHING_LOST, _NO_BYTES = Losses((0,) * _REASONS), bytes(LOSSES.size)


def losses_of_spool(beginning: bytes) -> Losses:
    """Read the losses from the first bytes of a spool; `NOTHING_KNOWN`: missing or implausible."""
    if len(beginning) < POSITION + LOSSES.size:
        return NOTHING_KNOWN
    if beginning.startswith(_NO_BYTES, POSITION):
        return _NOTHING_LOST
    losses = LOSSES.unpack(beginning, POSITION)
    dropped_for = tuple(getattr(losses, f"dropped_for{number}") for number in range(_REASONS))
    return _sound(dropped_for, losses.calls_on_other_paths)


def losses_in_job_file(properties: Mapping[bytes, bytes]) -> Losses:
    """Read the losses of a process from its properties in a job file, as `losses_of_spool`."""
    words = properties.get(PROPERTY, b"").split()
    if not words or not all(word.isdigit() and len(word) < 20 for word in words):
        return NOTHING_KNOWN
    other, *dropped_for = map(int, words)
    return _sound(tuple(dropped_for[:_REASONS]), other)


def by_reason(losses: Iterable[Losses], dropped_events: int) -> dict[str, int]:
    """Count dropped events by reason.

    Examples
    --------
    >>> from ensembles.readers.native.losses import Losses, by_reason
    >>> by_reason([Losses((0, 5, 0)), Losses((0, 1, 9))], 16)
    {'free_space': 9, 'budget': 6, 'unknown': 1}
    """
    known: Counter[str] = Counter()
    for one in losses:
        if one is _NOTHING_LOST:
            continue
        for number, count in enumerate(one.dropped_for):
            if number in _NAMES and count:
                known[_NAMES[number]] += count
    found = dict(known.most_common())
    unknown = dropped_events - known.total()
    return found | ({"unknown": unknown} if unknown > 0 else {})


def _sound(dropped_for: tuple[int, ...], other: int) -> Losses:
    return Losses(dropped_for, other) if max((*dropped_for, other)) < _MOST else NOTHING_KNOWN
