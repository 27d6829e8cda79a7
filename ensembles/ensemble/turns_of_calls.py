"""Find the phases of an ensemble whose calls are served one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ensembles.statistics.modes.steps_of_turns import StepsOfTurns
from ensembles.structure.turns import LEAST_UNITS, LEVEL, MOST_START_SHARE, Turns, p_of_turns, turns_of

if TYPE_CHECKING:
    from ensembles.ensemble.calls import EnsembleCalls

_MIB = float(1 << 20)


def steps_of_turns(ensemble: EnsembleCalls) -> StepsOfTurns | None:
    """Find the steps in which nodes, or tasks, are served one after the other.

    Phases in which each task makes one call are examined, as of the finding node-serialisation. Tasks that
    share processors may take turns there, so that only their nodes count.

    None: calls are not served in turns, or the columns are unknown.
    """
    calls = _phases_of_one_call_each(ensemble)
    if not calls:
        return None
    assert ensemble.rank is not None
    found = None if ensemble.node is None else _in_turns(ensemble, calls, ensemble.node, "node")
    if found is None and not ensemble.crowded:
        found = _in_turns(ensemble, calls, ensemble.rank, "task")
    return found


def _ends_ns(ensemble: EnsembleCalls) -> np.ndarray:
    assert ensemble.durations_s is not None
    assert ensemble.start_ns is not None
    assert ensemble.bytes is not None
    durations_s = ensemble.durations_s
    if ensemble.per == "MiB":
        durations_s = durations_s * (ensemble.bytes / _MIB)
    return ensemble.start_ns + np.rint(1e9 * durations_s).astype(np.int64)


def _phases_of_one_call_each(ensemble: EnsembleCalls) -> list[np.ndarray]:
    """Return the calls of each phase in which enough tasks make one call each, and begin together."""
    phase, rank, start = ensemble.phase, ensemble.rank, ensemble.start_ns
    if phase is None or rank is None or start is None or ensemble.bytes is None:
        return []
    if ensemble.durations_s is None or not ensemble.bytes.any():
        return []
    order = np.lexsort((rank, phase))
    order = order[phase[order] > 0]
    if not len(order):
        return []
    first = np.flatnonzero(np.diff(phase[order], prepend=-1))
    size = np.diff(first, append=len(order))
    again = np.diff(rank[order], prepend=-1) == 0
    again[first] = False
    begin = np.minimum.reduceat(start[order], first)
    late = np.maximum.reduceat(start[order], first) - begin
    length = np.maximum.reduceat(_ends_ns(ensemble)[order], first) - begin
    once = (np.add.reduceat(again, first) == 0) & (size >= LEAST_UNITS) & (late <= MOST_START_SHARE * length)
    return [order[at : at + count] for at, count in zip(first[once], size[once], strict=True)]


def _in_turns(
    ensemble: EnsembleCalls, calls: list[np.ndarray], units: np.ndarray, unit: str
) -> StepsOfTurns | None:
    assert ensemble.start_ns is not None
    assert ensemble.bytes is not None
    columns = units, ensemble.start_ns, _ends_ns(ensemble), ensemble.bytes
    tested: list[Turns] = []
    in_turns = 0
    for rows in calls:
        turns = turns_of(*(column[rows] for column in columns))
        if turns is not None:
            tested.append(turns)
            in_turns += len(rows) * turns.are_even
    even = [turns for turns in tested if turns.are_even]
    if not even or (chance := p_of_turns(tested)) > LEVEL:
        return None
    return StepsOfTurns(
        unit,
        int(np.median([turns.units for turns in even])),
        1e-9 * float(np.median([turns.step_ns for turns in even])),
        1e-9 * float(np.median([turns.length_ns for turns in even])),
        len(even),
        len(tested),
        in_turns / ensemble.n,
        chance,
    )
