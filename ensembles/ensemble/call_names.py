"""What the calls of an ensemble are, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ensembles.model.events import Call, Events


def used_calls(events: Events) -> list[Call]:
    """The functions that were called."""
    return [events.calls[number] for number in np.flatnonzero(np.bincount(events.call))]


def call_name(used: Sequence[Call]) -> str:
    """The functions' names, of many the first."""
    names = [call.name for call in used]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def op_name(used: Sequence[Call]) -> str:
    """The functions' kind of operation; ``""``: several, or none."""
    ops = {call.op for call in used}
    return ops.pop() if len(ops) == 1 else ""


def caveats_about(used: Sequence[Call]) -> list[str]:
    """What makes calls of these functions more than one ensemble, in plain sentences."""
    layers = sorted({call.layer for call in used})
    ops = sorted({call.op for call in used})
    doubts = []
    if len(layers) > 1:
        doubts.append(
            f"calls of {len(layers)} layers ({', '.join(layers)}) are one ensemble here, and those of one "
            "may be made inside those of another: choose one by layer"
        )
    if len(ops) > 1:
        doubts.append(f"calls of {len(ops)} kinds ({', '.join(ops)}) are one ensemble here: choose one by op")
    return doubts
