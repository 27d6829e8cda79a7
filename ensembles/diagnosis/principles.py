"""The one table of what time is lost to: of each finding, and of each other entry of an account."""

from __future__ import annotations

from typing import NamedTuple

COMPUTING, COMMUNICATION, WAITING = "computing", "communication", "waiting"
FEWER_CALLS, FEWER_BYTES, NARROW, LIBRARY = "fewer-calls", "fewer-bytes", "narrow-resource", "library"
RATE, UNDECIDED = "rate", "undecided"
"""Principles: outside of calls; exchange of data; waiting for whom; calls that could be fewer; bytes that need
not move; a resource that serves too few at once; inside a library; bytes at the rate attained; the rest."""

OUTSIDE, MESSAGES, LATE_TASK, TURNS = "outside", "communication", "late-task", "turns"
SLOW_TASK, EXCHANGE, IN_LIBRARY, AT_RATE = "slow-task", "exchange", "library", "rate"
CALLS, BYTES = "calls", "bytes"
"""Entries besides those of findings."""


class Cause(NamedTuple):
    """What an id stands for.

    Attributes
    ----------
    principle : str
    of_each_call : bool
        It explains what single calls cost, whatever else there is: of the same calls, one such cause does.
    at_targets : bool
        The remedy serves faster what waits for storage targets: time that calls lose in the client stays.
    in_client : bool
        The calls lose their time in the client, where they do not wait for a target.
    words : str
        What texts call an entry that is no finding; ``{who}`` is the task for which others wait.
    in_io : bool
        The time is in I/O calls.
    """

    principle: str
    of_each_call: bool = False
    at_targets: bool = False
    in_client: bool = False
    words: str = ""
    in_io: bool = True


CAUSES = {
    "small-requests": Cause(FEWER_CALLS, of_each_call=True),
    "seek-heavy": Cause(FEWER_CALLS, of_each_call=True),
    "stdio-buffer": Cause(FEWER_CALLS, of_each_call=True),
    "o-sync": Cause(FEWER_CALLS, of_each_call=True),
    "hdf5-metadata": Cause(FEWER_CALLS, of_each_call=True),
    "serialised-metadata": Cause(FEWER_CALLS, of_each_call=True),
    "sync-per-write": Cause(FEWER_CALLS),
    "metadata-storm": Cause(FEWER_CALLS),
    "close-cost": Cause(FEWER_CALLS),
    "fewer-calls": Cause(FEWER_CALLS),
    "strided-readahead": Cause(FEWER_BYTES, in_client=True),
    "read-modify-write": Cause(FEWER_BYTES, of_each_call=True),
    "hdf5-refill": Cause(FEWER_BYTES, of_each_call=True),
    "redundant-reads": Cause(FEWER_BYTES),
    "misaligned-requests": Cause(FEWER_BYTES),
    "single-stripe": Cause(NARROW, at_targets=True),
    "slow-target": Cause(NARROW),
    "lock-contention": Cause(NARROW),
    "aggregation-mismatch": Cause(NARROW),
    "write-back": Cause(NARROW),
    "cache-cliff": Cause(NARROW),
    "interference": Cause(NARROW),
    "too-many-writers": Cause(NARROW),
    "node-serialisation": Cause(WAITING),
    "imbalance": Cause(WAITING),
    "straggler-task": Cause(WAITING),
    "straggler-node": Cause(WAITING),
    "single-large-call": Cause(WAITING),
    "collective-coordination": Cause(COMMUNICATION),
    "hdf5-filters": Cause(LIBRARY),
    "not-io": Cause(COMPUTING, in_io=False),
    SLOW_TASK: Cause(WAITING, words="waiting for {who} in I/O"),
    EXCHANGE: Cause(COMMUNICATION, words="exchange in collective calls"),
    IN_LIBRARY: Cause(LIBRARY, words="inside libraries"),
    AT_RATE: Cause(RATE, words="bytes at the best rate of this run"),
    CALLS: Cause(UNDECIDED, words="calls without bytes"),
    BYTES: Cause(UNDECIDED, words="reads and writes"),
    TURNS: Cause(WAITING, words="waiting for the tasks before, one after the other", in_io=False),
    LATE_TASK: Cause(WAITING, words="waiting for {who} outside of I/O", in_io=False),
    MESSAGES: Cause(COMMUNICATION, words="communication", in_io=False),
    OUTSIDE: Cause(COMPUTING, words="computing and other time outside of recorded I/O calls", in_io=False),
}


def cause_of(name: str) -> Cause:
    """Return what an id stands for; rules of others have no principle that is known."""
    return CAUSES.get(name, Cause(UNDECIDED))
