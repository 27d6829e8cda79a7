"""What the report says of phases, and of what happens between the layers."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ensembles.model.run_info import idle_while_crowded
from ensembles.model.units import bytes_text, count_text, seconds_text, share_text
from ensembles.passes.group import SummaryRequest
from ensembles.passes.summary import ignoring_run
from ensembles.run import between_layers
from ensembles.run.headline import MOST_EVENTS
from ensembles.run.late_calls import with_late_calls
from ensembles.structure.collective_steps import step_notes, step_table
from ensembles.structure.phases.idle import IdleTime, idle_cells, idle_time
from ensembles.structure.phases.sync_time import SyncTime
from ensembles.structure.phases.table import PhaseTable, PhaseTotals
from ensembles.structure.phases.waiting import NOT_MEETING, with_known_idle
from ensembles.summaries.collective_steps import CollectiveSteps
from ensembles.viz.moments import MomentsTable

if TYPE_CHECKING:
    from ensembles.run.run import Run
    from ensembles.structure.phases.detect import Phases

_MOST_PHASES = 40


@dataclass(frozen=True)
class PhasesFound:
    """What a pass over the phases found.

    Attributes
    ----------
    phases : (Phases, list of PhaseTotals, set of int, IdleTime) or None
        With the phases that are mostly syncs. None: the run is one phase.
    steps : MomentsTable or None
        Steps of collective calls; None: there are no collective calls of MPI-IO.
    """

    phases: tuple[Phases, list[PhaseTotals], frozenset[int], IdleTime] | None = None
    steps: MomentsTable | None = None


def find_phases(run: Run) -> PhasesFound:
    """Add up the calls of phases, and the steps of collective calls.

    Returns
    -------
    PhasesFound
        Nothing if not all calls are events, or if there are more than `ensembles.run.headline.MOST_EVENTS`
        events.

    Raises
    ------
    EnsioError
        A file of the run can no longer be read.
    """
    if run.reading.most_events > MOST_EVENTS:
        return PhasesFound()
    phases = run.phases_of_calls
    requests = {}
    if phases is not None and phases.count > 1:
        requests["table"] = SummaryRequest(partial(_table_of, phases), PhaseTable.columns)
        requests["sync"] = SummaryRequest(partial(_sync_time_of, phases), SyncTime.columns)
    if any(call.layer == "mpiio" and call.name.endswith("_all") for call in run.calls):
        requests["steps"] = SummaryRequest(ignoring_run(CollectiveSteps))
    if not requests:
        return PhasesFound()
    found = run.summarize(requests)
    of_phases = None
    if phases is not None and "table" in requests:
        totals = with_known_idle(run, phases, found["table"].totals())
        idle = idle_time(totals, run.tasks, run.length_s)
        of_phases = (phases, with_late_calls(run, phases, totals), found["sync"].mostly_syncs(), idle)
    return PhasesFound(of_phases, _steps(run, found.summaries.get("steps")))


def _steps(run: Run, found: CollectiveSteps | None) -> MomentsTable | None:
    """Tabulate where the tasks of collective calls spent their time, as ``ensio phases`` does."""
    if found is None:
        return None
    steps = step_table(found, run.info.clock_error_ns, run.info.crowded_text)
    if steps is None:
        return None
    notes = " ".join(step_notes(steps.to_json()))
    if steps.refused:
        return MomentsTable((), (), notes)
    headers = ("collective call", "calls", "tasks", "time", "communication", "storage", "entry", "others")
    rows = [
        (
            row.call,
            f"{row.collective_calls:,}",
            f"{row.tasks:,}",
            seconds_text(row.time_s),
            *(
                share_text(share, 1) if share is not None else ""
                for share in row.to_json()["shares"].values()
            ),
        )
        for row in steps.rows
    ]
    return MomentsTable(headers, rows, notes)


def phases_table(
    phases: Phases, totals: Sequence[PhaseTotals], idle: IdleTime, crowded: str = ""
) -> MomentsTable:
    """Tabulate the phases, those with most time lost to imbalance if there are many."""
    is_known = not any(math.isnan(entry.lost_s) for entry in totals)
    shown = sorted(totals, key=lambda entry: -entry.lost_s if is_known else -entry.time_s)[:_MOST_PHASES]
    rows, hover = [], {}
    for entry in sorted(shown, key=lambda entry: entry.phase):
        name = f"{entry.phase} {entry.name}" if entry.name else str(entry.phase)
        last = entry.last_call
        on = f" on {os.path.basename(last.file)}" if last.file else ""
        hover[name] = (
            f"last call: {last.call} of rank {entry.slowest_task}, {seconds_text(last.duration_s)}{on}"
        )
        late = entry.late_calls
        if late is not None:
            most = f" on {os.path.basename(late.file)}" if late.file else ""
            hover[name] += (
                f"; it spent {seconds_text(late.time_s)} in {count_text(late.calls, 'call')} of "
                f"{late.call}{most}, rank {entry.middle_task} {seconds_text(late.other_s)}"
            )
        elif entry.late_outside is not None:
            hover[name] += f"; {entry.late_outside.text(entry.middle_task)}"
        rows.append(
            (
                name,
                f"{entry.start_s:.3f}",
                seconds_text(entry.time_s),
                f"{entry.tasks:,}",
                f"{entry.calls:,}",
                bytes_text(entry.bytes_read) if entry.bytes_read else "",
                bytes_text(entry.bytes_written) if entry.bytes_written else "",
                *(idle_cells(entry, idle.tasks, 1) if is_known else ()),
                f"{entry.slowest_task}: {entry.reason}",
            )
        )
    headers: tuple[str, ...] = ("phase", "from (s)", "time", "tasks", "calls", "read", "written")
    note = f"{count_text(phases.count, 'phase')}: {phases.sentence}. "
    if is_known:
        headers += ("idle", "share")
        note += f"Idle is the time from a task's last call of a phase to the last call of all: {idle.text}."
        note += f" {idle.absent_text}" if idle.absent_text else ""
        note += f" {idle_while_crowded(crowded)}" if crowded else ""
    else:
        note += NOT_MEETING
    if len(totals) > len(rows):
        most = "with most idle time" if is_known else "that take longest"
        note += f" Shown are the {len(rows)} phases {most}; ensio phases lists all."
    return MomentsTable((*headers, "last rank and call"), rows, note, hover)


def _table_of(phases: Phases, _: Any) -> PhaseTable:
    return PhaseTable(phases)


def _sync_time_of(phases: Phases, _: Any) -> SyncTime:
    return SyncTime(phases)


def layer_sentences(information: dict[str, Any] | None) -> list[str]:
    """Return what ``ensio info`` says between the layers, each a sentence.

    Parameters
    ----------
    information : dict or None
        From `ensembles.run.information.collect_information`.
    """
    if information is None:
        return []
    return [f"{text[0].upper()}{text[1:]}." for text in between_layers.layer_sentences(information)]
