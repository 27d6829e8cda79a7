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
