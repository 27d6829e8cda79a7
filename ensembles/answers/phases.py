"""The phases of a run: when each began and ended, its I/O, and how long tasks waited for the last one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ensembles.faces.answer import MOST_ROWS, SMALL_PART, Answer
from ensembles.faces.words import sentence
from ensembles.model.fields import plain
from ensembles.model.levels import LITTLE
from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.statement import Column, Paragraph, Statement, Table
from ensembles.passes.group import SummaryGroup, SummaryRequest
from ensembles.passes.summary import Summary, ignoring_run
from ensembles.run.selection import Selection
from ensembles.structure.collective_steps import CollectiveStepTable, step_table
from ensembles.structure.late_entry import LateEntry, late_of_run
from ensembles.structure.libraries import collective_sentence
from ensembles.structure.phases.critical_path import CriticalIo
from ensembles.structure.phases.detect import Phases, detect_phases
from ensembles.structure.phases.inner_waits import (
    IdleTime,
    SyncTime,
    WaitingInside,
    idle_cells,
    idle_time,
    waiting_inside,
    without_idle,
)
from ensembles.structure.phases.late_calls import TimeInCalls
from ensembles.structure.phases.result import tasks_meet
from ensembles.structure.phases.table import PhaseTable, PhaseTotals
from ensembles.summaries.collective_steps import CollectiveEntries, CollectiveSteps, CollectiveTime

if TYPE_CHECKING:
    from ensembles.run.run import Run

_LAST, _NO_DATA = "last: rank, call", "no data"
_SHORT_NAME, _LONGEST_NAME = 16, 24
_FEWEST_FOLDED = 2
_FEWEST_LEFT_OUT = 4
"""Fewest single phases without data that have no row, where they take little of the time and of idle time."""


_STEP_UNITS = {"collective call": "", "calls": "count", "tasks": "count", "time": "s"}
_STEP_UNITS |= dict.fromkeys(("communication", "storage", "entry", "others"), "share to 0.1 %")

_BY_PHASE: dict[str, Any] = {
    "table": PhaseTable,
    "io": CriticalIo,
    "sync": SyncTime,
}
_OF_RUN: dict[str, type[Summary]] = {
    "collective": CollectiveTime,
    "steps": CollectiveSteps,
    "entries": CollectiveEntries,
}


@dataclass(frozen=True, kw_only=True)
class PhasesAnswer(Answer):
    """The phases of a run, or of some of its calls.

    Attributes
    ----------
    run : str
        Path of the run.
    found : Phases
        How the phases of the whole run were found.
    phases : tuple of PhaseTotals
        Those with selected calls, by number.
    idle : IdleTime
        Idle time of the tasks in them.
    is_chosen : bool
        Whether phases were selected by their numbers.
    only_failed : bool
        Whether only failed calls were selected, between which idle times are not known.
    outside : int
        I/O calls in no phase.
    syncs : frozenset of int
        Phases of which syncs took more than half of the time in I/O.
    crowded : str
        Which tasks share processors; ``""``: none.
    collective : dict or None
        Time of collective I/O (`CollectiveTime.to_json`).
    steps : CollectiveStepTable or None
        Steps of collective calls. This and the following are known of whole runs only.
    late_entry : LateEntry or None
        A task that enters collective calls late.
    waiting : WaitingInside or None
        Time that tasks waited inside phases, if it is much.
    without_io : dict or None
        Steps between collective calls without I/O (`Phases.steps_without_io`).
    without_calls : tuple of int
        Phases that the program named in which no task made an I/O call.
    has_messages : bool
        Whether messages were recorded.
    """

    question: str = field(default="phases", init=False)

    run: str = ""
    notes: tuple[str, ...] = ()
    found: Phases = field(repr=False)
    phases: tuple[PhaseTotals, ...] = field(repr=False)
    idle: IdleTime
    is_chosen: bool = False
    only_failed: bool = False
    outside: int = 0
    syncs: frozenset[int] = frozenset()
    crowded: str = ""
    collective: dict[str, float] | None = None
    steps: CollectiveStepTable | None = None
    late_entry: LateEntry | None = None
    waiting: WaitingInside | None = None
    without_io: dict[str, Any] | None = None
    without_calls: tuple[int, ...] = ()
    has_messages: bool = False

    @property
    def why_no_idle(self) -> Statement | None:
        """Why idle times are not known; None: they are."""
        if not math.isnan(self.idle.lost_s):
            return None
        return Statement("phases.idle_of_failed" if self.only_failed else "phases.idle_of_processes")

    @property
    def absent_tasks(self) -> Statement | None:
        """How much tasks without a call in a phase could add to the idle time; None: nothing, or unknown."""
        count, time_s = self.idle.phases_without_all_tasks, self.idle.lost_without_calls_s
        if not count or time_s is None:
            return None
        return Statement("phases.idle_of_absent", {"count": count, "time_s": time_s})

    @property
    def parts(self) -> tuple[Table | Paragraph, ...]:
        """The table of phases, and what is said of idle tasks, of collective calls and of other steps."""
        head = Statement("phases.count", {"count": self.found.count, "evidence": self.found.sentence})
        if not self.phases:
            return ((head,),)
        rows, small = _rows(self)
        paragraphs = (tuple(part(self)) for part in (_idle, _waiting, _collective))
        others = ((each,) for each in _others(self))
        return (
            (head,),
            _table(self, rows),
            tuple(_small(small)),
            *paragraphs,
            *_step_parts(self.steps),
            *others,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the keys of ``ensio phases --json``."""
        rows = [entry.to_json() for entry in self.phases]
        stretches = [] if self.is_chosen else plain(without_data(self.phases))
        result = {
            "run": self.run,
            "rule": self.found.rule,
            "confidence": float(self.found.confidence),
            "sentence": self.found.sentence,
            "count": self.found.count,
            "tasks": self.idle.tasks,
            "run_s": self.idle.run_s,
            "phases": rows,
            "without_data": stretches,
            **self.idle.to_json(),
            "collective": self.collective,
            "crowded": self.crowded,
            "calls_outside": self.outside,
            "complete": not self.notes,
            "notes": list(self.notes),
        }
        if self.only_failed and self.why_no_idle:
            result["why_no_idle"] = sentence(self.why_no_idle)
        result["collective_steps"] = None if self.steps is None else self.steps.to_json()
        result |= {"late_entry": self.late_entry.to_json()} if self.late_entry else {}
        result |= {"waiting_inside": self.waiting.to_json()} if self.waiting else {}
        result["without_io"] = self.without_io
        return result | ({"phases_without_calls": list(self.without_calls)} if self.without_calls else {})


