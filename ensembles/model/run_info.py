"""Properties of a job that need no events."""

from __future__ import annotations

import datetime
import os
import shlex
import textwrap
from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import accumulate
from posixpath import dirname
from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.model.counters import Counters
from ensembles.model.events import Call
from ensembles.model.flights import Flights
from ensembles.model.holds import Holds
from ensembles.model.masked_command import mask_command
from ensembles.model.metadata import KernelBytes, Mount, Process, RunMetadata
from ensembles.model.sites import Site
from ensembles.model.units import count_text

if TYPE_CHECKING:
    from ensembles.model.lustre import Striping

_COMMAND = "ENSIO_COMMAND"
_SIMULATED = "ENSIO_SIMULATED_"

_WAITS = "Wait Waitall Waitany Waitsome Test Testall Testany Testsome Recv Sendrecv Probe"
POINT_TO_POINT = frozenset(f"MPI_{name}" for name in _WAITS.split(" "))
"""Functions that wait for messages, or complete I/O (``libtrace/calls/mpisync.def``)."""

WHY_DROPPED = {
    "budget": "the budget was used up: ENSIO_MAX_BYTES, or without it a tenth of the free space",
    "free_space": "less than 5 % of the file system and less than 1 GiB was free",
    "file_system_full": "the file system or a quota was full",
    "file_size_limit": "the process's limit on the size of files was reached",
    "run_directory": "the run directory was gone or could not be written to any more",
    "memory": "the process's limits on memory were reached",
    "unknown": "the reason was not recorded",
}
"""Name of each reason why events were dropped, and its text in messages."""


def crowded_text(oversubscribed: Mapping[str, int], processors: Mapping[str, int]) -> str:
    """Return which tasks share processors, as part of a sentence.

    `oversubscribed`, `processors`: tasks of the nodes with fewer processors than tasks, and processors of all
    nodes.

    Examples
    --------
    >>> crowded_text({"n1": 8, "n2": 8}, {"n1": 2, "n2": 2})
    '8 tasks share the 2 processors of n1 (and so on 1 other node)'
    """
    if not oversubscribed:
        return ""
    host, tasks = max(oversubscribed.items(), key=lambda item: item[1])
    more = len(oversubscribed) - 1
    others = f" (and so on {count_text(more, 'other node')})" if more else ""
    return f"{tasks} tasks share the {count_text(processors[host], 'processor')} of {host}{others}"


def _most_at_once(lives: Iterable[tuple[Any, int, int, int]]) -> dict[Any, int]:
    """Return how many live at one time, by key; of each life its key, start, end (0: unknown) and number."""
    changes: dict[Any, list[tuple[int, bool, int]]] = {}
    for key, start, end, number in lives:
        changes.setdefault(key, []).extend(((start, False, number), (end, True, -number)))
    return {key: max(accumulate(change for *_, change in sorted(each))) for key, each in changes.items()}


