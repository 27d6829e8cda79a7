"""The headline of a run: data rates, and the time in I/O of its tasks and of its critical path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.model.events import OPS, is_io_of_calls, op_of_calls
from ensembles.model.units import S_PER_NS
from ensembles.passes.group import SummaryRequest
from ensembles.passes.summary import ignoring_run
from ensembles.structure.phases import detect
from ensembles.structure.phases.critical_path import CriticalPath, CriticalTime, critical_io, critical_path
from ensembles.summaries.active_time import ActiveTime
from ensembles.summaries.open_time import OpenTime
from ensembles.summaries.ranktable import RankTable
from ensembles.summaries.runtotals import DIRECTIONS

if TYPE_CHECKING:
    from ensembles.run.run import Run

MOST_EVENTS = detect.MOST_EVENTS
"""The critical path of longer runs is not part of the headline, because it takes further passes."""


@dataclass(frozen=True)
class Transfer:
    """Bytes of one direction, and how fast they moved."""

    bytes: int  # Bytes moved; those of inner calls count once
    active_s: float | None = None  # Time in which at least one call moved bytes
    active_bytes_per_s: float | None = None  # Data rate while data moved: `bytes` by `active_s`
    # open_s, open_bytes: Time in which these files were open, and the bytes moved in it
    # (`ensembles.summaries.open_time.OpenTime`)
    open_s: float | None = None
    open_bytes: int | None = None
    open_bytes_per_s: float | None = None  # Rate from open to close: `open_bytes` by `open_s`
    # Task that spent most time in calls of this direction; for writes, in syncs too, which write what these
    # left in memory
    slowest_task: int | None = None
    slowest_task_s: float | None = None  # That time, each call once
    slowest_task_bytes_per_s: float | None = None  # `bytes` of all tasks by `slowest_task_s`


@dataclass(frozen=True)
class TimeInIo:
    """Time in I/O of the tasks of a run."""

    tasks: int = 0  # Number of tasks with I/O calls
    # mean_s, mean_share: Mean over these tasks of their exclusive time in I/O, and its share of the run
    # (`ensembles.run.run.Run.length_s`). Of tasks with several threads, the share is of the time of all
    # threads (`ensembles.model.run_info.RunInfo.threads_of_tasks`).
    mean_s: float | None = None
    mean_share: float | None = None
    slowest_task: int | None = None  # Task with most time in I/O
    # slowest_s, slowest_share: Its time in I/O, and the share of the run
    slowest_s: float | None = None
    slowest_share: float | None = None
    # How much of the critical path of the run is I/O. None: the record does not show it, or there are more
    # than `MOST_EVENTS` events of several threads.
    path: CriticalPath | None = None
    # Most threads of a task. No key of JSON if all have one, and shares are those of the run.
    threads: int = 1

    @property
    def critical_path_s(self) -> float | None:
        """Time in I/O on the critical path; None: the run does not show who waits for whom."""
        return self.path.io_s if self.path is not None and self.path.is_of_run else None

    def to_json(self) -> dict[str, Any]:
        """A dict with the names of the attributes; of the path, what `CriticalPath.to_json` says.

        ``some_task_s`` is there where the run does not show who waits for whom, but all of its calls.
        """
        said = {name: value for name, value in vars(self).items() if name not in ("path", "threads")}
        said |= {"critical_path_s": self.critical_path_s, "critical_path_share": None}
        said |= {"threads": self.threads} if self.threads > 1 else {}
        if self.path is None:
            return said
        name = "critical_path" if self.path.is_of_run else "some_task"
        if self.path.is_of_run or self.path.is_of_calls:
            said |= {f"{name}_s": self.path.io_s, f"{name}_share": self.path.share}
        return said | self.path.to_json()


@dataclass(frozen=True)
class Headline:
    """Data rates and times in I/O of a run."""

    transfers: dict[str, Transfer]  # By direction, ``"read"`` and ``"write"``
    time_in_io: TimeInIo

    def to_json(self) -> dict[str, Any]:
        """A dict with the names of the attributes."""
        return {**asdict(self), "time_in_io": self.time_in_io.to_json()}


def headline_requests() -> dict[str, SummaryRequest]:
    """Return the requests for the summaries of a run that `find_headline` takes."""
    return {"active": active_request(), "open": SummaryRequest(ignoring_run(OpenTime))}


def active_request() -> SummaryRequest:
    """Return the request for the times in which bytes moved."""
    return SummaryRequest(ignoring_run(ActiveTime))


def find_headline(run: Run, moved: Mapping[str, int], found: Mapping[str, Any]) -> Headline:
    """Find the headline of a run.

    `found`: summaries of `headline_requests` by name, each None if not all calls are events.
    """
    ranks = run.reading.known_ranks
    transfers = {}
    for direction in DIRECTIONS:
        by_time = rates_by_time(moved[direction], direction, found)
        by_task = {} if ranks is None else _by_task(moved[direction], direction, ranks, run.tasks)
        transfers[direction] = Transfer(moved[direction], **by_time, **by_task)
    return Headline(transfers, _time_in_io(run, ranks, found))


def path_request(run: Run) -> dict[str, SummaryRequest]:
    """Return the request for the critical path, of runs of which every call is an event, and not too many."""
    if run.reading.most_events > MOST_EVENTS or run.reading.phases_of_calls is None:
        return {}
    return {"critical": SummaryRequest(partial(critical_io, CriticalTime), CriticalTime.columns)}


def find_time_in_io(run: Run, found: Mapping[str, Any] | None = None) -> TimeInIo:
    """Find the time in I/O of the tasks of a run, without the rest of the headline.

    `found`: the summary of `path_request` by name; by default, it takes a pass.
    """
    return _time_in_io(run, run.reading.known_ranks, found)


def counted_time_in_io(run: Run) -> TimeInIo:
    """Return the time in I/O by the counters of another tool, which include calls that are not traced."""
    main, threads = run.counters.main_layer, run.info.threads_of_tasks
    mean_s, slowest_s = run.info.counted_io_s / run.tasks, run.counters.slowest_task_s
    # Tasks that are longer in I/O than the time of their threads have some that the tool does not count.
    whole_s = run.length_s * float(threads.mean())
    shares = [each_s / whole_s if each_s <= whole_s > 0 else None for each_s in (mean_s, slowest_s)]
    path = None if run.counters.overlaps else _path(run)
    found = TimeInIo(run.tasks, mean_s, shares[0], path=path, threads=run.info.most_threads)
    if any(module.slowest_is_bound for module in main):
        return found
    return replace(found, slowest_s=slowest_s, slowest_share=shares[1] if np.ptp(threads) == 0 else None)


def rates_by_time(moved: int, direction: str, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the times and rates of a `Transfer` that `headline_requests` tell; empty: unknown."""
    if not moved or found["active"] is None:
        return {}
    active_s = found["active"].active_s(direction)
    values: dict[str, Any] = {"active_s": active_s, "active_bytes_per_s": _rate(moved, active_s)}
    if opened := found["open"].open_to_close(direction):
        values |= {"open_s": opened.time_s, "open_bytes": opened.bytes}
        values["open_bytes_per_s"] = _rate(opened.bytes, opened.time_s)
    return values


