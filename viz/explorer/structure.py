"""Phases and call indices of the calls that the filters of the explorer select."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from ensembles.answers.ordinals import RunOrdinals, durations_by_ordinal
from ensembles.answers.phases import answer_phases
from ensembles.diagnosis.finding import Diagnosis
from ensembles.diagnosis.text import account_text, most_time_text, undecided_text, unexplained_text
from ensembles.faces.words import sentence
from ensembles.model.errors import EnsioError
from ensembles.run.run import Run
from ensembles.run.selection import Selection
from ensembles.structure.phases.table import PhaseTotals
from ensembles.viz.explorer.background import Background

_MOST_KEPT = 8
"""Selections whose phases and call indices are remembered."""


@dataclass(frozen=True)
class Structure:
    """Phases and call indices of some calls of a run, which a reader can mark."""

    phases: Sequence[PhaseTotals] = ()
    # Of the reads or writes, whichever took more time; None: there are none
    ordinals: RunOrdinals | None = None
    reasons: list[str] = field(default_factory=list)  # Why something is missing
    # What tasks without a call in a phase could add to the idle times; empty: there are none
    absent: str = ""


def structure_of(run: Run, selection: Selection) -> Structure:
    """Find phases and call indices, as ``ensio phases`` and ``ensio ordinals`` do with the same filters."""
    known = run.reading.phases_of_calls
    if known is None:
        why = f"Phases and call indices are not known: {run.path} {run.info.how_it_was_recorded}"
        return Structure(reasons=[why])
    found = answer_phases(run, selection)
    if not found.phases and not selection.selects_all:
        return Structure()  # the sentence about the selected calls says why
    absent_tasks = found.absent_tasks
    absent = sentence(absent_tasks) if absent_tasks else ""
    try:
        # The columns of the table are times, also where the histogram is of times per MiB.
        ordinals = durations_by_ordinal(run, replace(selection, per_byte=False))
        return Structure(found.phases, ordinals, absent=absent)
    except EnsioError as error:
        return Structure(found.phases, None, [f"No call indices: {error}."], absent)


class StructuresRead:
    """Phases and call indices of a run that is read in the background."""

    def __init__(self, run: Run, background: Background, found: Callable[[], None]) -> None:
        self._run, self._background, self._changed = run, background, found
        self._found: dict[Selection, Structure] = {}

    def of(self, selection: Selection) -> Structure | None:
        """Return the structure of the calls of a selection; None: it is being read."""
        if selection not in self._found:
            self._background.ask(("structure", selection), partial(self._read, selection))
        return self._found.get(selection)

    def _read(self, selection: Selection) -> Iterator[None]:
        while len(self._found) >= _MOST_KEPT:
            del self._found[next(iter(self._found))]
        self._found[selection] = structure_of(self._run, selection)
        self._changed()
        yield


def about_causes(diagnosis: Diagnosis, structure: Structure | None, of_run: str, filtered: bool) -> str:
    """Say what the tables of findings, phases and call indices have, and what they lack."""
    sentences = [f"Findings, phases and call indices are those of {of_run}."] if of_run else []
    if not diagnosis.findings:
        where = " in what was recorded" * bool(diagnosis.lacks)
        sentences.append(f"No finding{where}: {len(diagnosis.examined)} causes were examined.")
    said = [
        account_text(diagnosis),
        diagnosis.lost_data,
        *undecided_text(diagnosis),
        unexplained_text(diagnosis),
        most_time_text(diagnosis),
    ]
    sentences += [f"{each[:1].upper()}{each[1:]}." for each in said if each]
    if structure is None:
        sentences.append("Phases and call indices of the calls that the filters select are being read.")
        return " ".join(sentences)
    if structure.ordinals is not None:
        of = " that the filters select" if filtered else ""
        sentences.append(f"Call indices are those of the {structure.ordinals.what} of a task on a file{of}.")
    elif filtered and not structure.phases and not structure.reasons:
        sentences.append("The filters select no call of a phase.")
    if structure.absent:
        sentences.append(structure.absent)
    return " ".join([*sentences, *structure.reasons])
