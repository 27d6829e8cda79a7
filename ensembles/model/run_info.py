"""What is known about a job without a look at its events."""

from __future__ import annotations

import datetime
import html
import os

from ensembles.model.events import Call
from ensembles.model.lustre import Striping, decode_layout
from ensembles.model.metadata import Mount, Process, RunMetadata

_SIMULATED = "ENSIO_SIMULATED_"


class RunInfo:
    """A job: where and how it ran, what was recorded of it, and what may be missing.

    Attributes
    ----------
    path : str
        Where it was read from.
    """

    def __init__(self, path: str, metadata: RunMetadata) -> None:
        self.path = path
        self._metadata = metadata

    @property
    def tasks(self) -> int:
        """Number of tasks (ranks); ranks in events are below it."""
        return self._metadata.tasks

    @property
    def threads(self) -> int:
        """Number of threads that recorded, of all tasks together."""
        return self._metadata.threads

    @property
    def origin_unix_ns(self) -> int:
        """The run's time 0: ns since 1970-01-01 UTC."""
        return self._metadata.origin_unix_ns

    @property
    def start(self) -> datetime.datetime:
        """The run's time 0, in UTC."""
        epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
        return epoch + datetime.timedelta(microseconds=self.origin_unix_ns // 1000)

    @property
    def calls(self) -> tuple[Call, ...]:
        """Traced functions; the events' ``call`` column indexes it. The first is ``unknown``."""
        return self._metadata.calls

    @property
    def files(self) -> list[str]:
        """Absolute paths, which the events' ``file`` column indexes. The first is ``""``: none or unknown."""
        return self._metadata.files

    @property
    def processes(self) -> list[Process]:
        """All processes that were recorded, by rank."""
        return self._metadata.processes

    @property
    def dropped_events(self) -> int:
        """Completed calls that are not among the events, for want of space or of budget."""
        return sum(process.dropped_events for process in self.processes)

    @property
    def dropped_by_reason(self) -> dict[str, int]:
        """The dropped events by reason (`ensembles.readers.native.losses.WORDS`), the commonest first."""
        return self._metadata.dropped_by_reason

    @property
    def calls_on_other_paths(self) -> int:
        """Calls that name a path beyond those that a process keeps: their files are counted together."""
        return self._metadata.calls_on_other_paths

    @property
    def lost_calls(self) -> int:
        """Those of the dropped events that are not in the summary either."""
        return sum(process.lost_calls for process in self.processes)

    @property
    def has_all_events(self) -> bool:
        """Whether every call that the summary counts is among the events."""
        return self._metadata.has_all_events

    @property
    def clock_error_ns(self) -> int:
        """`clock_error_s` in ns; 0 where it is not known."""
        return round((self.clock_error_s or 0.0) * 1e9)

    @property
    def keeps_all_calls(self) -> bool:
        """Whether every completed call is among the events: phases and ordinals can be told."""
        return self.mode not in ("profile", "tail") and self.dropped_events == 0

    @property
    def excluded_calls(self) -> int:
        """Calls on files that are left out, as far as they were counted."""
        return sum(process.excluded_calls for process in self.processes)

    @property
    def notes(self) -> list[str]:
        """What is partial or doubtful about this run, in plain sentences."""
        return self._metadata.notes

    @property
    def hosts(self) -> list[str]:
        """Names of the nodes."""
        return self._metadata.hosts

    @property
    def clock_error_s(self) -> float | None:
        """How much times of a node may be off against those of rank 0's, between MPI_Init and MPI_Finalize.

        0.0: there is one node, hence one clock. None: the clocks are not aligned, or it is not known.
        """
        return self._metadata.clock_error_s

    @property
    def mode(self) -> str:
        """How it was recorded: ``trace`` (every call), ``profile`` (the summary alone), ``tail`` (the
        summary, and the slowest calls), or ``""`` where that is not known."""
        return self._metadata.mode

    @property
    def job(self) -> str:
        """The batch system's name for the job, or ``""``."""
        return self._metadata.job

    @property
    def user(self) -> str:
        """Who ran it: a name, or where it has none the number of the user; ``""`` where that is not known."""
        return self._metadata.user

    @property
    def mpi_version(self) -> str:
        """The version of the MPI library, as it tells it itself; ``""``: no MPI, or not known."""
        return self._metadata.mpi

    @property
    def libc_version(self) -> str:
        """The version of the C library, or ``""``."""
        return self._metadata.libc

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables of the first task that bear on I/O (docs/reference/formats/spool.md)."""
        return self._metadata.environment

    @property
    def simulated(self) -> str:
        """On which model, with which faults and seed, if no call was really made; else ``""``."""
        said = {name: self.environment.get(_SIMULATED + name, "") for name in ("MODEL", "FAULTS", "SEED")}
        if not said["MODEL"]:
            return ""
        faults = f"with the faults {said['FAULTS']}" if said["FAULTS"] else "without a fault"
        return f"on the model {said['MODEL']} {faults}, seed {said['SEED']}: no call was really made"

    @property
    def mounts(self) -> dict[str, tuple[Mount, ...]]:
        """File systems of each node, by its name."""
        return self._metadata.mounts

    @property
    def file_facts(self) -> dict[str, dict[str, str]]:
        """What is known about files beside their paths, such as MPI's hints (``hint.*``), by path."""
        return self._metadata.file_facts

    def filesystem_of(self, path: str) -> Mount | None:
        """The file system on which a file lies; None: not known.

        Nodes may have different mounts at one path: the first node that recorded its mounts answers.
        """
        point = self.file_facts.get(path, {}).get("mount")
        for table in self.mounts.values():
            # Of those at one point the last hides the others.
            found = [mount for mount in table if (mount.point == point if point else mount.holds(path))]
            if found:
                return max(reversed(found), key=lambda mount: len(mount.point))
        return None

    def striping_of(self, path: str) -> Striping | None:
        """How Lustre stripes a file; None: it does not lie on Lustre, or its layout cannot be read."""
        layout = self.file_facts.get(path, {}).get("lustre.lov")
        return decode_layout(layout) if layout else None

    @property
    def program(self) -> str:
        """The program of the first task, an absolute path, or ``""``."""
        return next((process.program for process in self._by_weight() if process.program), "")

    @property
    def command(self) -> tuple[str, ...]:
        """The arguments of the first task's program."""
        return next((process.command for process in self._by_weight() if process.command), ())

    def _by_weight(self) -> list[Process]:
        """Processes, those with a rank and with recorded calls first."""
        return sorted(self.processes, key=lambda process: (process.rank < 0, process.threads == 0))

    def __repr__(self) -> str:
        return f"Run {self.path}: {self._in_one_line()}" + "".join(f"\n  note: {note}" for note in self.notes)

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        return (
            f"<p><b>{html.escape(os.path.basename(self.program) or self.path)}</b>: "
            f"{html.escape(self._in_one_line())}<br><code>{html.escape(self.path)}</code></p>"
            + (f"<ul>{notes}</ul>" if notes else "")
        )

    def _in_one_line(self) -> str:
        command = " ".join(self.command) or self.program or "unknown program"
        if len(command) > 80:
            command = command[:77] + "..."
        on = self.hosts[0] if len(self.hosts) == 1 else f"{len(self.hosts) or 'unknown'} nodes"
        tasks = f"{self.tasks} task{'s' * (self.tasks != 1)}"
        return f"{command}, {tasks} on {on}, {self.start:%Y-%m-%d %H:%M:%S} UTC"
