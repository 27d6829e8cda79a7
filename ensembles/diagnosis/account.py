"""The account of a run: each second of it lies in one entry, those that no rule explains too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

FEWER_CALLS = "fewer-calls"
OUTSIDE, CALLS, BYTES = "outside", "calls", "bytes"
"""Entries besides those of findings: outside of I/O calls; in calls that move no bytes; in those that do."""


@dataclass(frozen=True)
class Entry:
    """A part of the time of a run.

    Attributes
    ----------
    id : str
        Id of a finding, or `OUTSIDE`, `CALLS` or `BYTES`.
    time_s : float
        By how much the run is longer for it, once what the entries before it explain is gone.
    call : str
        Function with most of this time in `CALLS` and `BYTES`; else ``""``.
    """

    id: str
    time_s: float
    call: str = ""


@dataclass(frozen=True)
class Account:
    """Where the time of a run goes.

    Attributes
    ----------
    run_s : float
        Length of the run.
    entries : tuple of Entry
        Their times add up to `run_s`; those of findings come first, then what they leave.
    is_of_run : bool
        False: nothing shows which tasks wait for which, and the account is of the task with most I/O.
    """

    run_s: float
    entries: tuple[Entry, ...]
    is_of_run: bool

    def to_json(self) -> dict[str, Any]:
        """Return a dict with the names of the attributes; entries have their ``share`` of the run, too."""
        entries = [{**vars(each), "share": each.time_s / self.run_s} for each in self.entries]
        return {**vars(self), "entries": entries}


@dataclass(frozen=True)
class SizeTime:
    """Time of those calls of a function whose requests are of about one size, within a factor of two.

    Attributes
    ----------
    mean_bytes : float
    calls : int
    share : float
        Of the time of all I/O calls.
    mean_s : float
        Of a call, s.
    """

    mean_bytes: float
    calls: int
    share: float
    mean_s: float


@dataclass(frozen=True)
class CallTime:
    """Time of the I/O calls of a function, without the calls inside them.

    Attributes
    ----------
    call, layer : str
    calls : int
    time_s : float
        Summed over tasks, s.
    share : float
        Of the time of all I/O calls.
    in_library : bool
        The time passed inside HDF5 or netCDF: storage calls inside were recorded, and are not in it.
    of_size : SizeTime or None
        The size of most of this time; None: the calls move no bytes, no size has most of it, or it
        passed inside a library.
    """

    call: str
    layer: str
    calls: int
    time_s: float
    share: float
    in_library: bool = False
    of_size: SizeTime | None = None

    def to_json(self) -> dict[str, Any]:
        """Return a dict with the names of the attributes."""
        return {**vars(self), "of_size": self.of_size and vars(self.of_size)}
