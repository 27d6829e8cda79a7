"""The text of ``ensio phases``, in 80 columns if names allow it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ensembles.model.run_info import idle_while_crowded
from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.table import first_that_fits, folded_table_text, table_text
from ensembles.model.units import bytes_text, count_text, seconds_text, share_text
from ensembles.model.wrapped import wrapped
from ensembles.structure.collective_steps import step_notes
from ensembles.structure.phases.idle import idle_cells, of_run_text
from ensembles.structure.phases.waiting import NOT_MEETING

_MOST_NAMED = 8

if TYPE_CHECKING:
    from ensembles.structure.phases.detect import Phases
    from ensembles.structure.phases.idle import IdleTime
    from ensembles.structure.phases.table import PhaseTotals

_LAST = "last: rank, call"
_NO_DATA = "no data"
_SHORT_NAME, _LONGEST_NAME = 16, 24
_FEWEST_FOLDED = 2
_FEWEST_LEFT_OUT, _LEAST_SHARE = 4, 0.05
"""Fewest single phases without data that have no row, and their largest share of time and of idle time."""

_RIGHT_AFTER = 0.01
"""Share of the waiting below which the time from a call to the late entry is not told."""


def without_data(totals: Sequence[PhaseTotals]) -> list[dict[str, Any]]:
    """Return the stretches of successive phases in which no bytes moved.

    Parameters
    ----------
    totals : sequence of PhaseTotals
        In their order.

    Returns
    -------
    list of dict
        Stretches of two phases or more: ``from`` and ``to`` (numbers of their first and last phase),
        ``phases`` (how many), ``calls``, ``tasks`` (most of a phase), ``fewest_tasks``, ``start_s``,
        ``time_s`` and ``lost_s`` (sums over the phases). Empty if no phase moved bytes, or if the program
        named the phases.

    Examples
    --------
    >>> from ensembles.cli.phases_text import without_data
    >>> from ensembles.structure.phases.table import PhaseTable
    >>> run = en.open("ensio-ior")
    >>> without_data(run.summarize(lambda _: PhaseTable(run.phases)).totals())
    []
    """
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


def phases_text(
    phases: Phases,
    totals: Sequence[PhaseTotals],
    limit: int,
    result: dict[str, Any],
    idle: IdleTime,
    with_messages: bool = False,
) -> str:
    """Format the phases.

    Parameters
    ----------
    phases : Phases
    totals : sequence of PhaseTotals
    limit : int
        Most rows of the table.
    result : dict
        What JSON says: ``lost_s``, ``crowded``, ``without_data``, ``without_io``, ``collective`` and
        ``collective_steps``; ``phases_without_calls`` of named phases; ``late_entry`` if a task enters
        collective calls late, and ``waiting_inside`` if tasks wait inside phases. ``lost_s`` is None if the
        run does not show that tasks wait for each other, or only failed calls are selected: then
        ``why_no_idle`` says so.
    idle : IdleTime
        Idle time of the run.
    with_messages : bool
        Whether the layer of messages was recorded, even if it has no call.
    """
    from ensembles.structure.layer_traffic import collective_sentence

    head = wrapped(f"{count_text(phases.count, 'phase')}: {phases.sentence}")
    if not totals:
        return head
    folded = {
        number: each for each in result["without_data"] for number in range(each["from"], each["to"] + 1)
    }
    entries: list[Any] = []
    for entry in totals:
        stretch = folded.get(entry.phase)
        if stretch is None or stretch["from"] == entry.phase:
            entries.append(entry if stretch is None else stretch)
    small = _small(totals, entries) if len(totals) == phases.count else {}
    entries = [entry for entry in entries if isinstance(entry, dict) or entry.phase not in small]
    parts = [head]
    # A single task waits for none: there is nothing to say of idle time.
    alone = result["lost_s"] == 0 and idle.tasks <= 1
    if limit:
        parts.append(_table(totals, entries[:limit], idle.tasks, result["lost_s"] is not None and not alone))
    if len(entries) > limit:
        shown = len(small) + sum(
            1 if not isinstance(entry, dict) else entry["phases"] for entry in entries[:limit]
        )
        parts.append(f"{count_text(len(totals) - shown, 'more phase')} not shown: raise --limit to see them")
    if small:
        calls, time_s = (
            sum(each.calls for each in small.values()),
            sum(each.time_s for each in small.values()),
        )
        parts.append(
            wrapped(
                f"{count_text(len(small), 'phase')} without data, with {count_text(calls, 'call')} and "
                f"{seconds_text(time_s)} in all, have no row (--json has them)."
            )
        )
    parts.append("" if alone else _imbalance(phases, totals, result, idle))
    parts.append(_inside(result.get("waiting_inside"), idle))
    sentence = collective_sentence(result["collective"])
    if sentence:
        parts.append(wrapped(f"{sentence[0].upper()}{sentence[1:]}."))
    parts += [
        _steps(result["collective_steps"]),
        _late_entry(result.get("late_entry")),
        _without_calls(phases, result.get("phases_without_calls", ())),
        _without_io(result["without_io"], with_messages or bool(phases.message_steps)),
    ]
    return "\n\n".join(filter(None, parts))


def _steps(steps: dict[str, Any] | None) -> str:
    """Format the steps of collective calls."""
    if steps is None:
        return ""
    lines = [wrapped(note) for note in step_notes(steps)]
    if steps["rows"]:
        headers = ("collective call", "calls", "tasks", "time", "communication", "storage", "entry", "others")
        rows = [
            (
                row["call"].removeprefix("MPI_File_"),
                f"{row['collective_calls']:,}",
                f"{row['tasks']:,}",
                seconds_text(row["time_s"]),
                *("" if share is None else share_text(share, 1) for share in row["shares"].values()),
            )
            for row in steps["rows"]
        ]
        lines.insert(0, table_text(headers, rows))
    return "\n".join(lines)


def _small(totals: Sequence[PhaseTotals], entries: Sequence[Any]) -> dict[int, PhaseTotals]:
    """Return the phases without data that are rows by themselves, if they are many, and next to no time."""
    alone = [entry for entry in entries if not isinstance(entry, dict) and not _moved(entry)]
    alone = [entry for entry in alone if not entry.name]
    is_little = all(
        sum(getattr(entry, name) for entry in alone)
        <= _LEAST_SHARE * sum(getattr(entry, name) for entry in totals)
        for name in ("time_s", "lost_s")
    )
    if len(alone) < _FEWEST_LEFT_OUT or not is_little or not any(map(_moved, totals)):
        return {}
    return {entry.phase: entry for entry in alone}


def _late_entry(late: dict[str, Any] | None) -> str:
    """Say which task enters collective calls late."""
    from ensembles.structure.late_entry import LateEntry

    if late is None:
        return ""
    text = str(LateEntry(**late))
    return wrapped(f"{text[0].upper()}{text[1:]}.")


def _without_calls(phases: Phases, numbers: Sequence[int]) -> str:
    """Name the phases of the program in which no task made an I/O call."""
    if not numbers or phases.names is None:
        return ""
    named = [sanitize_text(phases.names[number - 1]) for number in numbers[:_MOST_NAMED]]
    more = f" and {len(numbers) - _MOST_NAMED:,} more" if len(numbers) > _MOST_NAMED else ""
    names = ", ".join(dict.fromkeys(named))
    return wrapped(f"No task made an I/O call in {count_text(len(numbers), 'phase')}: {names}{more}.")


def _without_io(without_io: dict[str, Any] | None, has_messages: bool) -> str:
    if without_io is None or not without_io["steps"]:
        return ""
    text = (
        f"{count_text(without_io['steps'], 'step')} between collective calls had no "
        f"{'I/O and no messages' if has_messages else 'I/O'} ({seconds_text(without_io['time_s'])} in all) "
        "and no number"
    )
    if not has_messages:
        text += (
            ": where the layer mpimsg is recorded (ensio run --layers default,mpimsg), steps with messages "
            "are phases too"
        )
    return wrapped(f"{text}.")


def _table(totals: Sequence[PhaseTotals], entries: Sequence[Any], tasks: int, with_idle: bool) -> str:
    directions = [
        (header, attribute)
        for header, attribute in (("read", "bytes_read"), ("written", "bytes_written"))
        if any(getattr(entry, attribute) for entry in totals)
    ]
    columns: dict[str, list[str]] = {
        "phase": [],
        "name": [],
        "from (s)": [],
        "time": [],
        "tasks": [],
        "calls": [],
    }
    if any(not entry.calls for entry in totals):
        columns["messages"] = []
    columns |= {header: [] for header, _ in directions}
    columns |= {"idle": [], "share": [], _LAST: []}
    for entry in entries:
        for header, cell in _cells(entry, directions, tasks).items():
            if header in columns:
                columns[header].append(cell)
    if not any(entry.name for entry in totals):
        del columns["name"]
    if not with_idle:
        del columns["idle"], columns["share"]
    if len({entry.tasks for entry in totals}) == 1:
        del columns["tasks"]
    return _fitted(columns)


def _cells(entry: Any, directions: Sequence[tuple[str, str]], of_run: int) -> dict[str, str]:
    if isinstance(entry, dict):
        start_s, time_s, tasks, calls = (entry[key] for key in ("start_s", "time_s", "tasks", "calls"))
        cells = {"phase": f"{entry['from']}–{entry['to']}", "name": ""}
        cells["idle"] = "" if entry["lost_s"] is None else seconds_text(entry["lost_s"])
        if cells["idle"] and entry["fewest_tasks"] < of_run:
            cells["idle"] = f"≥ {cells['idle']}"
        cells["messages"] = ""
        cells |= {header: "" for header, _ in directions} | {"share": "", _LAST: _NO_DATA}
    else:
        start_s, time_s, tasks, calls = entry.start_s, entry.time_s, entry.tasks, entry.calls
        cells = {"phase": str(entry.phase), "name": sanitize_text(entry.name or "")}
        cells |= dict(zip(("idle", "share"), idle_cells(entry, of_run), strict=True))
        cells["messages"] = f"{entry.messages:,}" if entry.messages else ""
        for header, attribute in directions:
            count = getattr(entry, attribute)
            cells[header] = bytes_text(count) if count else ""
        cells[_LAST] = f"{entry.slowest_task} {entry.reason}"
    cells |= {"from (s)": f"{start_s:z.3f}", "time": seconds_text(time_s)}
    return cells | {"tasks": f"{tasks:,}", "calls": f"{calls:,}"}


def _fitted(columns: dict[str, list[str]]) -> str:
    """Format the columns; where they are too wide, with less in them, else as tables one below another."""

    def tables() -> Iterator[str]:
        narrowed = dict(columns)
        for narrower in _narrowings(narrowed):
            narrower()
            yield table_text(*_arguments(narrowed))
        if "name" in columns:
            columns["name"] = [_shortened(name, _LONGEST_NAME) for name in columns["name"]]
        yield folded_table_text(*_arguments(columns))

    return first_that_fits(tables())


def _arguments(columns: dict[str, list[str]]) -> tuple[list[str], list[tuple[str, ...]], set[int]]:
    left = {number for number, header in enumerate(columns) if header in ("name", _LAST, "last")}
    return list(columns), list(zip(*columns.values(), strict=True)), left


def _narrowings(columns: dict[str, list[str]]) -> Iterator[Callable[[], object]]:
    """What makes a table narrower, the least loss first."""

    def replace(header: str, new: str, cell: Callable[[str], str]) -> None:
        if header not in columns:
            return
        cells = {new if name == header else name: column for name, column in columns.items()}
        cells[new] = list(map(cell, cells[new]))
        columns.clear()
        columns.update(cells)

    yield lambda: None
    yield lambda: replace(_LAST, "last", str)
    yield lambda: columns.pop("share", None)
    yield lambda: replace("last", "last", lambda last: last.replace(" MPI_File_", " "))
    yield lambda: columns.pop("tasks", None)
    yield lambda: columns.pop("idle" if "messages" in columns else "", None)
    yield lambda: replace("from (s)", "from (s)", lambda start: f"{float(start):z.1f}")
    yield lambda: replace("name", "name", lambda name: _shortened(name, _SHORT_NAME))
    yield lambda: replace("last", "last", lambda last: last if last == _NO_DATA else last.split()[0])


def _shortened(name: str, most: int) -> str:
    """Cut the middle out of a long name: names of phases differ in the beginning or in the end."""
    return name if len(name) <= most else f"{name[: most // 2]}…{name[1 - most // 2 :]}"


def _imbalance(phases: Phases, totals: Sequence[PhaseTotals], result: dict[str, Any], idle: IdleTime) -> str:
    if result["lost_s"] is None:
        return wrapped(result.get("why_no_idle", NOT_MEETING))
    doubt = "" if phases.confidence else "; an upper bound, because tasks may not wait for each other"
    text = (
        "Idle, because other tasks took longer (from a task's last call of a phase to the last call of all): "
        f"{idle.text}{doubt}. {idle.absent_text}"
    )
    lines = [wrapped(text.rstrip())]
    if result["lost_s"] > 0:
        lines.append(
            wrapped(
                "All causes count here, also equal calls of unequal times; imbalance in ensio diagnose means "
                "unequal bytes."
            )
        )
    if result["lost_s"] > 0 and result.get("crowded"):
        lines.append(wrapped(idle_while_crowded(result["crowded"])))
    worst = max((entry for entry in totals if entry.calls), key=lambda entry: entry.lost_s, default=None)
    if worst is not None and worst.lost_s > 0:
        last = worst.last_call
        on = f" on {sanitize_text(os.path.basename(last.file))}" if last.file else ""
        text = (
            f"Most in phase {worst.phase}, {seconds_text(worst.lost_s)}: rank {worst.slowest_task} "
            f"came last, with {last.call} ({seconds_text(last.duration_s)}){on}."
        )
        if worst.late_calls is not None or worst.late_outside is not None:
            text = (
                f"Most in phase {worst.phase}, {seconds_text(worst.lost_s)}: rank {worst.slowest_task} came "
                f"last. {late_text(worst)}."
            )
        lines.append(wrapped(text))
    return "\n".join(lines)


def late_text(entry: PhaseTotals) -> str:
    """Say where the last task of a phase spent the time by which it is late; ``""``: not known.

    Examples
    --------
    >>> from ensembles.cli.phases_text import late_text
    >>> from ensembles.structure.phases.late_calls import LateCalls
    >>> from ensembles.structure.phases.table import CriticalCall, PhaseTotals
    >>> last = CriticalCall("close", "posix", "/data/a", 1.0, 8e-6)
    >>> late = LateCalls("fsync", "posix", "/data/a", 16, 0.168, 0.004)
    >>> numbers = (2, 40, 0, 0, 0.0, 1.0, 1.0, 5, last, 0.2, 0.1)
    >>> late_text(PhaseTotals(1, None, *numbers, middle_task=3, late_calls=late))
    'It spent 168 ms in 16 calls of fsync, most on a; rank 3, in the middle, 4.00 ms'
    """
    late, outside = entry.late_calls, entry.late_outside
    if late is None:
        return "" if outside is None else outside.text(entry.middle_task).replace("it", "It", 1)
    on = f", most on {sanitize_text(os.path.basename(late.file))}" if late.file else ""
    calls = f"{count_text(late.calls, 'call')} of {late.call}"
    return (
        f"It spent {seconds_text(late.time_s)} in {calls}{on}; rank {entry.middle_task}, in the middle, "
        f"{seconds_text(late.other_s) if late.other_s else 'none'}"
    )


def _inside(waiting: dict[str, Any] | None, idle: IdleTime) -> str:
    """Say how long tasks waited inside phases, and for which of them most."""
    if waiting is None:
        return ""
    if waiting["time_s"] is None:
        return wrapped(
            "How long tasks waited in MPI inside phases is not known, as there are too many calls."
        )
    lines = [
        wrapped(
            "Waiting inside phases (in collective calls of MPI, before a task's last I/O call of the phase), "
            f"which is not in the idle time: {seconds_text(waiting['time_s'])} summed over tasks"
            f"{of_run_text(waiting['time_s'], idle.tasks, idle.run_s)}."
        )
    ]
    most = waiting["most"]
    if most is not None:
        text = (
            f"Most in phase {most['phase']}, {seconds_text(most['time_s'])} in one {most['call']}: rank "
            f"{most['last_task']} came last"
        )
        last = most["last_call"]
        if last is not None:
            on = f" on {sanitize_text(os.path.basename(last['file']))}" if last["file"] else ""
            later_s = most["start_s"] - last["start_s"] - last["duration_s"]
            after = "right" if later_s < _RIGHT_AFTER * most["time_s"] else seconds_text(later_s)
            text += f", {after} after its {last['call']} ({seconds_text(last['duration_s'])}){on}"
        lines.append(wrapped(f"{text}."))
    return "\n".join(lines)