def answer_phases(run: Run, selection: Selection | None = None, by: str | None = None) -> PhasesAnswer:
    """Find the phases of a run, and add up the calls of each.

    Examples
    --------
    >>> from ensembles.answers.phases import answer_phases
    >>> found = answer_phases(en.open("ensio-ior"))
    >>> found.phases[1].tasks, found.phases[1].bytes_written
    (8, 33554432)
    """
    selection = selection or Selection()
    phases = (run.phases if by is None else None) or detect_phases(run, by)
    wanted = replace(selection, phases=None).for_run(run)
    requests = {name: SummaryRequest(ignoring_run(kind), kind.columns) for name, kind in _OF_RUN.items()}
    requests |= {
        name: SummaryRequest(partial(_of_phases, name, phases), kind.columns)
        for name, kind in _BY_PHASE.items()
    }
    sums = run.summarize(requests, selection=wanted)
    totals = [entry for entry in sums["table"].totals() if _is_within(entry.phase, selection.phases)]
    only_failed = selection.failed or selection.errors is not None
    if only_failed or (run.tasks > 1 and not tasks_meet(run.info, phases)):
        totals = without_idle(totals)
    else:
        totals = _with_late_calls(run, phases, totals, wanted)
    return PhasesAnswer(
        run=run.path,
        notes=(*run.notes, *run.info.notes_on_calls),
        found=phases,
        phases=tuple(totals),
        idle=idle_time(totals, run.tasks, run.length_s),
        is_chosen=bool(selection.phases),
        only_failed=only_failed,
        outside=sums["table"].outside,
        syncs=sums["sync"].mostly_syncs(),
        crowded=run.info.crowded_text,
        collective=None
        if sums["collective"] is None or selection.phases or only_failed
        else sums["collective"].to_json(),
        has_messages="mpimsg" in run.info.environment.get("ENSIO_LAYERS", "").split(","),
        **(_of_whole_run(run, phases, totals, sums) if selection.selects_all else {}),
    )


