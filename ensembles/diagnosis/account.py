"""The account of a run: each second of it lies in one entry, those that no rule explains too."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ensembles.diagnosis.principles import OTHERS, OUTSIDE, RATE, UNDECIDED, UNSEEN, cause_of
from ensembles.model.fields import Fields


@dataclass(frozen=True)
class Entry:
    """A part of the time of a run.

    Attributes
    ----------
    id : str
        Id of a finding, or one of `ensembles.diagnosis.principles.CAUSES`.
    time_s : float
        By how much the run is longer for it, once what the entries before it explain is gone.
    call : str
        Function with most of this time, of entries that are not findings; ``""``: not known.
    rank : int or None
        The task for which others wait most; None: no such entry, or a different one each time.
    """

    id: str
    time_s: float
    call: str = ""
    rank: int | None = None

    @property
    def principle(self) -> str:
        """What the time is lost to (`ensembles.diagnosis.principles`)."""
        return cause_of(self.id).principle

    @property
    def words(self) -> str:
        """What texts call it."""
        who = "the last task of each phase" if self.rank is None else f"rank {self.rank}"
        return (cause_of(self.id).words or self.id).format(who=who)

    @property
    def is_in_io(self) -> bool:
        """Whether the time is in I/O calls."""
        return cause_of(self.id).in_io


@dataclass(frozen=True)
class Account:
    """Where the time of a run goes.

    Attributes
    ----------
    run_s : float
        Length of the run.
    io_s : float
        The part of it in I/O: all entries but those outside of I/O calls. An upper bound where I/O was not
        seen, or nothing shows who waits for whom, and `io_low_s` the lower one.
    entries : tuple of Entry
        Their times add up to `run_s`; those of findings come first, then what they leave.
    is_of_run : bool
        False: nothing shows which tasks wait for which, and the account is of the task with most I/O.
    record : str
        What to record next, to decide what is not; ``""``: nothing in particular.
    """

    run_s: float
    io_s: float
    entries: tuple[Entry, ...]
    is_of_run: bool
    record: str = ""

    def of(self, *principles: str) -> float:
        """Add up what is in I/O by these principles, s."""
        return sum(e.time_s for e in self.entries if e.is_in_io and e.principle in principles)

    @property
    def io_low_s(self) -> float:
        """Time in I/O without what others may do at the same time, s."""
        return self.io_s - sum(each.time_s for each in self.entries if each.id in (UNSEEN, OTHERS))

    def with_unseen(self) -> Account:
        """Return the account of a run with I/O that was not seen: it may have taken all other time."""
        entries = tuple(replace(e, id=UNSEEN) if e.id == OUTSIDE else e for e in self.entries)
        io_s = self.io_s + sum(each.time_s for each in entries if each.id == UNSEEN)
        return replace(self, io_s=io_s, entries=entries)

    @property
    def explained_s(self) -> float:
        """Time in I/O that is lost to something that is known."""
        return max(self.io_s - self.of(RATE, UNDECIDED), 0.0)

    def to_json(self) -> dict[str, Any]:
        """Return a dict with the names of the attributes; entries have their ``share`` of the run, too.

        What is undecided costs nothing at least: ``low_s``. ``io_low_s`` is there where it is less.
        """
        entries = [
            {
                **vars(each),
                "principle": each.principle,
                "low_s": 0.0 if each.principle == UNDECIDED else each.time_s,
                "share": each.time_s / self.run_s,
            }
            for each in self.entries
        ]
        low = {} if self.io_low_s == self.io_s else {"io_low_s": self.io_low_s}
        return {**vars(self), **low, "entries": entries, "undecided_s": self.of(UNDECIDED)}


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
class CallTime(Fields):
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
