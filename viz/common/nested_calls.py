"""What single calls have to do with other things: the calls around them, their layers and storage targets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensembles.model.events import Events
from ensembles.model.layouts import Layouts
from ensembles.model.run_info import RunInfo
from ensembles.summaries.target_load import LAYERS as LOCATED

LAYERS = ("netcdf", "pnetcdf", "hdf5", "mpiio", "stdio", "posix")
"""Layers of I/O, those that call others first."""

_MOST_TARGETS = 6
"""Targets that a text names."""


def enclosing_calls(events: Events) -> np.ndarray:
    """Find the call around each call, among the same events.

    Index of the innermost call of the same thread around it; -1: there is none among these events.
    """
    found = np.full(len(events), -1, np.int64)
    thread = events.rank.astype(np.int64) << 16 | events.thread
    for depth in np.unique(events.depth[events.depth > 0]).tolist():
        inner, outer = (np.flatnonzero(events.depth == each) for each in (depth, depth - 1))
        outer = outer[np.lexsort((events.start[outer], thread[outer]))]
        # Calls of one thread and depth do not overlap: the last that began before is the one, or none is.
        order = np.lexsort(
            (
                np.append(np.zeros(len(outer)), np.ones(len(inner))),
                np.append(events.start[outer], events.start[inner]),
                np.append(thread[outer], thread[inner]),
            )
        )
        before = np.cumsum(order < len(outer))[np.argsort(order)][len(outer) :] - 1
        some = np.flatnonzero(before >= 0)
        inner, around = inner[some], outer[before[some]]
        holds = (thread[around] == thread[inner]) & (events.end[around] >= events.end[inner])
        found[inner[holds]] = around[holds]
    return found


def nested_layers(events: Events) -> list[str]:
    """Return the layers of calls whose layers call each other, those that call others first.

    Empty: no call is inside a call of another layer.
    """
    if not len(events) or not events.depth.any():
        return []
    around = enclosing_calls(events)
    layer = np.array([_number(call.layer) for call in events.calls])[events.call]
    inside = np.flatnonzero(around >= 0)
    if not (layer[inside] != layer[around[inside]]).any():
        return []
    present = set(np.unique(layer).tolist())
    found = [name for number, name in enumerate(LAYERS) if number in present]
    return found if len(found) > 1 else []


def lanes_sentence(layers: Sequence[str]) -> str:
    """Say how the lanes of a row are ordered.

    Examples
    --------
    >>> from ensembles.viz.common.nested_calls import lanes_sentence
    >>> lanes_sentence(["hdf5", "mpiio", "posix"])
    'In each row, calls of hdf5 are above those of mpiio, and these above those of posix.'
    """
    first, second, *others = layers
    more = "".join(f", and these above those of {layer}" for layer in others)
    return f"In each row, calls of {first} are above those of {second}{more}."


def _number(layer: str) -> int:
    return LAYERS.index(layer) if layer in LAYERS else -1


def lanes_of_layers(events: Events, layers: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the lane of each call among those of its layers, and how many lanes it fills."""
    numbers = [layers.index(call.layer) if call.layer in layers else -1 for call in events.calls]
    lane = np.array([*numbers, -1], np.int64)[events.call]
    other, inside = lane < 0, events.depth > 0
    lane = np.where(other, np.where(inside, len(layers) - 1, 0), lane)
    return lane, np.where(other & ~inside, len(layers), 1)


def names_of_calls(events: Events) -> list[str]:
    """Return the name of each call, with those of the calls around it."""
    around = enclosing_calls(events).tolist()
    calls = [events.calls[number].name for number in events.call.tolist()]

    def named(place: int) -> str:
        outer = around[place]
        return calls[place] if outer < 0 else f"{calls[place]}, inside {named(outer)}"

    return [named(place) for place in range(len(calls))]


def knows_targets(info: RunInfo | None) -> bool:
    """Whether the layout of any file of a run is known."""
    return info is not None and any("lustre.lov" in facts for facts in info.file_facts.values())


def names_of_targets(events: Events, info: RunInfo) -> list[str]:
    """Return the names of the storage targets of each call, in the order of its bytes."""
    known = {number: info.striping_of(events.files[number]) for number in np.unique(events.file).tolist()}
    layouts = Layouts({number: each for number, each in known.items() if each is not None})
    located = np.array([*(call.layer in LOCATED for call in events.calls), False])[events.call]
    moved = np.where(located, np.maximum(events.moved, 0), 0)
    reached: list[dict[int, None]] = [{} for _ in range(len(events))]
    found = np.zeros(len(events), np.int64)
    for pieces in layouts.pieces(events.file.astype(np.int64), events.offset, moved):
        np.add.at(found, pieces.number, pieces.bytes)
        for number, target in zip(
            pieces.number.tolist(), layouts.targets[pieces.target].tolist(), strict=True
        ):
            reached[number][target] = None
    return [
        _targets_text(list(mine), some, whole, is_located)
        for mine, some, whole, is_located in zip(
            reached, found.tolist(), events.moved.tolist(), located.tolist(), strict=True
        )
    ]


def _targets_text(targets: list[int], found: int, whole: int, is_located: bool) -> str:
    if whole <= 0:
        return "none"
    if not is_located:
        return "those of the calls inside"
    if not targets:
        return "unknown"
    names = ", ".join(map(str, targets[:_MOST_TARGETS]))
    more = f", … ({len(targets):,} in all)" if len(targets) > _MOST_TARGETS else ""
    return f"OST{'s' * (len(targets) > 1)} {names}{more}" + (", and unknown ones" if found < whole else "")
