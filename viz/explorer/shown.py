"""What the explorer shows of a run: its calls, those that the filters select, and the marked ones."""

from __future__ import annotations

import glob
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np

from ensembles.diagnosis.diagnose import diagnose
from ensembles.diagnosis.finding import Diagnosis, Finding
from ensembles.model.errors import EnsioError
from ensembles.model.events import Events
from ensembles.model.filters import within_rates
from ensembles.model.holds import Holds
from ensembles.model.spans import find_spans, spans_text
from ensembles.run.ordinals import RunOrdinals
from ensembles.run.run import Run
from ensembles.run.selection import Selection
from ensembles.structure.ordinals.numbering import compute_ordinals
from ensembles.viz.explorer.calls import Calls, HeldCalls
from ensembles.viz.explorer.structure import Structure, structure_of
from ensembles.viz.explorer.view import View
from ensembles.viz.single_calls import Window

MOST_EVENTS = 4_000_000
"""Runs with more events are shown in part: all calls of some ranks."""

FEW_EVENTS = 100_000
"""Runs with at most as many events are examined for causes before they are shown; others when asked."""


_KEPT_BY_FINDINGS = ("run", "beside", "causes", "zoom_s", "zoom_ranks")

QUIET_S = 0.3
"""Time after an answer in which nothing is read in the background: the page paints, and often asks again."""


@dataclass(frozen=True)
class Causes:
    """What the analysis says about a run, whose calls a reader can mark.

    Attributes
    ----------
    diagnosis : Diagnosis
    structure : Structure
        Phases and call indices of all calls.
    """

    diagnosis: Diagnosis
    structure: Structure


class Shown:
    """The calls of a run that the explorer holds in memory.

    Parameters
    ----------
    run : Run
    most_events : int
        Of a run with more events, all calls of evenly spaced ranks are held, and `notes` says so.

    Attributes
    ----------
    run : Run
    events : Events
        The calls that are held.
    notes : list of str
        What is missing.
    version : int
        Grows with every change of what is shown, of a run that goes on or is read in the background.
    is_growing : bool
        Whether pages have to look at `version`.
    answered : float
        When a reader last asked, by `time.monotonic`.
    is_part : bool
        Whether calls of some ranks only, or those so far, are held.
    is_large : bool
        Whether calls are read in the background when they are needed (`ensembles.viz.explorer.large`).

    Raises
    ------
    EnsioError
        The run was recorded without events, or cannot be read.
    """

    is_growing = is_large = is_part = False
    answered = 0.0

    def __init__(self, run: Run, most_events: int = MOST_EVENTS) -> None:
        if not run.info.has(Holds.SOME_CALLS):
            how = f"{run.info.how_to_keep_calls}, or use ensio report"
            raise EnsioError(f"{run.path} {run.info.how_it_was_recorded}: {how}")
        self.run = run
        self.notes: list[str] = []
        self.version = 0
        self._filtered = lru_cache(maxsize=4)(self._apply)
        self._structured = lru_cache(maxsize=4)(self._structure)
        self.events = self._read(most_events)

    def _read(self, most_events: int) -> Events:
        run = self.run
        if run.reading.most_events <= most_events:
            return run.events
        events = run.reading.some_ranks(most_events, least_ranks=1)
        self.is_part = True
        self.notes.append(
            f"Part of the run: all {len(events):,} calls of {len(np.unique(events.rank)):,} evenly spaced "
            f"ranks of {run.tasks:,}. To see all of them, collect the run: ensio collect {run.path}"
        )
        return events.with_derived(self._derived)

    def _derived(self, name: str) -> np.ndarray | None:
        """Number the phases or the ordinals of the calls of some whole ranks."""
        if not self.run.info.has(Holds.CALL_ORDER):
            return None
        if name == "ordinal":
            return compute_ordinals(self.events)
        return None if self.run.phases is None else self.run.phases.phase_index(self.events)

    @cached_property
    def causes(self) -> Causes:
        """Findings, phases and ordinals of the run, from passes over it when first asked for.

        Raises
        ------
        EnsioError
            A file of the run cannot be read any more.
        """
        structure = structure_of(self.run, Selection())
        return Causes(diagnose(self.run), structure)

    def structure(self, view: View) -> Structure | None:
        """Return phases and call indices of the calls that the filters of a view select; None: not yet.

        Raises
        ------
        EnsioError
            As `causes`, or a filter is malformed.
        """
        return (
            self._structured(tuple(sorted(view.filters.items()))) if view.filters else self.causes.structure
        )

    def _structure(self, filters: tuple[tuple[str, str], ...]) -> Structure:
        given: dict[str, Any] = dict(filters)
        return structure_of(self.run, Selection.parse(**given))

    @property
    def examines(self) -> bool:
        """Whether causes are being examined without being asked for."""
        return False

    @property
    def knows_causes(self) -> bool:
        """Whether `causes` needs no pass, or a short one."""
        return "causes" in self.__dict__ or len(self.events) <= FEW_EVENTS

    def find_causes(self) -> None:
        """Examine the run for causes; of a large run in the background, and then `version` grows.

        Raises
        ------
        EnsioError
            As `causes`.
        """
        assert self.causes is not None

    def answering(self, *, quiet_s: float = QUIET_S) -> AbstractContextManager[None]:
        """Return a context in which a page is answered, and what is read in the background rests.

        Parameters
        ----------
        quiet_s : float
            Time after the answer in which it rests too, in s.
        """
        if quiet_s:
            self.answered = time.monotonic()
        return nullcontext()

    def filtered(self, view: View) -> Events:
        """Return the calls that the filters of a view select.

        Raises
        ------
        EnsioError
            A filter is malformed, or names what the run does not have.
        """
        return self._filtered(tuple(sorted(view.filters.items())))

    def _apply(self, filters: tuple[tuple[str, str], ...]) -> Events:
        if not filters:
            return self.events
        given: dict[str, Any] = dict(filters)
        return Selection.parse(**given).for_run(self.run).apply(self.events)

    def calls(self, view: View) -> Calls:
        """Return the calls that the filters of a view select, for pictures and tables.

        Raises
        ------
        EnsioError
            As `filtered`.
        """
        return self._held(self.filtered(view))

    def _held(self, events: Events) -> HeldCalls:
        make = partial(HeldCalls, tasks=self.run.tasks, is_part=events is not self.events)
        return events.remembered(("calls", self.run.tasks), make)

    def marked_calls(self, view: View) -> Calls | None:
        """Return the marked calls, for pictures and tables; None: no mark.

        Raises
        ------
        EnsioError
            As `marked_places`.
        """
        places = self.marked_places(view)
        return None if places is None else HeldCalls(self.filtered(view), self.run.tasks, places)

    def marked(self, view: View) -> Events:
        """Return the marked calls, among those that the filters select.

        They are those that `View.command` and `View.python` select.
        """
        marked = self.marked_places(view)
        return self.filtered(view) if marked is None else self.filtered(view)[marked]

    def marked_in_view(self, view: View, window: Window | None) -> tuple[Events, bool]:
        """Return the marked calls for a picture of them, and whether they are those of a window only.

        Parameters
        ----------
        view : View
        window : Window or None
            What the trace diagram shows; None: all.

        Raises
        ------
        EnsioError
            They are too many.
        """
        return self.marked(view), False

    def marked_places(self, view: View) -> np.ndarray | None:
        """Return the indices of the marked calls among those that the filters select; None: no mark.

        Raises
        ------
        EnsioError
            A filter is malformed, or nothing can match the filters and the marks.
        """
        events = self.filtered(view)
        if not view.is_marked:
            return None
        chosen = np.ones(len(events), bool)
        if view.ranks is not None:
            chosen &= (events.rank >= view.ranks[0]) & (events.rank <= view.ranks[1])
        if view.time_s is not None:
            low, high = (round(end * 1e9) for end in view.time_s)
            chosen &= (events.start >= low) & (events.start < high)
        if view.durations_s is not None:
            low, high = (round(end * 1e9) for end in view.durations_s)
            chosen &= (events.duration >= low) & (events.duration < high)
        if view.rates is not None:
            chosen &= within_rates(events.moved, events.duration, [view.rates])
        if view.offsets is not None:
            chosen &= (events.offset >= view.offsets[0]) & (events.offset < view.offsets[1])
        if view.marks:
            view.selecting()  # A mark outside of the filters is refused, as its command would be.
            given: dict[str, Any] = {
                name: text.split("\n") if name == "file" else text for name, text in view.marks.items()
            }
            chosen &= Selection.parse(**given).for_run(self.run).mask(events)
        return np.flatnonzero(chosen)


