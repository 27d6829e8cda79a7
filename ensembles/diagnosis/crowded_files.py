"""Shared files on one storage target: how many tasks have work for it at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.file_uses import tasks_at_once
from ensembles.diagnosis.finding import NotApplicable
from ensembles.diagnosis.limits import FEW, LEAST_UNITS, WIDE_BYTES
from ensembles.model.distinct import distinct_rows

WIDER = 8
"""Stripes of the remedy whose gain is predicted."""


class Crowded(NamedTuple):
    """Calls on shared files of one stripe."""

    # bool, shape (m,): Of `FileUses.table`: calls while several tasks have work for the target
    rows: np.ndarray
    writes: np.ndarray  # bool, shape (m,): Writes to files of one stripe
    at_once: float  # Targets for which there is work at once
    least_at_once: float  # The same if tasks go on from target to target together
    makers: int  # Tasks that write to these files
    # The work is that of calls on the file; else it waits for the few tasks that make the calls for all
    sure: bool


def find_crowded(case: Case, table: dict[str, np.ndarray]) -> Crowded | None:
    """Find calls on shared files of one stripe, for which several targets would have work."""
    layouts = [case.run.info.striping_of(path) for path in case.run.files]
    counts = np.array([0 if layout is None else layout.stripe_count for layout in layouts])
    if not counts.any():
        raise NotApplicable(
            "the layout of the files is not known: record the run on Lustre, with the client's extended "
            "attributes"
        )
    layer, op = case.layers[table["call"]], case.ops[table["call"]]
    # What a write leaves in the cache, a close, a sync or the next read waits for.
    uses = (layer == "posix") & np.isin(op, ("write", "read", "sync", "close")) & (counts[table["file"]] == 1)
    writes = uses & (op == "write") & (table["bytes"] > 0)
    if not writes.any():
        return None
    number, written = table["file"][uses], table["file"][writes]
    users = np.bincount(distinct_rows(number, table["rank"][uses])[0][0], minlength=len(counts))
    moved = np.bincount(written, table["bytes"][writes], len(counts))
    shared = (users >= LEAST_UNITS) & (moved >= WIDE_BYTES)
    # One large write is for as many targets as it has stripes.
    stripes = np.array([layout.stripe_bytes if layout is not None else 0 for layout in layouts])
    of_call = moved / np.maximum(np.bincount(written, table["n"][writes], len(counts)), 1)
    at_once = tasks_at_once(table, uses)
    time_ns = table["time_ns"][uses]
    # In a collective call, the bytes of all tasks are there at once, although few of them store them.
    together = _bytes_of_collectives(case, table, len(counts))
    by_tasks, at_once = (
        at_once * np.clip(each / np.maximum(stripes, 1), 1, WIDER)[number]
        for each in (of_call, np.maximum(of_call, together))
    )
    every, early = _targets_with_more_stripes(table, uses, writes, stripes)
    at_once = np.minimum(at_once, every)
    crowded = shared[number] & (at_once >= FEW)
    if not crowded.any():
        return None
    makers = len(np.unique(table["rank"][writes & shared[table["file"]]]))
    sure = makers >= LEAST_UNITS and bool(np.average(by_tasks[crowded], weights=time_ns[crowded]) >= FEW)
    chosen = uses.copy()
    chosen[uses] = crowded
    # No more targets help than there is work at once.
    useful = float(np.clip(np.average(at_once[crowded], weights=time_ns[crowded]), FEW, WIDER))
    least = float(np.average(np.minimum(at_once, early)[crowded], weights=time_ns[crowded]))
    return Crowded(chosen, writes, useful, least, makers, sure)


def _targets_with_more_stripes(
    table: dict[str, np.ndarray], uses: np.ndarray, writes: np.ndarray, stripes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Count the targets that the writes of each row's phase would lie on, if the file had more stripes.

    Tasks whose parts lie whole rounds of stripes apart begin on the same target. If it serves all alike, they
    go on to the next at about the same time, as long as their parts do not reach over all stripes. A close
    or a sync waits for the writes of all phases.
    """
    file = table["file"][uses]
    _, where = distinct_rows(file, table["phase"][uses])
    shape = (int(where.max(initial=-1)) + 1, WIDER)
    group = np.full(len(uses), -1)
    group[uses] = where
    at = np.flatnonzero(writes & (table["low"] < table["high"]) & (stripes[table["file"]] > 0))
    step = stripes[table["file"][at]]
    first = table["low"][at] // step
    reach = np.minimum((table["high"][at] - 1) // step - first, WIDER - 1)
    touched, begun, reaches_all = np.zeros(shape, bool), np.zeros(shape, bool), np.zeros(shape[0], bool)
    begun[group[at], first % WIDER] = True
    for further in range(WIDER):
        some = reach >= further
        touched[group[at[some]], (first[some] + further) % WIDER] = True
    reaches_all[group[at[reach == WIDER - 1]]] = True
    of_file = np.zeros((len(stripes), WIDER), bool)
    np.logical_or.at(of_file, file, touched[where])
    every = np.where(writes[uses], touched.sum(axis=1)[where], of_file.sum(axis=1)[file])
    early = np.where(writes[uses] & ~reaches_all[where], begun.sum(axis=1)[where], every)
    is_known = every > 0  # calls without an offset say nothing
    return np.where(is_known, every, WIDER).astype(float), np.where(is_known, early, WIDER).astype(float)


def _bytes_of_collectives(case: Case, table: dict[str, np.ndarray], files: int) -> np.ndarray:
    """Return the bytes that all tasks together write in one collective call on each file; 0: in none."""
    names = case.names[table["call"]]
    rows = np.char.startswith(names, "MPI_File_write") & np.char.endswith(names, "_all")
    moved, calls = (np.bincount(table["file"][rows], table[name][rows], files) for name in ("bytes", "n"))
    found: np.ndarray = len(case.ranks) * moved / np.maximum(calls, 1)
    return found
