"""What a pass over the events of a run found damaged or without a name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from ensembles.model.units import few


@dataclass(slots=True)
class DamageReport:
    """Counts that can be merged.

    Attributes
    ----------
    damaged : dict of str to int
        Path of a spool → events with impossible times or amounts of data in it, which are left out.
    lost : dict of str to int
        Path of a job file → events in damaged blocks.
    unknown_calls, unknown_files : int
        Events whose call or file number has no name.
    """

    damaged: dict[str, int] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)
    unknown_calls: int = 0
    unknown_files: int = 0

    def merge(self, other: DamageReport) -> None:
        """Add those that another pass, over other events, found."""
        _add(self.damaged, other.damaged)
        _add(self.lost, other.lost)
        self.unknown_calls += other.unknown_calls
        self.unknown_files += other.unknown_files

    @property
    def sentences(self) -> list[str]:
        """What is to be said of them."""
        notes = []
        for path, count in self.damaged.items():
            events = "1 event is" if count == 1 else f"{count} events are"
            notes.append(
                f"{os.path.basename(path)} is damaged: {events} left out for impossible times or sizes"
            )
        for path, count in self.lost.items():
            notes.append(f"{os.path.basename(path)} is damaged: {count} events in it cannot be read")
        found = few(notes, "spools have events with impossible times or sizes")
        if self.unknown_calls:
            found.append(f"{self.unknown_calls} calls are of functions that no table of calls names")
        if self.unknown_files:
            found.append(f"{self.unknown_files} calls are on files that no spool names")
        return found


def _add(mine: dict[str, int], theirs: Mapping[str, int]) -> None:
    for path, count in theirs.items():
        mine[path] = mine.get(path, 0) + count