def mark_finding(view: View, finding: Finding, number: int, of_run: str = "") -> View:
    """Return a view in which the calls of a finding are marked.

    Filters are cleared: a finding is about the whole run.

    Parameters
    ----------
    view : View
    finding : Finding
    number : int
        From 1.
    of_run : str
        Is added to what the mark is about, where there are two runs.

    Examples
    --------
    >>> from ensembles.diagnosis.finding import Finding, Where
    >>> where = Where(op="write", ranks=((0, 3),), files=("/scratch/[a]",), phases=(1, 2, 3, 7))
    >>> finding = Finding("imbalance", "note", 1.0, where, {}, (), "", None, "")
    >>> dict(mark_finding(View(), finding, 1).marks)
    {'op': 'write', 'rank': '0-3', 'phase': '1-3,7', 'file': '/scratch/[[]a]'}
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

    Parameters
    ----------
    finding : Finding
    marked : int
        Number of calls that its mark takes.

    Returns
    -------
    str
        Empty: the finding does not count calls, or there are not more.

    Examples
    --------
    >>> from ensembles.diagnosis.finding import Finding, Where
    >>> from ensembles.viz.explorer.shown import beyond_finding
    >>> finding = Finding("imbalance", "note", 1.0, Where(), {"calls": 119}, (), "", None, "")
    >>> beyond_finding(finding, 151)
    '119 of these 151 calls are those of the finding: the others are of the same functions, tasks and phases.'
    >>> beyond_finding(finding, 119)
    ''
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
    """Return the columns of the table of call indices.

    Returns
    -------
    dict
        ``ordinal`` (a number, or a range of them), ``calls``, ``median_s`` and ``slowest_s``.
    """
    rows: Sequence[Any] = [] if ordinals is None else ordinals.totals
    return {
        "ordinal": [spans_text(((row.ordinal, row.to),)) for row in rows],
        "calls": [row.n for row in rows],
        "median_s": [row.median_s for row in rows],
        "slowest_s": [row.max_s for row in rows],
    }
