"""What to write in place of a name that does not exist."""

from __future__ import annotations

from collections.abc import Iterable

from ensembles.model.units import MOST_NAMED

_LEAST_RATIO = 0.6
_SHOWN = 12


def nearest_names(name: str, known: Iterable[str]) -> list[str]:
    """Find the names that are most like one that does not exist.

    Examples
    --------
    >>> from ensembles.model.nearest_names import nearest_names
    >>> nearest_names("wrte", ["open", "write", "pwrite", "close"])
    ['write', 'pwrite']
    """
    from difflib import SequenceMatcher

    wanted = name.lower()
    scored = []
    for other in known:
        matcher = SequenceMatcher(None, wanted, other.lower())
        # The bounds are quick, and a run may have a million files.
        if matcher.real_quick_ratio() >= _LEAST_RATIO and matcher.quick_ratio() >= _LEAST_RATIO:
            scored.append((-matcher.ratio(), other))
    return [other for score, other in sorted(scored)[:MOST_NAMED] if -score >= _LEAST_RATIO]


def suggestion(name: str, known: Iterable[str], what: str = "") -> str:
    """Say what to write in place of a name that does not exist.

    A clause that asks for the nearest names, or lists some names if none is near.

    Examples
    --------
    >>> from ensembles.model.nearest_names import suggestion
    >>> suggestion("wrte", ["open", "write", "close"], "this run has")
    'did you mean write? this run has close, open, write'
    """
    names = sorted(set(known))
    near = nearest_names(name, names)
    question = f"did you mean {' or '.join(near)}?" if near else ""
    listed = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else "")
    having = f"{what} {listed}" if names else f"{what} none"
    return f"{question} {having}".strip() if what else question or listed