class RunInfo:
    """A job: where and how it ran, what was recorded, and what may be missing.

    `path`: file or directory that the job was read from.
    """

    def __init__(self, path: str, metadata: RunMetadata) -> None:
        self.path = path
        self._metadata = metadata

    @property
    def tasks(self) -> int:
        """Number of tasks (ranks). Ranks in events are smaller."""
        return self._metadata.tasks

    @property
    def threads(self) -> int:
        """Number of threads, the main ones and those that recorded calls, summed over tasks."""
        return self._metadata.threads

    @cached_property
    def threads_of_tasks(self) -> np.ndarray:
        """Most threads of each task at one time, the main one and those with calls: int64, shape (tasks,).

        The share of a time in I/O is of the length of the run times these.
        """
        # A process that records again, in destructors after its end, is still one.
        by_threads = sorted(self.processes, key=lambda each: each.threads)
        lives = {(each.host, each.pid, each.start_unix_ns): each for each in by_threads}.values()
        found = _most_at_once((x.rank, x.start_unix_ns, x.end_unix_ns, x.threads) for x in lives)
        return np.array([max(found.get(rank, 1), 1) for rank in range(self.tasks)], np.int64)

    @cached_property
    def beside_main(self) -> np.ndarray:
        """Whether threads beside the main ones make all calls of a task: bool, shape (tasks,)."""
        found = np.zeros((2, self.tasks), bool)
        for each in self.processes:
            if 0 <= each.rank < self.tasks:
                found[int(each.beside_main), each.rank] = True
        alone: np.ndarray = found[1] & ~found[0]
        return alone

    @property
    def most_threads(self) -> int:
        """The most of `threads_of_tasks`."""
        return int(self.threads_of_tasks.max(initial=1))

    @property
    def origin_unix_ns(self) -> int:
        """Time 0 of the run: ns since 1970-01-01 UTC."""
        return self._metadata.origin_unix_ns

    @property
    def start(self) -> datetime.datetime | None:
        """Time 0 of the run, in UTC; None: unknown, as where the clock was not set or times are relative."""
        epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
        found = epoch + datetime.timedelta(microseconds=self.origin_unix_ns // 1000)
        return None if found.year <= epoch.year else found

    @property
    def start_text(self) -> str:
        """Time 0 of the run as a text; empty if it is unknown."""
        return "" if self.start is None else f"{self.start:%Y-%m-%d %H:%M:%S} UTC"

    @property
    def calls(self) -> tuple[Call, ...]:
        """Traced functions, which `Events.call` indexes. The first is ``unknown``."""
        return self._metadata.calls

    @property
    def files(self) -> list[str]:
        """Absolute paths, which `Events.file` indexes. The first is ``""``: none or unknown."""
        return self._metadata.files

    @property
    def sites(self) -> list[Site]:
        """Call sites, which `Events.site` indexes, with functions and source lines. The first is unknown."""
        return self._metadata.sites.sites

    def label_of_site(self, number: int) -> str:
        """Return the function and the source line of a call site, for people."""
        return self.sites[number].label if number else "(unknown)"

    @property
    def processes(self) -> list[Process]:
        """All recorded processes, by rank."""
        return self._metadata.processes

    @property
    def dropped_events(self) -> int:
        """Number of completed calls without an event, because the disk was full or the budget was used up."""
        return sum(process.dropped_events for process in self.processes)

    @property
    def dropped_by_reason(self) -> dict[str, int]:
        """Dropped events by reason (`ensembles.readers.native.spool.WORDS`), the most frequent first."""
        return self._metadata.dropped_by_reason

    @property
    def flights(self) -> dict[str, Flights]:
        """Sums of non-blocking requests by operation: ``read``, ``write``, ``other``. Empty: none."""
        return self._metadata.flights

    @property
    def counters(self) -> Counters:
        """Counters by file and rank that Darshan kept; empty if another recorder wrote the run."""
        return self._metadata.counters

    @property
    def counted_io_s(self) -> float:
        """Time in I/O that another tool counted, summed over tasks, s: of one layer; 0: it counted none."""
        return sum(module.time_s for module in self.counters.main_layer)

    def has(self, part: Holds) -> bool:
        """Test whether the record holds a part."""
        return part in self._holds

    @cached_property
    def _holds(self) -> frozenset[Holds]:
        return self._metadata.holds  # goes through all processes

    @property
    def how_it_was_recorded(self) -> str:
        """Clause for refusals: why not every call is an event."""
        return self._metadata.why_not_all_calls[0]

    @property
    def how_to_keep_calls(self) -> str:
        """Clause for refusals: how to record the run with every call as an event."""
        return self._metadata.why_not_all_calls[1]

    @property
    def notes_on_calls(self) -> list[str]:
        """A sentence for what is shown of single calls if some are missing: which, and why."""
        return self._metadata.note_on_calls

    @property
    def calls_on_other_paths(self) -> int:
        """Number of calls on paths beyond those that a process keeps; their files are counted together."""
        return self._metadata.calls_on_other_paths

    @property
    def summed_calls(self) -> frozenset[str]:
        """Names of the functions whose calls are events only if they completed I/O; the summary has all."""
        return POINT_TO_POINT if self._metadata.summed else frozenset()

    @property
    def kernel_bytes(self) -> KernelBytes | None:
        """Bytes that the kernel counted in the recorded processes; None: unknown."""
        return self._metadata.kernel_bytes

    @property
    def lost_calls(self) -> int:
        """Number of dropped events that are missing in the summary too."""
        return sum(process.lost_calls for process in self.processes)

    @property
    def missing_calls(self) -> int:
        """Completed calls that are in neither events nor summary, lost or damaged; −1: unknown.

        A thread of a process that was killed may have been within a call.
        """
        left_out = self._metadata.left_out
        begun = sum(process.threads for process in self.processes if not process.ended)
        return left_out if left_out < 0 else self.lost_calls + max(left_out - begun, 0)

    @property
    def clock_error_ns(self) -> int:
        """`clock_error_s` in ns; 0 if it is unknown."""
        return round((self.clock_error_s or 0.0) * 1e9)

    @property
    def excluded_calls(self) -> int:
        """Number of calls on excluded files, of those that were counted."""
        return sum(process.excluded_calls for process in self.processes)

    @property
    def notes(self) -> list[str]:
        """Data-quality warnings: sentences about what is partial or doubtful in this run."""
        return self._metadata.notes

    @property
    def hosts(self) -> list[str]:
        """Names of the nodes."""
        return self._metadata.hosts

    @property
    def clock_error_s(self) -> float | None:
        """Bound on the clock offset between a node and the node of rank 0, s.

        It holds between MPI_Init and MPI_Finalize. 0.0: one node, hence one clock. None: the clocks are not
        aligned, or the bound is unknown.
        """
        return self._metadata.clock_error_s

    @property
    def clock_step_s(self) -> float | None:
        """Step of the clock of the calls' times, s, as recorder or reader state it; None: unknown.

        Durations are multiples of it, to the rounding to ns. Of several clocks, the coarsest.
        """
        return 1e-9 if self.simulated and self._metadata.clock_step_s is None else self._metadata.clock_step_s

    @property
    def mode(self) -> str:
        """Recording mode; ``""``: unknown.

        ``trace``: an event of every call. ``profile``: the summary only. ``tail``: the summary, and events
        of the slowest calls.
        """
        return self._metadata.mode

    @property
    def job(self) -> str:
        """Job id of the batch system, or ``""``."""
        return self._metadata.job

    @property
    def user(self) -> str:
        """Name of the user, or the user id if there is no name; ``""``: unknown."""
        return self._metadata.user

    @property
    def mpi_version(self) -> str:
        """Version of the MPI library, as the library reports it; ``""``: no MPI, or unknown."""
        return self._metadata.mpi

    @property
    def recorder(self) -> str:
        """What recorded the run: ``ensio``, or the name of another tool or model."""
        return "ensio" if self.is_native else self._metadata.recorder

    @property
    def is_native(self) -> bool:
        """Whether the recorder of ensio recorded the run, and no other tool or model."""
        return self._metadata.recorder[:1].isdigit() and not self.simulated

    @property
    def has_plain_processes(self) -> bool:
        """Whether the tasks are processes that no MPI and no launcher of ranks started.

        False also if that is not known: in simulated runs, and in most imported logs.
        """
        of_processes = self.is_native or self.has_system_calls_alone
        return of_processes and not (self.mpi_version or self._metadata.launcher)

    @property
    def has_system_calls_alone(self) -> bool:
        """Whether calls of libraries, such as those on streams, cannot be in the record."""
        return self._metadata.recorder == "strace"

    @property
    def live_together(self) -> bool:
        """Whether all tasks live at one moment, as ranks do that wait for others; True also if unknown."""
        return self.most_alive == self.tasks

    @cached_property
    def most_alive(self) -> int:
        """Largest number of tasks that live at one moment; all of them if that is not known."""
        lives: dict[int, list[int]] = {}
        for each in self.processes:
            if each.rank >= 0 and 0 < each.start_unix_ns < each.end_unix_ns:
                lives.setdefault(each.rank, []).extend((each.start_unix_ns, each.end_unix_ns))
        if len(lives) < self.tasks:
            return self.tasks
        begun, ended = (np.sort([of(life) for life in lives.values()]) for of in (min, max))
        before = np.searchsorted(ended, begun, side="right")
        return int((np.arange(len(begun)) + 1 - before).max(initial=0))

    @property
    def libc_version(self) -> str:
        """Version of the C library, or ``""``."""
        return self._metadata.libc

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables of the first task that affect I/O (docs/reference/formats/spool.md)."""
        return self._metadata.environment

    @property
    def simulated(self) -> str:
        """Sentence on model, faults and seed of a simulated run; ``""`` for a real run."""
        said = {name: self.environment.get(_SIMULATED + name, "") for name in ("MODEL", "FAULTS", "SEED")}
        if not said["MODEL"]:
            return ""
        faults = f"with the faults {said['FAULTS']}" if said["FAULTS"] else "without a fault"
        return f"on the model {said['MODEL']} {faults}, seed {said['SEED']}: no call was really made"

    @property
    def processors(self) -> dict[str, int]:
        """Number of processors of each node, by name of the node, where it was recorded."""
        return self._metadata.processors

    @cached_property
    def oversubscribed(self) -> dict[str, int]:
        """Most tasks at one time, from first process to last, of each node with fewer processors.

        A task waits while one lives that it started, and that ends before it: it does not count then.
        """
        ranked = [each for each in self.processes if each.rank >= 0]
        tasks = {(each.host, each.pid): (each.host, each.rank) for each in ranked}
        times: dict[tuple[str, int], list[int]] = {}
        for each in ranked:
            times.setdefault((each.host, each.rank), []).extend((each.start_unix_ns, each.end_unix_ns))
        lives = {task: (min(ends), max(ends)) for task, ends in times.items()}
        changes = [(host, *life, 1) for (host, _), life in lives.items()]
        waited: dict[tuple[str, int], int] = {}
        for each in sorted(ranked, key=lambda each: lives[each.host, each.rank]):
            by, (start, end) = tasks.get((each.host, each.parent_pid or -1)), lives[each.host, each.rank]
            if by and 0 < lives[by][0] < start and waited.get(by, 0) < end < lives[by][1]:
                changes.append((each.host, max(start, waited.get(by, 0) + 1), end, -1))
                waited[by] = end
        found = _most_at_once(changes)
        return {host: found[host] for host, count in self.processors.items() if found.get(host, 0) > count}

    @property
    def crowded_text(self) -> str:
        """Which tasks share processors, as part of a sentence; ``""`` if none do."""
        return crowded_text(self.oversubscribed, self.processors)

    @property
    def processor_wait_s(self) -> float:
        """How long a process, or its main thread, waited for a processor at most, s; 0: not known, too."""
        return 1e-9 * self._metadata.processor_wait_ns

    @property
    def recorder_s(self) -> float:
        """How much longer the recorder made the run at starts and ends of processes, s; 0: not known, too."""
        return 1e-9 * self._metadata.recorder_ns

    @property
    def mounts(self) -> dict[str, tuple[Mount, ...]]:
        """Mounted file systems of each node, by name of the node."""
        return self._metadata.mounts

    @property
    def file_facts(self) -> dict[str, dict[str, str]]:
        """Further properties of files by path, for example MPI-IO hints (``hint.*``)."""
        return self._metadata.file_facts

    def filesystem_of(self, path: str) -> Mount | None:
        """Return the file system of a file.

        Nodes may have different mounts at one path. The first node that recorded its mounts decides.
        """
        point = self.file_facts.get(path, {}).get("mount")
        for table in self.mounts.values():
            # The last mount at a mount point hides the earlier ones.
            found = [mount for mount in table if (mount.point == point if point else mount.holds(path))]
            if found:
                return max(reversed(found), key=lambda mount: len(mount.point))
        return None

    def are_local(self, paths: Iterable[str]) -> bool:
        """Return whether all files lie on file systems of one node, for sure."""
        folders = {dirname(path) for path in paths if path.startswith("/")}
        systems = map(self.filesystem_of, folders)
        return bool(folders) and all(each is not None and each.is_local for each in systems)

    def striping_of(self, path: str) -> Striping | None:
        """Return the Lustre striping of a file.

        None: the file is not on Lustre, or its layout is unknown.
        """
        layout = self.file_facts.get(path, {}).get("lustre.lov")
        if not layout:
            return None
        from ensembles.model.lustre import decode_layout

        return decode_layout(layout)

    @property
    def program(self) -> str:
        """Absolute path of the program; of several, the first word of `command`; ``""``: unknown."""
        if len(self.programs) > 1 and self.command:
            return self.command[0]
        return next((process.program for process in self._by_weight() if process.program), "")

    @property
    def name(self) -> str:
        """Name of the run for people: that of its program; of several programs, the command."""
        if len(self.programs) < 2:
            return os.path.basename(self.program or "".join(self.command[:1]) or os.path.normpath(self.path))
        return textwrap.shorten(shlex.join(self.command), 40, placeholder=" ...")

    @property
    def programs(self) -> dict[str, list[int]]:
        """Absolute paths of all programs with tasks, with the ranks of each, in the order of the first.

        A pipeline or a script has several.
        """
        found: dict[str, list[int]] = {}
        for process in sorted(self.processes, key=lambda process: process.rank):
            if process.rank >= 0 and process.program:
                ranks = found.setdefault(process.program, [])
                if process.rank not in ranks[-1:]:
                    ranks.append(process.rank)
        return found

    @property
    def command(self) -> tuple[str, ...]:
        """Command that started the run; the first word is its program.

        Of one program it is the program's, without a launcher. Of a script or pipeline it is what the user
        gave to ``ensio run``; where that is not known, the command of the process that started the others.
        """
        own = self.task_command
        given = mask_command(tuple(filter(None, self.environment.get(_COMMAND, "").split("\x1f"))))
        if not given or (len(self.programs) < 2 and _ends_with(given, own)):
            return own
        return given

    @property
    def task_command(self) -> tuple[str, ...]:
        """Arguments of the process that started the other tasks, else of the first task."""
        first = next((process for process in self._by_weight() if process.command), None)
        if first is None or len(self.programs) < 2:
            return first.command if first is not None else ()
        known = {(process.host, process.pid): process for process in self.processes}
        ancestors = {_oldest(process, known) for process in self.processes if process.rank >= 0}
        root = known[next(iter(ancestors))] if len(ancestors) == 1 else first
        return root.command or first.command

    def _by_weight(self) -> list[Process]:
        # Processes with a rank and with recorded calls come first.
        return sorted(self.processes, key=lambda process: (process.rank < 0, process.threads == 0))

    def __repr__(self) -> str:
        return f"Run {self.path}: {self._in_one_line()}" + "".join(f"\n  note: {note}" for note in self.notes)

    def _repr_html_(self) -> str:
        import html

        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        return (
            f"<p><b>{html.escape(self.name)}</b>: "
            f"{html.escape(self._in_one_line())}<br><code>{html.escape(self.path)}</code></p>"
            + (f"<ul>{notes}</ul>" if notes else "")
        )

    def _in_one_line(self) -> str:
        command = " ".join(self.command) or self.program or "unknown program"
        if len(command) > 80:
            command = command[:77] + "..."
        if len(programs := self.programs) > 1:
            command = f"{command} (programs {', '.join(map(os.path.basename, programs))})"
        on = self.hosts[0] if len(self.hosts) == 1 else f"{len(self.hosts) or 'unknown'} nodes"
        tasks = f"{self.tasks} task{'s' * (self.tasks != 1)}"
        return ", ".join(filter(None, (command, f"{tasks} on {on}", self.start_text)))


def _ends_with(given: tuple[str, ...], own: tuple[str, ...]) -> bool:
    """Whether a command is another one behind a launcher, as far as the first is known."""
    if given[-1] == "..." and len(given) > 1:
        return True
    tail = given[len(given) - len(own) :]
    names = [os.path.basename(words[0]) for words in (tail, own) if words]
    return len(tail) == len(own) and tail[1:] == own[1:] and len(set(names)) < 2


def _oldest(process: Process, known: dict[tuple[str, int], Process]) -> tuple[str, int]:
    """Return host and number of the first process of a run that started this one, directly or not."""
    seen = {process.pid}
    while (parent := known.get((process.host, process.parent_pid))) is not None and parent.pid not in seen:
        process = parent
        seen.add(process.pid)
    return process.host, process.pid
