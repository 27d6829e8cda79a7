"""Calls divided by operation and request size."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ensembles.ensemble.ensemble import Ensemble
from ensembles.model.events import Events
from ensembles.model.units import bytes_text
from ensembles.run.run import Run

MOST = 6
"""Classes in a picture: as many as there are colours of a series."""


def ensembles_by_size(data: Any, per: Literal["call", "MiB"] = "call") -> tuple[dict[str, Ensemble], int]:
    """Return an ensemble of the reads, and of the writes, of each size.

    With more than `MOST` sizes, classes are octaves: from a power of two to less than the next one.

    Examples
    --------
    >>> from ensembles.viz.pictures.size_classes import ensembles_by_size
    >>> ensembles, count = ensembles_by_size(en.open("ensio-ior"))
    >>> {name: each.n for name, each in ensembles.items()}, count
    ({'read 1.00 MiB': 160, 'write 1.00 MiB': 160}, 2)
    """
    if not isinstance(data, Run | Events):
        raise TypeError(f"sizes of calls need a run or events, not {type(data).__name__}")
    events = data.select(op=["read", "write"]) if isinstance(data, Run) else data
    ops = np.array([call.op for call in events.calls] or [""])
    moves = np.isin(ops, ("read", "write"))[events.call] & (events.requested > 0)
    events = events[moves]
    op_of, size_of = ops[events.call], events.requested.astype(np.float64)
    octave_of = np.exp2(np.floor(np.log2(size_of))) if len(events) else size_of
    pairs = {(op, size) for op, size in zip(op_of.tolist(), size_of.tolist(), strict=True)}
    is_octave = len(pairs) > MOST
    class_of = octave_of if is_octave else size_of
    found = []
    for op, size in sorted(set(zip(op_of.tolist(), class_of.tolist(), strict=True))):
        part = events[(op_of == op) & (class_of == size)]
        text = bytes_text(int(size))
        label = f"{op} {text} – {bytes_text(int(2 * size))}" if is_octave else f"{op} {text}"
        found.append((label, op, part))
    shown = sorted(found, key=lambda one: -int(one[2].duration.sum()))[:MOST]
    ensembles = {}
    for label, op, part in found:
        if any(part is other for _, _, other in shown):
            ensemble = Ensemble.from_events(part, per)
            ensemble.name, ensemble.op = label, op
            ensembles[label] = ensemble
    return ensembles, len(found)
