"""What a record holds: the only place that knows how records are made.

Readers state it by the mode, the dropped events and the counters of `RunMetadata`. A function that needs a
part asks `RunInfo.need` for it, which refuses a record without it, and says what to record instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING

from ensembles.model.units import count_text

if TYPE_CHECKING:
    from ensembles.model.calls import Call

_SELECTED = {"profile": "no events", "tail": "only the slowest calls as events"}
"""What the modes that select calls keep of them."""


class Holds(Enum):
    """A part that a record may hold.

    `SOME_CALLS`: single calls as events, perhaps a selection such as the slowest.
    `UNBIASED_CALLS`: single calls, of which none is missing because of its duration.
    `ALL_CALLS`: an event of each call that is counted: every sum follows from the events.
    `CALL_ORDER`: an event of each call that the program completed: phases, call indices and flights follow.
    `COUNTERS`: counters of another tool (`ensembles.model.counters.Counters`).
    """

    SOME_CALLS = auto()
    UNBIASED_CALLS = auto()
    ALL_CALLS = auto()
    CALL_ORDER = auto()
    COUNTERS = auto()


def holds_of(
    mode: str, losses: Sequence[tuple[int, int]], tool: str, has_events: bool = True
) -> frozenset[Holds]:
    """Return the parts that a record holds.

    `losses`: of each process: dropped events, and those of them that are missing in the sums too.
    """
    selects = mode in _SELECTED
    is_whole = _is_whole(mode, losses)
    parts = {
        Holds.SOME_CALLS: is_whole or (has_events and mode != "profile"),
        Holds.UNBIASED_CALLS: not selects,
        Holds.ALL_CALLS: is_whole,
        Holds.CALL_ORDER: not selects and not any(dropped for dropped, _ in losses),
        Holds.COUNTERS: bool(tool),
    }
    return frozenset(part for part, is_there in parts.items() if is_there)


def layers_held(calls: Iterable[Call], chosen: str = "") -> frozenset[str]:
    """Return the layers whose calls a record holds, if the program makes any.

    `chosen`: those that its recorder was asked for (``ENSIO_LAYERS``); ``""``: all.
    """
    found = frozenset(call.layer for call in calls) - {"unknown"}
    names = frozenset(chosen.split(","))
    return found if names & {"", "default"} else found & names


def why_not_all_calls(mode: str, losses: Sequence[tuple[int, int]], tool: str) -> tuple[str, str]:
    """Return two clauses about a record that lacks calls: how it was made, and how to record them."""
    how, remedy = "holds sums instead of single calls", "record again with ensio run --mode trace"
    if mode in _SELECTED:
        how = f"was recorded in mode {mode}, which keeps {_SELECTED[mode]}"
    elif dropped := sum(dropped for dropped, _ in losses):
        how = f"lacks the events of {count_text(dropped, 'call')} (ensio info gives the reason)"
        remedy = "record again with more space (ENSIO_MAX_BYTES)"
    if tool:
        remedy = "record single calls with Darshan's DXT (DXT_ENABLE_IO_TRACE=1)"
        how = "holds Darshan's counters, not single calls" if mode == "profile" else how
    return how, remedy


def note_on_calls(mode: str, losses: Sequence[tuple[int, int]], tool: str) -> list[str]:
    """Return a sentence for what is shown of single calls, if calls that are counted have no event."""
    how, _ = why_not_all_calls(mode, losses, tool)
    return [] if _is_whole(mode, losses) else [f"only calls with events are here: the run {how}"]


def _is_whole(mode: str, losses: Sequence[tuple[int, int]]) -> bool:
    return mode not in _SELECTED and all(dropped == lost for dropped, lost in losses)
