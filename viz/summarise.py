"""The summary behind a picture, from whatever data a picture was given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ensembles.events import Events

Summary = TypeVar("Summary")


def summarise(data: Any, kind: type[Summary], make: Callable[[], Summary]) -> Summary:
    """Fill a summary.

    Parameters
    ----------
    data : Run, Events, or a summary of this kind
        A summary is returned as it is.
    kind : type
    make : callable
        Makes an empty summary.

    Raises
    ------
    TypeError
        `data` is none of these.
    """
    if isinstance(data, kind):
        return data
    summary = make()
    if isinstance(data, Events):
        chunks = [data]
    elif hasattr(data, "chunks"):
        chunks = data.chunks()
    else:
        raise TypeError(f"a run, events or a {kind.__name__} is needed, not {type(data).__name__}")
    for chunk in chunks:
        summary.add(chunk)
    return summary


def tasks_of(data: Any) -> int:
    """Number of tasks of a run; of events, those up to the largest rank."""
    if isinstance(data, Events):
        return int(data.rank.max()) + 1 if len(data) else 1
    return getattr(data, "tasks", 1)
