"""What a run has none of, so that causes which need it are neither found nor clean."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.rule import NotApplicable

_TASKS, _NODES, _STRIPES = (
    "one task makes the I/O calls",
    "all tasks are on one node",
    "no file has known stripes",
)


class _Need(NamedTuple):
    lack: str
    is_there: Callable[[Case], bool]
    of_calls: bool = False


def _calls(what: str, there: Callable[[Case], np.ndarray]) -> _Need:
    return _Need(f"no {what} was recorded", lambda case: bool(there(case).any()), of_calls=True)


def _several_nodes(case: Case) -> bool:
    hosts = [process.host for process in case.run.info.processes]
    return len(set(hosts)) > 1 or not all(hosts)


def _on_stripes(case: Case) -> bool:
    return any("lustre.lov" in facts for facts in case.run.info.file_facts.values())


_HDF5 = _calls("call of HDF5", lambda case: case.layer == "hdf5")
_COLLECTIVE = _calls("collective call of MPI-IO", lambda case: np.char.endswith(case.name, "_all"))
_READS = _calls("read", lambda case: case.op == "read")
_SEVERAL = _Need(_TASKS, lambda case: len(case.ranks) > 1)

_OF_DXT = ", and Darshan's DXT traces only reads and writes: record the run with ensio"

_NEEDS: dict[str, _Need] = {
    "aggregation-mismatch": _COLLECTIVE,
    "close-cost": _calls("close", lambda case: case.op == "close"),
    "collective-coordination": _COLLECTIVE,
    "hdf5-filters": _HDF5,
    "hdf5-metadata": _HDF5,
    "hdf5-refill": _HDF5,
    "imbalance": _Need(_TASKS, lambda case: case.run.tasks > 1),
    "lock-contention": _Need(_STRIPES, _on_stripes),
    "metadata-storm": _calls("call on a path", lambda case: np.isin(case.op, ("open", "meta"))),
    "node-serialisation": _Need(_NODES, _several_nodes),
    "redundant-reads": _READS,
    "seek-heavy": _READS,
    "serialised-metadata": _SEVERAL,
    "single-stripe": _Need(_STRIPES, _on_stripes),
    "slow-target": _Need(_STRIPES, _on_stripes),
    "stdio-buffer": _calls("call on a stream", lambda case: case.layer == "stdio"),
    "straggler-node": _Need(_NODES, _several_nodes),
    "straggler-task": _SEVERAL,
    "strided-readahead": _READS,
    "sync-per-write": _calls("sync", lambda case: case.op == "sync"),
    "too-many-writers": _SEVERAL,
}


def lack_of(case: Case, cause: str, refusal: NotApplicable | None) -> NotApplicable | None:
    """Return why a run cannot have a cause; None: it may have it, as far as is known.

    Parameters
    ----------
    case : Case
        Of a run with all calls.
    cause : str
        Id of a rule.
    refusal : NotApplicable or None
        Why the rule could not be applied, if so. What it says to record stays said.
    """
    need = _NEEDS.get(cause)
    if need is None or need.is_there(case):
        return None
    is_untraced = need.of_calls and bool(case.run.counters.tool)
    if refusal is None or refusal.at_most_s is not None:
        return NotApplicable(need.lack + _OF_DXT * is_untraced, applies=is_untraced)
    refusal.applies = need is _HDF5 or is_untraced
    return refusal
