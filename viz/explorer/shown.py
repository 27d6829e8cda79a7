"""What the explorer shows of a run: its calls, those that the filters select, and the marked ones.

Phases and call indices of the calls that the filters of the explorer select.
"""

from __future__ import annotations

import glob
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from ensembles.answers.diagnose import DiagnosisAnswer, diagnose
from ensembles.answers.ordinals import RunOrdinals, durations_by_ordinal
from ensembles.answers.phases import answer_phases
from ensembles.diagnosis.finding import Finding
from ensembles.ensemble.ensemble import Ensemble
from ensembles.ensemble.from_run import Per
from ensembles.ensemble.main_ensemble import main_ensemble
from ensembles.faces.words import sentence
from ensembles.model.calls import is_io_of_calls
from ensembles.model.errors import EnsioError
from ensembles.model.events import Events
from ensembles.model.holds import Holds
from ensembles.model.spans import find_spans, spans_text
from ensembles.model.units import HELD_EVENTS
from ensembles.run.run import Run
from ensembles.run.selection import Selection
from ensembles.structure.phases.table import PhaseTotals
from ensembles.viz.common.single_calls import Window
from ensembles.viz.explorer.background import Background
from ensembles.viz.explorer.calls import Calls
from ensembles.viz.explorer.reader import CallReader, calls_in_view, can_be_read
from ensembles.viz.explorer.view import View

_KEPT_BY_FINDINGS = ("run", "beside", "causes", "zoom_s", "zoom_ranks")


@dataclass(frozen=True)
class Causes:
    """What the analysis says about a run, whose calls a reader can mark."""

    diagnosis: DiagnosisAnswer
    structure: Structure  # Phases and call indices of all calls


class Shown:
    """The calls of a run that the explorer shows: in memory, or read from a file when they are needed.

    `events`: the calls that are held; None: they are read from the file.
    `notes`: what is missing.
    `version`: grows with every change of what is shown, of a run that goes on or is read in the background.
    `is_growing`: whether pages have to look at `version`.
    `answered`: when a reader last asked, by `time.monotonic`.
    `is_part`: whether calls of some ranks only, or those so far, are held.
    """

    is_growing = is_part = False
    answered = 0.0

    def __init__(self, run: Run, most_events: int | None = None, *, in_background: bool = False) -> None:
        run.reading.need(Holds.SOME_CALLS, "there are no calls to explore (ensio report shows the sums)")
        self.run = run
        self.notes: list[str] = []
        self.version = 0
        self.events = self._held_calls(HELD_EVENTS if most_events is None else most_events, in_background)
        if self.events is None:
            self.is_growing = in_background
        self._causes_in_background = Background(
            lambda key, error: self._failed(error), in_background and self.events is None
        )
        self._begin()

    def _begin(self) -> None:
        """Forget what was found of the calls."""
        self._reader = CallReader(
            self.run, self.events, self._news, self._failed, in_background=self.is_growing
        )
        self._structures = StructuresRead(self.run, self._causes_in_background, self._news)

    def _held_calls(self, most_events: int, in_background: bool) -> Events | None:
        run = self.run
        if run.reading.most_events <= most_events:
            return run.events
        if can_be_read(run):
            self.notes.append(
                f"The run has {run.reading.most_events:,} calls, more than are held in memory: what you mark "
                "is read from its file"
                + (" in the background, and shown as it is read." if in_background else ".")
            )
            return None
        events = run.reading.some_ranks(most_events, least_ranks=1)
        self.is_part = True
        self.notes.append(
            f"Part of the run: all {len(events):,} calls of {len(np.unique(events.rank)):,} evenly spaced "
            f"ranks of {run.tasks:,}. To see all of them, collect the run: ensio collect {run.path}"
        )
        return run.reading.numbered(events)

    def _news(self) -> None:
        if self.is_growing:
            self.version += 1

    def _failed(self, error: Exception) -> None:
        self.notes.append(
            str(error) if isinstance(error, EnsioError) else f"reading {self.run.path} failed: {error}"
        )
        self.version += 1

    @property
    def is_large(self) -> bool:
        """Whether calls are read from a file when they are needed."""
        return self.events is None

    @cached_property
    def causes(self) -> Causes:
        """Findings, phases and ordinals of the run, from passes over it when first asked for."""
        structure = structure_of(self.run, Selection())
        return Causes(diagnose(self.run), structure)

    def structure(self, view: View) -> Structure | None:
        """Return phases and call indices of the calls that the filters select; None: they are being read."""
        selection = self.selection(view.filters)
        return self.causes.structure if selection.selects_all else self._structures.of(selection)

    @property
    def examines(self) -> bool:
        """Whether causes are being examined without being asked for."""
        return False

    @property
    def knows_causes(self) -> bool:
        """Whether `causes` needs no pass, or a short one."""
        return "causes" in self.__dict__ or (self.events is not None and len(self.events) <= 100_000)

    def find_causes(self) -> None:
        """Examine the run for causes; of a large run in the background, and then `version` grows."""
        if not self.knows_causes:
            self._causes_in_background.ask("causes", self._find_causes)

    def _find_causes(self) -> Iterator[None]:
        assert self.causes is not None
        self._news()
        yield

    def answering(self, *, quiet_s: float = 0.3) -> AbstractContextManager[None]:
        """Return a context in which a page is answered, and what is read in the background rests.

        So it does for `quiet_s` after the answer: the page paints, and often asks again.
        """
        if quiet_s:
            self.answered = time.monotonic()
        return self._reader.answers.answering(quiet_s)

    def wait(self) -> None:
        """Wait until everything that was asked for has been read."""
        self._reader.wait()
        self._causes_in_background.wait()

    def selection(self, filters: Any) -> Selection:
        """Return the calls of this run that filters select."""
        given: dict[str, Any] = {
            name: text.split("\n") if name == "file" and "\n" in text else text
            for name, text in filters.items()
        }
        return Selection.parse(**given).for_run(self.run)

    def calls(self, view: View) -> Calls:
        """Return the calls that the filters of a view select, for pictures and tables."""
        return self._reader.calls(self.selection(view.filters))

    def marked_calls(self, view: View) -> Calls | None:
        """Return the marked calls, as far as they have been read; None: no mark."""
        if not view.is_marked:
            return None
        has_others = view.filters or view.marks or view.offsets is not None or view.rates is not None
        return self._reader.calls(self.selection(view.selecting()), None if has_others else view)

    def marked(self, view: View) -> Events:
        """Return the marked calls themselves; if none is marked, those that the filters select.

        They are those that `View.command` and `View.python` select.
        """
        selection = self.selection(view.selecting())
        self._may_be_held(self._reader.calls(selection))
        return self._reader.chosen(selection)

    def marked_in_view(self, view: View, window: Window | None) -> tuple[Events, bool]:
        """Return the marked calls for a picture of them, and whether they are those of a window only.

        `window`: what the trace diagram shows; None: all.
        """
        selection = self.selection(view.selecting())
        calls = self._reader.calls(selection)
        if not calls.reading and calls.count <= HELD_EVENTS:
            return self._reader.chosen(selection), False
        return calls_in_view(self.run, selection, window, HELD_EVENTS), True

    def _may_be_held(self, calls: Calls) -> None:
        """Raise an error if calls have not been read, or are too many."""
        if calls.reading:
            raise EnsioError("these calls are still being read: ask again when they have been")
        if calls.count > HELD_EVENTS:
            raise EnsioError(
                f"{calls.count:,} calls are more than the {HELD_EVENTS:,} that the explorer holds: mark a "
                "shorter time or fewer ranks, add a filter such as op, or use ensio modes with these filters"
            )

    def ensemble(self, view: View) -> Ensemble:
        """Return the durations of the marked calls, of the layer, operation and size with most time.

        ``ensio modes`` with the copied filters takes the same. Of a part of a run, they are those of all
        calls that do not wait for other tasks; of all, if there are no others.
        """
        per: Per = "MiB" if view.per_byte else "call"
        if self.is_part:
            events = self.marked(view)
            is_io = is_io_of_calls(events.calls)[events.call]
            return Ensemble.from_events(events[is_io] if is_io.any() else events, per)
        selection = self.selection(view.selecting())
        if self.events is None:
            self._may_be_held(self._reader.calls(selection))
        return main_ensemble(self.run, selection, per)[1]


