"""The order of tasks in a trace diagram, and the numbers of an ordered diagram or of a window of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np

from ensembles.model.enclosed import among_themselves
from ensembles.model.errors import EnsioError
from ensembles.model.events import COLUMNS, Events
from ensembles.model.spans import find_spans
from ensembles.passes.group import SummaryRequest
from ensembles.passes.spec import summarize_chunks
from ensembles.passes.summary import ANY_ORDER, S, Summary, ignoring_run
from ensembles.run.rasters import expected_calls, pyramid_window
from ensembles.run.run import Run
from ensembles.run.selection import Selection
from ensembles.summaries.raster import Raster
from ensembles.viz.common.data_for import need_calls
from ensembles.viz.common.single_calls import MOST_CALLS, Window, calls_inside, cut_to_window

Order = Literal["rank", "node", "slowness", "start"]
Factory: TypeAlias = Callable[[Callable[[], Any]], Callable[[Any], Any]]

ORDERS: dict[str, str] = {
    "rank": "rank",
    "node": "rank, by node",
    "slowness": "rank, most time in calls first",
    "start": "rank, first call first",
}
"""Label of the axis of tasks by their order."""


_CALLS = "calls"
"""Name of the request for single calls; no layer has it."""

_LIKELY_FEW = 4 * MOST_CALLS
"""With fewer expected calls in a window, they are read at once."""


@dataclass(frozen=True)
class TaskRows:
    """The row of each task in a trace diagram."""

    label: str  # Label of the axis
    row: np.ndarray  # Row of each rank; shape (tasks,)
    # Name of each node and its first row, in the order of rows; empty: rows are not grouped by node, or nodes
    # are not known
    nodes: list[tuple[str, int]]

    @property
    def ranks(self) -> np.ndarray:
        """Rank of each row."""
        return np.argsort(self.row, kind="stable")


class TaskTimes(Summary):
    """A mergeable summary: of each task the time in calls, and the start of its first one.

    Calls that wait count: a slow task is one that is in calls, and not one that waits for others outside.

    `time_ns`, `first_ns`, shape (tasks,): time in outermost calls that do not wait for other tasks, and the
    earliest start.
    """

    columns = ("rank", "call", "depth", "start", "duration")
    results = ("time_ns", "first_ns")
    requires = ANY_ORDER

    def __init__(self, tasks: int) -> None:
        self.time_ns = np.zeros(max(tasks, 1), np.int64)
        self.first_ns = np.full(max(tasks, 1), np.iinfo(np.int64).max)

    def add(self, chunk: Events) -> None:
        """Add events."""
        waits = np.array([call.waits_for_tasks for call in chunk.calls], bool)
        counted = (chunk.depth == 0) & ~waits[chunk.call]
        np.add.at(self.time_ns, chunk.rank[counted], chunk.duration[counted])
        np.minimum.at(self.first_ns, chunk.rank, chunk.start)

    def merge(self, other: TaskTimes) -> None:
        """Add a summary of other events of the same run."""
        self.time_ns += other.time_ns
        self.first_ns = np.minimum(self.first_ns, other.first_ns)


def rows_of_tasks(data: Any, order: str) -> TaskRows:
    """Order the tasks of a run."""
    if order not in ORDERS:
        raise ValueError(f'there is no order "{order}": choose {", ".join(ORDERS)}')
    tasks = _tasks(data)
    hosts = _hosts(data, tasks) if order in ("rank", "node") else None
    if order == "rank":
        row = np.arange(tasks)
        return TaskRows(ORDERS[order], row, [] if hosts is None else _groups(hosts, row))
    if order == "node":
        if hosts is None:
            raise EnsioError("the nodes of the tasks are not known: give a run whose recorder wrote them")
        _, place = np.unique(hosts, return_inverse=True)
        ranks = np.argsort(place, kind="stable")
    else:
        times = _summarized(data, partial(TaskTimes, tasks))
        key = -times.time_ns if order == "slowness" else times.first_ns
        ranks = np.argsort(key, kind="stable")
    row = np.empty(tasks, np.int64)
    row[ranks] = np.arange(tasks)
    return TaskRows(ORDERS[order], row, _groups(hosts, row) if order == "node" and hosts is not None else [])


def _tasks(data: Any) -> int:
    if isinstance(data, Run):
        return max(data.tasks, 1)
    if isinstance(data, Events):
        return int(data.rank.max()) + 1 if len(data) else 1
    raise TypeError(f"a run or events are needed to order tasks, not {type(data).__name__}")


def _hosts(data: Any, tasks: int) -> np.ndarray | None:
    if not isinstance(data, Run):
        return None
    names = {
        process.rank: process.host for process in data.info.processes if process.rank >= 0 and process.host
    }
    if len(set(names) & set(range(tasks))) < tasks:
        return None
    return np.array([names[rank] for rank in range(tasks)])


def _groups(hosts: np.ndarray, row: np.ndarray) -> list[tuple[str, int]]:
    """Return the nodes and their first rows, if the tasks of each node are neighbours."""
    by_row = hosts[np.argsort(row, kind="stable")]
    first = np.flatnonzero(np.append(True, by_row[1:] != by_row[:-1]))
    names = by_row[first].tolist()
    return list(zip(names, first.tolist(), strict=True)) if len(set(names)) == len(names) else []


def _summarized(data: Any, make: Callable[[], S]) -> S:
    """Fill a summary with the calls of a run or of events."""
    if isinstance(data, Run):
        return data.summarize(ignoring_run(make))
    summary = make()
    summary.add(data)
    return summary


class PreparedRaster(Raster):
    """A raster of calls that functions prepare, one after the other, chunk by chunk."""

    def __init__(self, prepare: Sequence[Callable[[Events], Events]], tasks: int, *size: int) -> None:
        self._prepare = prepare
        super().__init__(tasks, *size)

    def add(self, chunk: Events) -> None:
        """Add events."""
        for prepare in self._prepare:
            chunk = prepare(chunk)
        super().add(chunk)


def _in_rows(row: np.ndarray, chunk: Events) -> Events:
    """Return calls with the row of their task as its rank."""
    columns = {name: getattr(chunk, name) for name in Raster.columns}
    columns["rank"] = row[chunk.rank]
    return Events.partly(columns, chunk.calls, chunk.files)


class WindowCount(Summary):
    """A mergeable summary: the number of calls in progress within a window."""

    columns = ("rank", "start", "duration")
    requires = ANY_ORDER
    added_up = ("count",)

    def __init__(self, window: Window, row: np.ndarray) -> None:
        self._window, self._row = window, row
        self.count = 0

    def add(self, chunk: Events) -> None:
        """Add events."""
        self.count += len(calls_inside(chunk, self._window, self._row))


class WindowCalls(Summary):
    """A mergeable summary: the calls in progress within a window, if they are few.

    `count`: number of the calls.
    """

    requires = ANY_ORDER

    def __init__(self, window: Window, row: np.ndarray) -> None:
        self._window, self._row = window, row
        self._parts: list[Events] = []
        self.count = 0

    def add(self, chunk: Events) -> None:
        """Add events."""
        mine = calls_inside(chunk, self._window, self._row)
        if len(mine):
            self._keep(len(mine), [chunk[mine]] if len(mine) <= MOST_CALLS else [])

    def merge(self, other: WindowCalls) -> None:
        """Add a summary of other events of the same run."""
        self._keep(other.count, other._parts)

    def _keep(self, count: int, parts: list[Events]) -> None:
        self.count += count
        self._parts = [*self._parts, *(_copied(part) for part in parts)] if self.count <= MOST_CALLS else []

    @property
    def events(self) -> Events | None:
        """The calls; None: there are more than `MOST_CALLS`."""
        if self.count > MOST_CALLS or not self._parts:
            return None
        return Events.concatenate(self._parts).sorted()


def _copied(part: Events) -> Events:
    """Copy events out of memory that the reader uses again."""
    return Events({name: getattr(part, name).copy() for name in COLUMNS}, part.calls, part.files, part.sites)


class WindowRaster(PreparedRaster):
    """The raster of a window: calls count with their part inside of it."""

    requires = ANY_ORDER

    def __init__(self, window: Window, row: np.ndarray, *prepare: Callable[[Events], Events]) -> None:
        cut = partial(cut_to_window, window=window, row=row)
        super().__init__((*prepare, cut), window.tasks)


def timed(chunk: Events) -> Events:
    """Return calls that take 1 ns or more each, so that chosen ones are seen."""
    if chunk.duration.all():
        return chunk
    columns = {name: getattr(chunk, name) for name in Raster.columns}
    columns["duration"] = np.maximum(chunk.duration, 1)
    return Events.partly(columns, chunk.calls, chunk.files)


def of_layer(chunk: Events, layer: str) -> Events:
    """Return the calls of a layer, with depths among themselves."""
    own = np.array([*(call.layer == layer for call in chunk.calls), False])
    return among_themselves(chunk[own[chunk.call]])


def rasters_of_layers(
    data: Any, layers: Sequence[str], rows: TaskRows, window: Window | None
) -> tuple[list[Raster], Events | None]:
    """Return the numbers of the trace diagram of each layer, and the calls of a window if they are few.

    `calls`: of all layers. None: there is no window, or it has no calls, or more than `MOST_CALLS`.
    """
    requests: dict[str, SummaryRequest] = {}
    for layer in layers:
        own = partial(of_layer, layer=layer)
        make = (
            partial(PreparedRaster, (own, partial(_in_rows, rows.row)), len(rows.row))
            if window is None
            else partial(WindowRaster, window, rows.row, own)
        )
        requests[layer] = SummaryRequest(ignoring_run(make))
    if window is not None:
        requests[_CALLS] = SummaryRequest(ignoring_run(partial(WindowCalls, window, rows.row)))
    if isinstance(data, Run):
        need_calls(data)
        under_way = None if window is None else Selection(under_way_ns=(window.low_ns, window.high_ns))
        group = data.summarize(requests, selection=under_way)
    else:
        group = summarize_chunks(requests, iter([data]), data)
    calls = None if window is None else group[_CALLS].events
    return [group[layer] for layer in layers], calls


def ordered_raster(data: Any, rows: TaskRows) -> Raster:
    """Return the numbers of the trace diagram with ordered tasks, from a pass over a run."""
    if isinstance(data, Run):
        need_calls(data)
    return _summarized(data, partial(PreparedRaster, (partial(_in_rows, rows.row),), len(rows.row)))


def window_of(data: Any, window: Window, rows: TaskRows) -> tuple[Raster, Events | None]:
    """Return the numbers of a window of the trace diagram, and its calls if they are few.

    Windows that a kept pyramid resolves need no pass, and have no calls.
    """
    if not isinstance(data, Run):
        requests = _requests_of_window(window, rows.row, ignoring_run)
        group = summarize_chunks(requests, iter([data]), data)
        return group["raster"], group["calls"].events
    need_calls(data)
    mine = None
    if window.tasks < len(rows.row):
        mine = tuple(find_spans(rows.ranks[window.first : window.last + 1]))
    elif (np.diff(rows.row) == 1).all():
        kept = pyramid_window(data, window.low_ns, window.high_ns)
        if kept is not None:
            return kept, None
    return read_window(data, window, rows.row, Selection(ranks=mine), ignoring_run)


def read_window(
    run: Run,
    window: Window,
    row: np.ndarray,
    selection: Selection,
    factory: Factory,
    beside: Mapping[str, SummaryRequest] = MappingProxyType({}),
) -> tuple[Raster, Events | None]:
    """Read the numbers of a window of the trace diagram, and its calls if they are few.

    If calls are expected to be many, all of their columns are read only if they prove to be few.

    `calls`: None: there are none, or more than `MOST_CALLS`.
    """
    under_way = replace(selection, under_way_ns=(window.low_ns, window.high_ns))
    requests = _requests_of_window(window, row, factory) | dict(beside)
    if not replace(selection, ranks=None).selects_all:
        requests["raster"] = SummaryRequest(factory(partial(WindowRaster, window, row, among_themselves)))
    expected = expected_calls(run, window.low_ns, window.high_ns)
    if expected is not None and expected * window.tasks / max(len(row), 1) <= _LIKELY_FEW:
        group = run.summarize(requests, selection=under_way)
        return group["raster"], group["calls"].events
    calls = requests.pop("calls")
    group = run.summarize(requests, selection=under_way)
    if not 0 < group["count"].count <= MOST_CALLS:
        return group["raster"], None
    return group["raster"], run.summarize({"calls": calls, **beside}, selection=under_way)["calls"].events


def _requests_of_window(window: Window, row: np.ndarray, factory: Factory) -> dict[str, SummaryRequest]:
    wanted: dict[str, Callable[[Window, np.ndarray], Summary]]
    wanted = {"raster": WindowRaster, "count": WindowCount, "calls": WindowCalls}
    return {name: SummaryRequest(factory(partial(kind, window, row))) for name, kind in wanted.items()}
