"""The quantity of an ensemble: the time that calls blocked, or the time that requests were in flight."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ensembles.ensemble.call_scale import MIB
from ensembles.ensemble.inputs import checked_per, describe_calls
from ensembles.model.filters import checked_quantity

if TYPE_CHECKING:
    import numpy.typing as npt

    from ensembles.model.events import Events

OVERLAP = (
    "a task may have computed or had other requests while these were in flight: the sum of their times is "
    "not a time that it waited, which ensio info has"
)
POSTS = (
    "{calls} non-blocking: the durations are those of the calls that post them; --quantity flight takes the "
    "times from post to completion"
)


def values_of(
    events: Events, per: str, quantity: str
) -> tuple[Events, npt.NDArray[np.float64], tuple[str, str, list[str]]]:
    """Return the events that have a quantity, its values, and what the ensemble is called.

    Parameters
    ----------
    events : Events
    per : {"call", "MiB"}
    quantity : {"duration", "flight"}

    Returns
    -------
    Events
        Those with bytes, if the values are per MiB, and those with a known flight, if they are flights.
    ndarray of float64, shape (n,)
        Seconds, or seconds per MiB.
    (str, str, list of str)
        Name, operation and caveats.

    Raises
    ------
    EnsioError
        `per` or `quantity` has another value.
    """
    if checked_per(per) == "MiB":
        events = events[events.moved > 0]
    if checked_quantity(quantity) == "flight":
        events = events[events.flight >= 0]
    values_s = getattr(events, quantity) * 1e-9 / (events.moved / MIB if per == "MiB" else 1.0)
    name, op, notes = with_quantity(describe_calls(events), quantity)
    posts = int((events.flight > 0).sum()) if quantity == "duration" else 0
    if posts:
        notes.append(
            POSTS.format(calls=f"{posts:,} of these calls are" if posts < len(events) else "these calls are")
        )
    return events, values_s, (name, op, notes)


def with_quantity(described: tuple[str, str, list[str]], quantity: str) -> tuple[str, str, list[str]]:
    """Add the quantity to the name and the caveats of an ensemble, unless it is the duration."""
    name, op, notes = described
    if quantity == "duration":
        return described
    return f"{name}, in flight" if name else "requests in flight", op, [*notes, OVERLAP]