def mark_finding(view: View, finding: Finding, number: int, of_run: str = "") -> View:
    """Return a view in which the calls of a finding are marked.

    Filters are cleared: a finding is about the whole run.
    """
    where = finding.where
    marks = {
        "op": where.op or "",
        "layer": where.layer or "",
        "call": ",".join(where.calls or ()),
        "rank": spans_text(where.ranks),
        "phase": spans_text(find_spans(where.phases or (), most=len(where.phases or ()))),
        "ordinal": spans_text(where.ordinals),
        "file": "\n".join(glob.escape(path).replace("\n", "?") for path in where.files),
    }
    times = where.times_s
    cleared = replace(View(), **{name: getattr(view, name) for name in _KEPT_BY_FINDINGS})
    what = f"finding {number}: {finding.id}"
    if where.file_count > len(where.files):
        what += f", on the {len(where.files)} most costly files of {where.file_count:,}"
    what += of_run
    return cleared.marking(
        marks={name: text for name, text in marks.items() if text},
        # Filters exclude the end of a range of times.
        time_s=None if times is None else (times[0], max(times[1], times[0] + 1e-9)),
        what=what,
    )


def beyond_finding(finding: Finding, marked: int) -> str:
    """Say how many of the marked calls are those of a finding, if the filters of its mark take more.

    A finding concerns calls of some functions, each in some phases of some tasks. Filters take all calls of
    these functions in any of these phases and tasks.

    Empty: the finding does not count calls, or there are not more.
    """
    calls = finding.evidence.get("calls")
    if not isinstance(calls, int) or marked <= calls:
        return ""
    others = marked - calls
    are = "are" if others > 1 else "is"
    return (
        f"{calls:,} of these {marked:,} calls {'are those' if calls != 1 else 'is that'} of the finding: the "
        f"other{'s' * (others > 1)} {are} of the same functions, tasks and phases."
    )


def calls_by_ordinal(ordinals: RunOrdinals | None) -> dict[str, Any]:
    """Return the columns of the table of call indices."""
    rows: Sequence[Any] = [] if ordinals is None else ordinals.totals
    return {
        "ordinal": [spans_text(((row.ordinal, row.to),)) for row in rows],
        "calls": [row.n for row in rows],
        "median_s": [row.median_s for row in rows],
        "slowest_s": [row.max_s for row in rows],
    }


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
        while len(self._found) >= 8:
            del self._found[next(iter(self._found))]
        self._found[selection] = structure_of(self._run, selection)
        self._changed()
        yield


def about_causes(diagnosis: DiagnosisAnswer, structure: Structure | None, of_run: str, filtered: bool) -> str:
    """Say what the tables of findings, phases and call indices have, and what they lack."""
    sentences = [f"Findings, phases and call indices are those of {of_run}."] if of_run else []
    nothing = () if diagnosis.findings else (*diagnosis.nothing, *diagnosis.of_examined)
    sentences += map(sentence, (*nothing, *diagnosis.above, *diagnosis.below))
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
