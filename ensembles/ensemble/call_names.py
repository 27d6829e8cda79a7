"""Names and caveats of the functions whose calls form an ensemble."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ensembles.model.events import Call, Events


def used_calls(events: Events) -> list[Call]:
    """Return the functions that occur in `events`, in the order of their numbers."""
    return [events.calls[number] for number in np.flatnonzero(np.bincount(events.call))]


def call_name(used: Sequence[Call]) -> str:
    """Return the functions' names, comma-separated; of more than three, the first three and a count."""
    names = [call.name for call in used]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def op_name(used: Sequence[Call]) -> str:
    """Return the common operation of the functions; ``""`` if they have several, or there are none."""
    ops = {call.op for call in used}
    return ops.pop() if len(ops) == 1 else ""


def caveats_about(used: Sequence[Call]) -> list[str]:
    """Return one sentence for each reason why these calls are not one ensemble.

    Calls of several layers may contain each other; calls of several operations have different distributions.
    """
    layers = sorted({call.layer for call in used})
    ops = sorted({call.op for call in used})
    doubts = []
    if len(layers) > 1:
        doubts.append(
            f"this ensemble has calls of {len(layers)} layers ({', '.join(layers)}), and calls of one layer "
            "may contain calls of another: choose one layer"
        )
    if len(ops) > 1:
        doubts.append(f"this ensemble has calls of {len(ops)} operations ({', '.join(ops)}): choose one op")
    return doubts
