"""What the report says of phases, and of what happens between the layers."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

from ensembles.model.units import bytes_text, count_text, seconds_text
from ensembles.run.headline import MOST_EVENTS
from ensembles.structure.layer_traffic import collective_sentence, traffic_sentences
from ensembles.viz.moments import MomentsTable
from ensembles.viz.style import percent_text

if TYPE_CHECKING:
    from ensembles.run.run import Run
    from ensembles.structure.phases.detect import Phases
    from ensembles.structure.phases.table import PhaseTable

_MOST_PHASES = 40


def phase_table(run: Run) -> MomentsTable | None:
    """Tabulate the phases, those with most time lost to imbalance if there are many.

    Parameters
    ----------
    run : Run

    Returns
    -------
    MomentsTable or None
        None: not all calls are events, there are more than `ensembles.run.headline.MOST_EVENTS` events, or
        the run is one phase.

    Raises
    ------
    EnsioError
        A file of the run can no longer be read.
    """
    if (
        not run.info.keeps_all_calls
        or run.reading.most_events > MOST_EVENTS
        or run.phases is None
        or run.phases.count < 2
    ):
        return None
    phases = run.phases
    totals = run.summarize(partial(_table_of, phases)).totals()
    shown = sorted(totals, key=lambda entry: -entry.lost_s)[:_MOST_PHASES]
    rows, hover = [], {}
    for entry in sorted(shown, key=lambda entry: entry.phase):
        name = f"{entry.phase} {entry.name}" if entry.name else str(entry.phase)
        last = entry.last_call
        on = f" on {os.path.basename(last.file)}" if last.file else ""
        hover[name] = (
            f"last call: {last.call} of rank {entry.slowest_task}, {seconds_text(last.duration_s)}{on}"
        )
        rows.append(
            (
                name,
                f"{entry.start_s:.3f}",
                seconds_text(entry.time_s),
                f"{entry.tasks:,}",
                f"{entry.calls:,}",
                bytes_text(entry.bytes_read) if entry.bytes_read else "",
                bytes_text(entry.bytes_written) if entry.bytes_written else "",
                seconds_text(entry.lost_s),
                percent_text(entry.lost_share),
                f"{entry.slowest_task}: {last.call}",
            )
        )
    headers = ("phase", "from (s)", "time", "tasks", "calls", "read", "written", "idle", "share")
    idle = seconds_text(sum(entry.lost_s for entry in totals if entry.calls))
    note = (
        f"{count_text(phases.count, 'phase')}: {phases.sentence}. Idle is the time from a task's last call "
        f"of a phase to the last call of all: {idle} over all phases."
    )
    if len(totals) > len(rows):
        note += f" Shown are the {len(rows)} phases with most idle time; ensio phases lists all."
    return MomentsTable((*headers, "last rank and call"), rows, note, hover)


def _table_of(phases: Phases, _: Any) -> PhaseTable:
    from ensembles.structure.phases.table import PhaseTable

    return PhaseTable(phases)


def layer_sentences(information: dict[str, Any] | None) -> list[str]:
    """Return what ``ensio info`` says between the layers, each a sentence.

    Parameters
    ----------
    information : dict or None
        From `ensembles.run.information.collect_information`.

    Returns
    -------
    list of str
    """
    if information is None:
        return []
    found = [
        *traffic_sentences(information["layer_traffic"] or []),
        collective_sentence(information["collective"]),
    ]
    return [f"{text[0].upper()}{text[1:]}." for text in found if text]
