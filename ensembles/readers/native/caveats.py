"""Data-quality warnings of a recorded run: the sentences of its notes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from ensembles.model.metadata import Process, RunMetadata
from ensembles.model.run_info import WHY_DROPPED
from ensembles.model.units import count_text, few
from ensembles.readers.native.clock import Clocks, notes_on_wrong_clocks
from ensembles.readers.native.clock_alignment import Alignment
from ensembles.readers.native.spool import Spool

_MOST_NAMED = 3


def notes_on_spools(spools: Sequence[Spool], about_ranks: Sequence[str]) -> list[str]:
    """Describe damage, unknown records and missing processes."""
    return [
        *few([sentence for spool in spools for sentence in spool.notes], "spools are damaged"),
        *_notes_on_unknown(spools),
        *about_ranks,
        *_notes_on_mpi_ends(spools),
        *_notes_on_job_file(spools),
        *_notes_on_children(spools),
        *_notes_on_folding(spools),
    ]


def notes_on_clocks(spools: Sequence[Spool], clocks: Clocks, alignment: Alignment) -> list[str]:
    """Describe doubtful clock rates, unaligned clocks and wrong times of day."""
    wrong = [] if alignment.error_s else few(notes_on_wrong_clocks(spools), "hosts have a wrong time of day")
    doubtful = few(list(dict.fromkeys(clocks.notes)), "clock rates are doubtful")
    return [*doubtful, *alignment.notes, *wrong]


def notes_on_ends(processes: Sequence[Process]) -> list[str]:
    """Describe the processes that did not end their recording, in one sentence."""
    running = [process for process in processes if not process.ended]
    if not running:
        return []
    count = len(running)
    who = f"{count} of {len(processes):,} processes"
    names = []
    for process in running[:_MOST_NAMED]:
        rank = f" (rank {process.rank})" if process.rank >= 0 else ""
        names.append(f"{process.pid}{rank} on {process.host or 'an unknown host'}")
    if len(processes) == 1:
        who, names = f"process {names[0]}", []
    its = "its" if count == 1 else "their"
    why = "still running, killed, or left by a raw system call, as programs in Go do"
    if _are_workers_of_python(running, processes):
        why = "killed, as Python's multiprocessing.Pool ends its workers"
    named = f": {' and '.join(names)}" if names and count <= _MOST_NAMED else ""
    return [
        f"{who} did not end {its} recording ({why}){named}; every call that the recorder saw complete is here"
    ]


def _are_workers_of_python(running: Sequence[Process], processes: Sequence[Process]) -> bool:
    """Whether processes are copies of Python processes that ended in order."""
    ended = {
        (process.host, process.pid): (process.program, process.command)
        for process in processes
        if process.ended and os.path.basename(process.program).startswith("python")
    }
    return all(
        ended.get((process.host, process.parent_pid)) == (process.program, process.command)
        for process in running
    )


def notes_on_losses(metadata: RunMetadata) -> list[str]:
    """Describe the calls without an event, without any record, or without their path, and the reasons."""
    notes, processes = [], metadata.processes
    why = "; ".join(
        WHY_DROPPED[reason] + (f" ({count:,})" if len(metadata.dropped_by_reason) > 1 else "")
        for reason, count in metadata.dropped_by_reason.items()
    )
    dropped = sum(process.dropped_events for process in processes)
    lost = sum(process.lost_calls for process in processes)
    if dropped > lost:
        notes.append(
            f"{dropped - lost} calls of {_processes(process.dropped_events for process in processes)} were "
            f"dropped from the events ({why}): tables, sums and histograms include them, pictures and lists "
            "of single calls do not"
        )
    if lost:
        notes.append(
            f"{lost} calls of {_processes(process.lost_calls for process in processes)} were not recorded "
            f"({why}): counts, times and bytes do not include them"
        )
    if metadata.calls_on_other_paths:
        notes.append(
            f"{metadata.calls_on_other_paths:,} calls name files beyond the number of paths that a process "
            "keeps: they are counted under the nearest folder that it keeps, or under (other paths)"
        )
    return notes


def _processes(losses: Iterable[int]) -> str:
    count = sum(loss > 0 for loss in losses)
    return f"{count} process{'es' if count > 1 else ''}"


def _notes_on_unknown(spools: Sequence[Spool]) -> list[str]:
    unknown = sum(spool.unknown for spool in spools)
    if not unknown:
        return []
    return [
        f"skipped {count_text(unknown, 'record')} of kinds that this ensio does not know: use the ensio that "
        "recorded them"
    ]


def _notes_on_mpi_ends(spools: Sequence[Spool]) -> list[str]:
    """Describe ranks that ended in order, but not by MPI: nothing else tells them from a complete run."""
    begun = [spool for spool in spools if b"mpi_end" in spool.properties]
    without = [spool for spool in begun if spool.ended and spool.properties[b"mpi_end"] == b"missing"]
    if not without:
        return []
    ranks = ", ".join(
        str(spool.head.rank) for spool in sorted(without, key=lambda spool: spool.head.rank)[:5]
    )
    more = ", ..." if len(without) > 5 else ""
    return [
        f"{len(without)} of the {count_text(len(begun), 'rank')} that called MPI_Init (rank {ranks}{more}) "
        "ended without MPI_Finalize: the run may have been stopped early"
    ]


def _notes_on_job_file(spools: Sequence[Spool]) -> list[str]:
    reasons = {spool.properties[b"no_job_file"] for spool in spools if b"no_job_file" in spool.properties}
    return [
        f"the ranks could not write one job file ({os.fsdecode(reason)}): all that they recorded is in their "
        "spools"
        for reason in sorted(reasons)
    ]


def _notes_on_children(spools: Sequence[Spool]) -> list[str]:
    count = sum(spool.head.unrecorded_children for spool in spools)
    if count == 0:
        return []
    return [
        f"{count} forked process{'es' if count > 1 else ''} could not be recorded (no space, or the run "
        "directory was gone): their calls are missing"
    ]


def _notes_on_folding(spools: Sequence[Spool]) -> list[str]:
    # The summary may be wrong by one call.
    count = sum(spool.head.folding and not spool.ended for spool in spools)
    if count == 0:
        return []
    return [
        f"{count} process{'es were' if count > 1 else ' was'} killed while a call was being added to the "
        "summary: of this one call, a part may be missing there or counted twice"
    ]
