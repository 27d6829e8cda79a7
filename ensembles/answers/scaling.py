"""Rates of several runs against the number of tasks, nodes or writers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np

from ensembles.faces.answer import PlainAnswer
from ensembles.model.calls import STORAGE
from ensembles.model.errors import EnsioError
from ensembles.model.fields import Fields
from ensembles.model.holds import Holds
from ensembles.model.levels import NEARLY_ALL
from ensembles.model.statement import Statement, Table
from ensembles.model.units import bytes_text, share_text
from ensembles.run.filter_arguments import with_filters
from ensembles.run.headline import find_headline
from ensembles.run.information import sums_of
from ensembles.run.selection import Filters, Selection
from ensembles.run.tables import totals_by_file, totals_by_rank

if TYPE_CHECKING:
    from ensembles.run.run import Run

By = Literal["tasks", "nodes", "writers"]
KEYS: tuple[By, ...] = ("tasks", "nodes", "writers")
"""What rates can be shown against."""


def label_of(by: By, direction: str) -> str:
    """Return the name of an axis: tasks that read are readers.

    Examples
    --------
    >>> from ensembles.answers.scaling import label_of
    >>> label_of("writers", "read"), label_of("tasks", "read")
    ('readers', 'tasks')
    """
    return "readers" if by == "writers" and direction == "read" else by


Direction = Literal["write", "read"]

SHARED, PER_TASK = "shared", "per task"


@dataclass(frozen=True)
class RunRate(Fields):
    """The rate of one run, and what it was reached with.

    Attributes
    ----------
    path : str
    tasks, nodes : int
        Of the run.
    writers : int
        Tasks with calls of this direction at the lowest recorded layer: with collective buffering, its
        aggregators.
    layer : str
        Outermost layer that moved most bytes.
    files : str
        ``shared``: one file that several tasks used; ``per task``: a file for each task; ``one``: a file that
        one task of several used; or the number of each kind, such as ``1 shared, 16 private``: a file is
        shared if more than one task transfers to it in this direction. Of the files that have 90 % of the
        bytes, and those of like size (half of the smallest of these or more); the file of a run with a single
        task counts as shared, and fits a file for each task too.
    bytes : int
        Bytes moved.
    bytes_per_s : float
        Rate by the time in which the files were open; while data moved, if the run has no opens. Time in
        which no task has a file open does not count, so that the rate may be above that of IOR.
    layer_share : float
        Share of the bytes that calls of this layer moved; the rate is of all of them.
    """

    path: str
    tasks: int
    nodes: int
    writers: int
    layer: str
    files: str
    bytes: int
    bytes_per_s: float
    layer_share: float = 1.0


@dataclass(frozen=True)
class ScalingPoint(Fields):
    """Repeated runs with equally many tasks (nodes, writers), by one layer and with one kind of files.

    Attributes
    ----------
    at : int
        Number of tasks, nodes or writers.
    layer, files : str
        As of `RunRate`.
    runs : list of RunRate
        In the order in which they were given.
    median_bytes_per_s, low_bytes_per_s, high_bytes_per_s : float
        Of the rates of these runs.
    spread : float or None
        Highest rate divided by the lowest; None: one run.
    efficiency : float
        Median rate for each task (node, writer), relative to that of the point with the fewest of the same
        layer and files.
    share_of_maximum : float
        Median rate divided by the maximum.
    """

    at: int
    layer: str
    files: str
    runs: list[RunRate]
    median_bytes_per_s: float
    low_bytes_per_s: float
    high_bytes_per_s: float
    spread: float | None
    efficiency: float
    share_of_maximum: float


@dataclass(frozen=True)
class Scaling(Fields):
    """Rates against the number of tasks, nodes or writers.

    Attributes
    ----------
    direction : {"write", "read"}
    by : {"tasks", "nodes", "writers"}
    maximum_bytes_per_s : float
        The maximum of which shares are given.
    maximum_is_measured : bool
        Whether the maximum is the highest rate of these runs.
    points : list of ScalingPoint
        By layer and files, then by number.
    notes : list of str
    """

    direction: Direction
    by: By
    maximum_bytes_per_s: float
    maximum_is_measured: bool
    points: list[ScalingPoint]
    notes: list[str]


@with_filters
def run_rate(run: Run, direction: Direction = "write", **filters: Unpack[Filters]) -> RunRate:
    """Compute the rate of a run.

    Examples
    --------
    >>> from ensembles.answers.scaling import run_rate
    >>> rate = run_rate(en.open("ensio-ior"))
    >>> rate.tasks, rate.writers, rate.layer, rate.files
    (8, 8, 'posix', 'shared')
    """
    run.reading.need(Holds.ALL_CALLS, "its rate needs the times of all calls")
    selection = Selection.parse(**filters).for_run(run)
    sums = sums_of(run, selection)
    moved = {"read": sums.totals.bytes_read, "write": sums.totals.bytes_written}
    transfer = find_headline(run, moved, sums.sums).to_json()["transfers"][direction]
    per_s = transfer["open_bytes_per_s"] or transfer["active_bytes_per_s"]
    if not transfer["bytes"] or not per_s:
        other = "read" if direction == "write" else "write"
        instead = f": try --op {other}" if moved[other] else ""
        among = " among the selected calls" if filters else ""
        raise EnsioError(f"{run.path} has no {direction} that moved bytes{among}{instead}")
    by_layer: dict[str, int] = {}
    for call, of_call in sums.table.totals.items():
        if call.op == direction:
            by_layer[call.layer] = by_layer.get(call.layer, 0) + of_call.bytes
    lowest = max(
        (layer for layer in by_layer if layer in STORAGE and by_layer[layer] >= transfer["bytes"] / 2),
        key=lambda layer: by_layer[layer],
        default=max(by_layer, key=lambda layer: by_layer[layer]),
    )
    by_outermost = _outermost(run, direction, selection)
    outermost = max(by_outermost, key=lambda layer: by_outermost[layer])
    of_lowest: Filters = {**filters, "op": direction, "layer": lowest}
    writers = sum(1 for rank in totals_by_rank(run, **of_lowest) if rank.calls)
    return RunRate(
        run.path,
        run.tasks,
        len({process.host for process in run.info.processes}) or 1,
        writers,
        outermost,
        _files(run, direction, filters),
        transfer["bytes"],
        float(per_s),
        by_outermost[outermost] / max(sum(by_outermost.values()), 1),
    )


@with_filters
def scaling(
    runs: Iterable[Run],
    direction: Direction = "write",
    by: By = "tasks",
    maximum_bytes_per_s: float | None = None,
    **filters: Unpack[Filters],
) -> Scaling:
    """Compute rates against the number of tasks, nodes or writers.

    Examples
    --------
    >>> from ensembles.answers.scaling import scaling
    >>> found = scaling([en.open("ensio-ior")])
    >>> [(point.at, len(point.runs), point.share_of_maximum) for point in found.points]
    [(8, 1, 1.0)]
    """
    rates, notes = [], []
    for run in runs:
        rates.append(run_rate(run, direction, **filters))
        notes += [f"{run.path}: {note}" for note in run.notes]
        if (share := rates[-1].layer_share) < NEARLY_ALL:
            notes.append(
                f"{run.path}: {share_text(share)} of the bytes were moved by {rates[-1].layer}, "
                "the rate is of all: select files or phases (--file, --phase) to see each interface by itself"
            )
    if not rates:
        raise EnsioError("there are no runs to compare: name one or more")
    maximum = maximum_bytes_per_s or max(rate.bytes_per_s for rate in rates)
    groups: dict[tuple[str, str], dict[int, list[RunRate]]] = {}
    for rate in runs_in_series(rates):
        groups.setdefault((rate.layer, rate.files), {}).setdefault(getattr(rate, by), []).append(rate)
    points = []
    for (layer, files), at in sorted(groups.items()):
        first = min(at)
        base = float(np.median([rate.bytes_per_s for rate in at[first]])) / first
        points += [_point(number, layer, files, at[number], base, maximum) for number in sorted(at)]
    sizes = {round(rate.bytes / rate.tasks) for rate in rates}
    if len(sizes) > 1 and max(sizes) > 1.5 * min(sizes):
        notes.append(
            f"bytes for each task differ between these runs ({bytes_text(min(sizes))} to "
            f"{bytes_text(max(sizes))}): small runs may be of caches"
        )
    return Scaling(direction, by, maximum, maximum_bytes_per_s is None, points, notes)


def runs_in_series(rates: Sequence[RunRate]) -> list[RunRate]:
    """Put runs of a single task into the series of runs with several tasks that there are.

    Files that one task uses are both shared files and files for each task.

    Examples
    --------
    >>> from ensembles.answers.scaling import RunRate, runs_in_series
    >>> one = RunRate("a", 1, 1, 1, "posix", "shared", 100, 10.0)
    >>> two = RunRate("b", 2, 1, 2, "posix", "per task", 200, 19.0)
    >>> [(rate.tasks, rate.files) for rate in runs_in_series([one, two])]
    [(1, 'per task'), (2, 'per task')]
    """
    found = []
    for rate in rates:
        series = [rate.files]
        if rate.tasks == 1:
            others = {one.files for one in rates if one.tasks > 1 and one.layer == rate.layer}
            fits = {SHARED, PER_TASK} if rate.files == SHARED else {rate.files.replace("private", SHARED)}
            series = sorted(others & fits) or series
        found += [replace(rate, files=files) for files in series]
    return found


def _point(
    number: int, layer: str, files: str, rates: Sequence[RunRate], base: float, maximum: float
) -> ScalingPoint:
    values = [rate.bytes_per_s for rate in rates]
    median = float(np.median(values))
    return ScalingPoint(
        number,
        layer,
        files,
        list(rates),
        median,
        min(values),
        max(values),
        max(values) / min(values) if len(values) > 1 else None,
        median / number / base,
        median / maximum,
    )


def _outermost(run: Run, direction: Direction, selection: Selection) -> dict[str, int]:
    """Return the bytes that outermost calls moved, by layer."""
    from ensembles.ensemble.main_ensemble import CallGroups
    from ensembles.passes.summary import ignoring_run

    moved: dict[str, int] = {}
    for group in run.summarize(ignoring_run(CallGroups), selection=selection).groups():
        if group.op == direction:
            moved[group.layer] = moved.get(group.layer, 0) + group.bytes
    return moved


def _files(run: Run, direction: Direction, filters: Filters) -> str:
    chosen_calls: Filters = {**filters, "op": direction}
    rows = [row for row in totals_by_file(run, "bytes", **chosen_calls) if _bytes_of(row, direction) > 0]
    whole, seen, least = sum(_bytes_of(row, direction) for row in rows), 0, 0.0
    for row in sorted(rows, key=lambda row: -_bytes_of(row, direction)):
        if seen >= NEARLY_ALL * whole:
            break
        seen += _bytes_of(row, direction)
        least = _bytes_of(row, direction) / 2
    chosen = [row for row in rows if _bytes_of(row, direction) >= least]
    shared = sum(row.tasks > 1 for row in chosen)
    private = len(chosen) - shared
    if len(chosen) == 1:
        return SHARED if shared or run.tasks == 1 else "one"
    if run.tasks > 1 and not shared and NEARLY_ALL * run.tasks <= private <= run.tasks:
        return PER_TASK
    kinds = {SHARED: shared, "private": private}
    return ", ".join(f"{number:,} {kind}" for kind, number in kinds.items() if number)


def _bytes_of(row: Any, direction: Direction) -> int:
    return int((row.bytes_written if direction == "write" else row.bytes_read) or 0)


def answer_scaling(found: Scaling) -> PlainAnswer:
    """Show the rates of runs; see `ensembles.answers.scaling.scaling`."""
    counted = label_of(found.by, found.direction)
    each = f"a {counted.removesuffix('s')}"
    units = {
        "layer": "",
        "files": "",
        counted: "count",
        "runs": "count",
        "median": "bytes/s",
        "spread": "ratio",
    }
    units |= {each: "bytes/s", "efficiency": "share to 3 digits", "of max.": "share to 3 digits"}
    rows = [
        (
            point.layer,
            point.files,
            point.at,
            len(point.runs),
            round(point.median_bytes_per_s),
            point.spread,
            round(point.median_bytes_per_s / point.at),
            point.efficiency,
            point.share_of_maximum,
        )
        for point in found.points
    ]
    source = "the highest of these runs" if found.maximum_is_measured else "as given"
    direction = "written" if found.direction == "write" else "read"
    said = [
        Statement("scaling.maximum", {"rate": round(found.maximum_bytes_per_s), "source": source}),
        Statement("scaling.spread"),
        Statement("scaling.efficiency", {"each": each, "counted": counted}),
    ]
    listed = [run.path for point in found.points for run in point.runs]
    if len(listed) > len(set(listed)):
        said.append(Statement("scaling.single_tasks"))
    head = Statement("scaling.what", {"direction": direction})
    parts = ((head,), Table.of_rows("row", units, rows, key=3), tuple(said))
    return PlainAnswer("scaling", parts, found.to_json(), tuple(found.notes))