def _of_whole_run(
    run: Run, phases: Phases, totals: Sequence[PhaseTotals], sums: SummaryGroup
) -> dict[str, Any]:
    """Return what is known only if no filter is given."""
    without_io = {"without_io": phases.steps_without_io()}
    if sums["steps"] is None:
        return without_io
    present = {entry.phase for entry in totals}
    missing = [number for number in range(1, phases.count + 1) if number not in present]
    return without_io | {
        "steps": step_table(sums["steps"], run.info.clock_error_ns, run.info.crowded_text),
        "late_entry": late_of_run(sums["entries"], sums["io"], run),
        "waiting": waiting_inside(run, phases, totals, sums["io"]),
        "without_calls": tuple(missing) if phases.names else (),
    }


def _of_phases(name: str, phases: Phases, _: Run) -> Any:
    return _BY_PHASE[name](phases)


def _is_within(number: int, ranges: Sequence[tuple[int, int]] | None) -> bool:
    """Whether a number lies in one of these ranges, both ends included; None contains every number."""
    return ranges is None or any(low <= number <= high for low, high in ranges)


def without_data(totals: Sequence[PhaseTotals]) -> list[dict[str, Any]]:
    """Return the stretches of successive phases in which no bytes moved."""
    if not any(_moved(entry) for entry in totals) or any(entry.name for entry in totals):
        return []
    stretches: list[list[PhaseTotals]] = [[]]
    for entry in totals:
        if _moved(entry):
            stretches.append([])
        else:
            stretches[-1].append(entry)
    return [
        {
            "from": each[0].phase,
            "to": each[-1].phase,
            "phases": len(each),
            "calls": sum(entry.calls for entry in each),
            "tasks": max(entry.tasks for entry in each),
            "fewest_tasks": min(entry.tasks for entry in each),
            "start_s": each[0].start_s,
            "time_s": sum(entry.time_s for entry in each),
            "lost_s": sum(entry.lost_s for entry in each),
        }
        for each in stretches
        if len(each) >= _FEWEST_FOLDED
    ]


def _moved(entry: PhaseTotals) -> int:
    """Bytes of the phase; a phase that has messages in place of I/O is a row by itself too."""
    return entry.bytes_read + entry.bytes_written or (0 if entry.calls else entry.messages)


def _rows(answer: PhasesAnswer) -> tuple[list[list[PhaseTotals]], list[PhaseTotals]]:
    """Return the phases of each row, and those without data that have none: many that are next to no time."""
    stretches = [] if answer.is_chosen else without_data(answer.phases)
    first = {number: each["from"] for each in stretches for number in range(each["from"], each["to"] + 1)}
    rows: dict[int, list[PhaseTotals]] = {}
    for entry in answer.phases:
        rows.setdefault(first.get(entry.phase, entry.phase), []).append(entry)
    alone = [each[0] for each in rows.values() if len(each) == 1 and not _moved(each[0]) and not each[0].name]
    is_little = all(
        sum(getattr(entry, name) for entry in alone)
        <= LITTLE * sum(getattr(entry, name) for entry in answer.phases)
        for name in ("time_s", "lost_s")
    )
    is_whole = len(answer.phases) == answer.found.count and any(map(_moved, answer.phases))
    if len(alone) < _FEWEST_LEFT_OUT or not is_little or not is_whole:
        return list(rows.values()), []
    return [each for each in rows.values() if len(each) > 1 or each[0] not in alone], alone


def _small(small: Sequence[PhaseTotals]) -> Iterator[Statement]:
    """Count the phases that have no row."""
    if small:
        values = {"count": len(small), "calls": sum(each.calls for each in small)}
        yield Statement("phases.small", values | {"time_s": sum(each.time_s for each in small)})


def _table(answer: PhasesAnswer, rows: Sequence[Sequence[PhaseTotals]]) -> Table:
    """Tabulate the phases; columns that say nothing are left out."""
    units = {
        "phase": "count",
        "name": "",
        "from (s)": "moment",
        "time": "s",
        "tasks": "count",
        "calls": "count",
        "messages": "count",
        "read": "bytes",
        "written": "bytes",
        "idle": "s",
        "share": "share",
        _LAST: "",
    }
    hidden = {"tasks"} if len({entry.tasks for entry in answer.phases}) == 1 else set()
    table = Table.of_rows("phase", units, [_values(each, answer.idle.tasks) for each in rows])
    if not answer.idle.lost_s and answer.idle.tasks <= 1:
        hidden |= {"idle", "share"}
    weight = "time_s" if answer.why_no_idle else "lost_s"
    return replace(
        table,
        columns=tuple(column for column in table.columns if column.header not in hidden),
        weights=[sum(getattr(entry, weight) for entry in each) for each in rows],
        counts=[len(each) for each in rows],
        hover=[last_of(max(each, key=lambda entry: entry.time_s)) for each in rows],
        narrower=_narrower(table),
    )


