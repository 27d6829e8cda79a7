"""Notes on the quality of a run, shortened for answers that are about something else."""

from __future__ import annotations

import re

_ENDS = re.compile(r"(?P<who>.*) did not end (?P<its>its|their) recording \(")


def short_note(note: str) -> str:
    """Shorten a note whose details ``ensio info`` has.

    Examples
    --------
    >>> from ensembles.model.notes import short_note
    >>> short_note("2 of 5 processes did not end their recording (still running, or killed): 7 and 8 on n1")
    'partial: 2 of 5 processes did not end their recording (ensio info says more)'
    """
    found = _ENDS.match(note)
    if found is None:
        return note
    return f"partial: {found['who']} did not end {found['its']} recording (ensio info says more)"
