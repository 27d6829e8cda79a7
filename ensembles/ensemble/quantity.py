"""The quantity of an ensemble: the time that calls blocked, or the time that requests were in flight."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ensembles.ensemble.call_scale import MIB
from ensembles.ensemble.inputs import checked_per, describe_calls
from ensembles.model.filters import checked_quantity
from ensembles.model.units import count_text, seconds_text

if TYPE_CHECKING:
    import numpy.typing as npt

    from ensembles.model.events import Events
    from ensembles.run.run import Run
    from ensembles.run.selection import Selection

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
    """Return the events that have a quantity, its values, and what the ensemble is called."""
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


_MOST_WAITS = 3


def note_on_waits(run: Run, selection: Selection, events: Events) -> list[str]:
    """Return a note that names the calls in which the program waits for the requests of an ensemble."""
    from ensembles.passes.summary import ignoring_run
    from ensembles.summaries.calltable import CallTable

    if selection.quantity != "duration" or not (events.flight > 0).any():
        return []
    waits = replace(type(selection).parse(op="wait"), layers=selection.layers).for_run(run)
    table = run.summarize(ignoring_run(CallTable), selection=waits)
    found = sorted(
        (
            (sums.time_ns, call.name, sums.count)
            for call, sums in table.totals.items()
            if not call.waits_for_tasks
        ),
        reverse=True,
    )[:_MOST_WAITS]
    if not found:
        return []
    told = " and ".join(
        f"{name} ({count_text(count, 'call')}, {seconds_text(time_ns * 1e-9)})"
        for time_ns, name, count in found
    )
    names = ",".join(name for _, name, _ in found)
    return [f"the program waits for such requests in {told}: --call {names} takes these calls"]