def _values(entries: Sequence[PhaseTotals], tasks: int) -> tuple[Any, ...]:
    """Return the cells of a row: of one phase, or of successive ones without data."""
    first, last = entries[0], entries[-1]
    is_one = len(entries) == 1
    return (
        first.phase if is_one else f"{first.phase}–{last.phase}",
        _shortened(first.name or "", _LONGEST_NAME),
        first.start_s,
        sum(entry.time_s for entry in entries),
        max(entry.tasks for entry in entries),
        sum(entry.calls for entry in entries),
        first.messages or None if is_one else None,
        first.bytes_read or None,
        first.bytes_written or None,
        *idle_cells(entries, tasks),
        f"{first.slowest_task} {first.reason}" if is_one else _NO_DATA,
    )


def _narrower(table: Table) -> list[Mapping[str, Column | None]]:
    """What makes the table narrower, the least loss first."""
    column = {each.header: each for each in table.columns}
    last, start = column[_LAST], column["from (s)"]
    name = column.get("name", Column("name", "", ()))
    short = replace(last, header="last")
    calls = tuple(text.replace(" MPI_File_", " ") for text in last.values)
    ranks = tuple(text if text == _NO_DATA else text.split()[0] for text in last.values)
    return [
        {_LAST: short},
        {"share": None},
        {"last": replace(short, values=calls)},
        {"tasks": None},
        {"idle": None} if "messages" in column else {},
        {"from (s)": replace(start, unit="moment to 0.1 s")},
        {"name": replace(name, values=tuple(_shortened(text, _SHORT_NAME) for text in name.values))},
        {"last": replace(short, values=ranks)},
    ]


def _shortened(name: str, most: int) -> str:
    """Cut the middle out of a long name: names of phases differ in the beginning or in the end."""
    return name if len(name) <= most else f"{name[: most // 2]}…{name[1 - most // 2 :]}"


def last_of(entry: PhaseTotals) -> Statement:
    """Say which task of a phase came last, and where it spent the time by which it is late."""
    where, late, last = {"phase": entry.phase, "rank": entry.slowest_task}, entry.late_calls, entry.last_call
    if late is not None:
        values = {"call": late.call, "calls": late.calls, "file": late.file, "middle": entry.middle_task}
        times = {"time_s": late.time_s, "other_s": late.other_s or "none"}
        return Statement("phases.late_calls", values | times, entry.lost_s, where)
    if entry.late_outside is not None:
        how = entry.late_outside.text(entry.middle_task)
        return Statement("phases.late_outside", {"how": how}, entry.lost_s, where)
    values = {"call": last.call, "duration_s": last.duration_s, "file": last.file}
    return Statement("phases.last", values, entry.lost_s, where)


def _idle(answer: PhasesAnswer) -> Iterator[Statement]:
    """Say how long tasks were idle; of a single task there is nothing to say."""
    idle = answer.idle
    if answer.why_no_idle:
        yield answer.why_no_idle
        return
    if idle.lost_s == 0 and idle.tasks <= 1:
        return
    values = _of_run(idle, idle.lost_s, idle.lost_share)
    values |= {"is_bound": not answer.found.confidence, "absent": answer.absent_tasks}
    yield Statement("phases.idle", values, idle.lost_s)
    if idle.lost_s > 0:
        yield Statement("phases.all_causes")
        if answer.crowded:
            yield Statement("phases.crowded", {"tasks": answer.crowded})
    worst = max(
        (entry for entry in answer.phases if entry.calls), key=lambda entry: entry.lost_s, default=None
    )
    if worst is not None and worst.lost_s > 0:
        last = last_of(worst)
        yield Statement("phases.most_idle", {"lost_s": worst.lost_s, "last": last}, worst.lost_s, last.where)


def _of_run(idle: IdleTime, time_s: float, share: float | None) -> dict[str, Any]:
    """Return a time that is summed over tasks, and its share of the run."""
    return {"time_s": time_s, "share": share, "tasks": idle.tasks, "run_s": idle.run_s}