def _by_task(moved: int, direction: str, ranks: RankTable, tasks: int) -> dict[str, Any]:
    if not moved:
        return {}
    ops = ("write", "sync") if direction == "write" else ("read",)
    chosen = np.isin(op_of_calls(ranks.calls)[ranks.call], [OPS.index(op) for op in ops])
    time_ns = ranks.moving_ns(tasks, chosen)
    slowest = int(time_ns.argmax())
    slowest_s = int(time_ns[slowest]) * S_PER_NS
    return {
        "slowest_task": slowest,
        "slowest_task_s": slowest_s,
        "slowest_task_bytes_per_s": _rate(moved, slowest_s),
    }


def _rate(moved: int, time_s: float) -> float | None:
    return moved / time_s if time_s > 0 else None


def _time_in_io(run: Run, ranks: RankTable | None, found: Mapping[str, Any] | None) -> TimeInIo:
    if ranks is None or not len(ranks):
        return TimeInIo()
    # `np.unique` would import `np.ma`, which takes 30 ms.
    with_io = np.flatnonzero(np.bincount(ranks.rank[is_io_of_calls(ranks.calls)[ranks.call]]))
    if not len(with_io):
        return TimeInIo()
    time_s = ranks.io_time_ns(run.tasks) * S_PER_NS
    run_s = run.length_s
    share = time_s / (run_s * run.info.threads_of_tasks) if run_s > 0 else None
    slowest = int(time_s.argmax())
    return TimeInIo(
        tasks=len(with_io),
        mean_s=float(time_s[with_io].mean()),
        mean_share=None if share is None else float(share[with_io].mean()),
        slowest_task=slowest,
        slowest_s=float(time_s[slowest]),
        slowest_share=None if share is None else float(share[slowest]),
        path=_path(run, found),
        threads=run.info.most_threads,
    )


def _path(run: Run, found: Mapping[str, Any] | None = None) -> CriticalPath | None:
    """Find the critical path, if the record shows it, and it takes no pass over many events."""
    if run.reading.phases_of_calls is None or (run.info.threads == 1 and not path_request(run)):
        return critical_path(run, None)
    known, requests = found or {}, path_request(run)
    if requests and "critical" not in known:
        known = run.summarize(requests).summaries
    return critical_path(run, known["critical"]) if requests else None
