"""What one unit of the durations of an ensemble stands for: the clock's step, and the bytes of a call.

The quantity of an ensemble is the time that calls blocked, or the time that requests were in flight.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ensembles.ensemble.inputs import checked_per, describe_calls
from ensembles.model.calls import OPS
from ensembles.model.errors import EnsioError
from ensembles.model.filters import checked_quantity
from ensembles.model.units import MIB, MOST_NAMED, bytes_text, count_text, seconds_text
from ensembles.statistics.samples.counted_durations import CountedDurations

if TYPE_CHECKING:
    import numpy.typing as npt

    from ensembles.model.events import Events
    from ensembles.run.run import Run
    from ensembles.run.selection import Selection
    from ensembles.statistics.modes.modes import Modes


_OWN_STEP_S = 1.01e-9
"""The bin law counts whole nanoseconds, so that this step of a clock makes no difference."""
_STEPS_IN_SHORTEST = 2560
"""If the shortest call takes more steps of the clock than this, each bin holds so many that none shows."""


def step_of(clock_step_s: float | None, per: str, moved: float = 0.0) -> float | None:
    """Return the step of durations, or of durations per MiB."""
    if clock_step_s is None or per == "call":
        return clock_step_s
    return clock_step_s * MIB / moved if moved else 0.0


def moves_bytes(op: str, bytes_: npt.NDArray[np.int64] | None) -> bool:
    """Whether calls move bytes, as far as their operation or their sizes say.

    `bytes_`: bytes that each call moved; None: unknown.
    """
    if op in OPS and op not in ("read", "write"):
        return False
    return bytes_ is None or not len(bytes_) or bool(bytes_.any())


def of_scale(
    modes: Modes,
    per: str,
    op: str,
    bytes_: npt.NDArray[np.int64] | None,
    durations_s: npt.NDArray[np.float64] | None,
    crowded: str,
) -> Modes:
    """Complete the modes of durations by time slices, and those of durations per MiB by sizes.

    `bytes_`, `durations_s`: of each call; None: unknown.
    `crowded`: which tasks share processors; ``""``: none, or not known.
    """
    if per == "call":
        return modes.with_time_slices(moves_bytes(op, bytes_), crowded)
    modes = replace(modes.without_times(), per=per)
    if durations_s is None or bytes_ is None or not modes.modes:
        return modes
    some = bytes_ > 0
    if not some.any() or not np.ptp(bytes_[some]):
        return modes
    return modes.with_sizes(bytes_[some], durations_s[some])


def step_of_events(events: Events, per: str) -> float | None:
    """Return the step of the durations of events, as `step_of` does."""
    alike = len(events) > 0 and int(events.moved.min()) == int(events.moved.max())
    return step_of(events.clock_step_s, per, float(events.moved[0]) if alike else 0.0)


def with_step(
    counted: CountedDurations, durations_s: npt.NDArray[np.float64] | None, stated_s: float | None
) -> CountedDurations:
    """Copy a sample with the step of the clock behind it.

    `durations_s`: single durations, s; None: only the counts are known.
    `stated_s`: the step as the run states it, s; None: it is estimated.
    """
    if stated_s is None:
        from ensembles.statistics.samples.clock_step import clock_step_of_counts_s, clock_step_s

        stated_s = (
            clock_step_of_counts_s(counted.counts) if durations_s is None else clock_step_s(durations_s)
        )
    elif counted.total and stated_s <= max(_OWN_STEP_S, counted.min_s.min() / _STEPS_IN_SHORTEST):
        stated_s = 0.0
    return replace(counted, resolution_s=stated_s)


def bytes_of_each(per: str, moved: npt.NDArray[np.int64] | None) -> float:
    """Return the bytes of each call, for its fair share of a rate.

    `moved`: bytes that each call moved; None: unknown.
    """
    if per == "MiB":
        return MIB
    if moved is None or not len(moved):
        raise EnsioError("a fair share needs calls of known sizes, and these are unknown: use --per-byte")
    least, median, most = np.quantile(moved, [0.05, 0.5, 0.95])
    if most > 1.1 * least or not median:
        raise EnsioError(
            f"a fair share needs calls of one size, and these moved from {bytes_text(least)} to "
            f"{bytes_text(most)}: choose one with --size, or use --per-byte"
        )
    return float(median)


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
    )[:MOST_NAMED]
    if not found:
        return []
    told = " and ".join(
        f"{name} ({count_text(count, 'call')}, {seconds_text(time_ns * 1e-9)})"
        for time_ns, name, count in found
    )
    names = ",".join(name for _, name, _ in found)
    return [f"the program waits for such requests in {told}: --call {names} takes these calls"]