def _waiting(answer: PhasesAnswer) -> Iterator[Statement]:
    """Say how long tasks waited inside phases, and for which of them most."""
    waiting, idle = answer.waiting, answer.idle
    if waiting is None:
        return
    if waiting.time_s is None:
        yield Statement("phases.waiting_unknown")
        return
    yield Statement("phases.waiting", _of_run(idle, waiting.time_s, waiting.share), waiting.time_s)
    most = waiting.most
    if most is None:
        return
    values: dict[str, Any] = {"time_s": most.time_s, "call": most.call, "after_s": None, "file": None}
    last = most.last_call
    if last is not None:
        later_s = most.start_s - last.start_s - last.duration_s
        values |= {"before": last.call, "duration_s": last.duration_s, "file": last.file}
        values["after_s"] = "right" if later_s < SMALL_PART * most.time_s else later_s
    where = {"phase": most.phase, "rank": most.last_task}
    yield Statement("phases.most_waiting", values, most.time_s, where)


def _collective(answer: PhasesAnswer) -> Iterator[Statement]:
    """Say how much of the time of collective I/O is not storage."""
    if answer.collective is not None:
        yield Statement("collective.time", {"how": collective_sentence(answer.collective)})


def _others(answer: PhasesAnswer) -> Iterator[Statement]:
    """Say which task enters late, and which steps and calls are in no row."""
    late, without_io, names = answer.late_entry, answer.without_io, answer.found.names
    if late is not None:
        yield Statement("phases.late_entry", {"how": str(late)}, late.late_s, {"rank": late.rank})
    if answer.without_calls and names:
        named = [sanitize_text(names[number - 1]) for number in answer.without_calls[:MOST_ROWS]]
        count = len(answer.without_calls)
        values = {"count": count, "names": ", ".join(dict.fromkeys(named))}
        yield Statement("phases.without_calls", values | {"more": max(count - MOST_ROWS, 0) or None})
    if without_io is not None and without_io["steps"]:
        has_messages = answer.has_messages or bool(answer.found.message_steps)
        yield Statement(
            "phases.without_io",
            {**without_io, "has_messages": has_messages, "has_no_messages": not has_messages},
        )
    if answer.outside and not answer.is_chosen:
        yield Statement("phases.outside", {"calls": answer.outside})


def _step_parts(steps: CollectiveStepTable | None) -> Iterator[Table | Paragraph]:
    """Tabulate where the tasks of collective calls spent their time; nothing if there are no such calls."""
    if steps is None:
        return
    if steps.rows:
        rows = [
            (
                row.call.removeprefix("MPI_File_"),
                row.collective_calls,
                row.tasks,
                row.time_s,
                *row.to_json()["shares"].values(),
            )
            for row in steps.rows
        ]
        yield Table.of_rows("function", _STEP_UNITS, rows)
    yield tuple(_step_statements(steps))


def _step_statements(steps: CollectiveStepTable) -> Iterator[Statement]:
    """Explain the table, and count the calls that it leaves out."""
    if steps.refused:
        yield Statement("steps.refused", {"why": steps.refused})
    if steps.rows:
        yield Statement("steps.legend")
        if steps.crowded:
            yield Statement("steps.crowded", {"tasks": steps.crowded})
    independent = sum(row.independent_calls for row in steps.rows)
    if independent:
        yield Statement("steps.independent", {"calls": independent})
    if steps.unmatched_calls:
        yield Statement("steps.unmatched", {"calls": steps.unmatched_calls})


def _with_late_calls(
    run: Run, phases: Phases, totals: Sequence[PhaseTotals], selection: Selection
) -> list[PhaseTotals]:
    """Add to the totals of phases the calls in which their last task spent the time by which it is late."""
    tasks = [
        (entry.phase, entry.slowest_task, entry.middle_task)
        for entry in totals
        if entry.calls and entry.middle_task is not None and entry.later_s > 0
    ]
    if not tasks:
        return list(totals)
    ranks = sorted({rank for _, *both in tasks for rank in both})
    mine = replace(selection, ranks=tuple((rank, rank) for rank in ranks)).for_run(run)
    make = partial(_time_in_calls, phases, tasks, selection.layers is None and selection.calls is None)
    found = run.summarize(make, TimeInCalls.columns, mine)
    return [_with_reason(entry, found) for entry in totals]


def _with_reason(entry: PhaseTotals, found: TimeInCalls) -> PhaseTotals:
    if entry.middle_task is None or not entry.calls or entry.later_s <= 0:
        return entry
    late = found.late(entry.phase, entry.later_s)
    outside = found.outside(entry.phase, entry.later_s) if late is None else None
    return replace(entry, late_calls=late, late_outside=outside)


def _time_in_calls(
    phases: Phases, tasks: Sequence[tuple[int, int, int]], outermost: bool, _: Any
) -> TimeInCalls:
    return TimeInCalls(phases, tasks, outermost)
