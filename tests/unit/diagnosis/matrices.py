"""Programs that write, read and write, and read matrices, as MADbench does, with a read-ahead that fails or
not.

Their durations are drawn step by step, all tasks at once, from what is said about the file system: so the
truth is known, and nothing of it comes from the code that is tested.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from builders import EventRows, make_events
from spool_writer import SpoolContent, write_spool

from ensembles.model.c_layout import EVENT
from ensembles.model.events import Call, Events

CALLS = (
    Call("unknown", "posix", "meta"),
    Call("read", "posix", "read"),
    Call("write", "posix", "write"),
    Call("lseek", "posix", "seek"),
    Call("MPI_File_read_at", "mpiio", "read"),
    Call("MPI_Barrier", "mpisync", "wait"),
    Call("pread", "posix", "read"),
    Call("fread", "stdio", "read"),
)
NUMBERS = {call.name: number for number, call in enumerate(CALLS)}
MIB = 1 << 20


@dataclass
class FileSystem:
    """How long calls take.

    Attributes
    ----------
    read_s_per_mib, write_s_per_mib : float
    noise : float
        Sigma of the logarithm of a call's own noise.
    shared_noise : float
        The same of what befalls all tasks in the same step.
    node_noise : float
        Of each task, for the whole run.
    heavy : float
        Share of calls that take ten times as long.
    pressure : float
        How many times longer reads take while writes are in the cache.
    drift_per_s : float
        Growth of the logarithm with time, up to 5.
    bursts : list of (float, float, float)
        Begin and end, s, and by how much everything is slower within.
    fault : float
        Strength of the read-ahead that fails: a read at position p of a stride takes
        1 + fault * growth(p - 3) times as long, if writes are in the cache.
    saturates : int
        Reads after which the window grows no more.
    cliff_bytes : float
        Of the cache of a task: beyond that, writes take 20 times as long, and reads `cliff_reads` times.
    """

    read_s_per_mib: float = 0.03
    write_s_per_mib: float = 0.02
    noise: float = 0.15
    shared_noise: float = 0.05
    node_noise: float = 0.05
    heavy: float = 0.0
    pressure: float = 1.0
    drift_per_s: float = 0.0
    bursts: list[tuple[float, float, float]] = field(default_factory=list)
    fault: float = 0.0
    saturates: int = 64
    cliff_bytes: float = float("inf")
    cliff_reads: float = 1.0

    def but(self, **changes):
        return replace(self, **changes)


class Program:
    """Tasks at work; `events` are their calls."""

    def __init__(self, tasks: int, system: FileSystem, seed: int = 0, threads: int = 1) -> None:
        self.rng = np.random.default_rng(seed)
        self.tasks, self.system, self.threads = tasks, system, threads
        self.now_s = self.rng.uniform(0, 1e-3, tasks)
        self.of_task = np.exp(system.node_noise * self.rng.standard_normal(tasks))
        self.dirty = np.zeros(tasks)
        self.slow_s = 0.0  # by the fault, all tasks together
        self._rows = EventRows()

    def call(
        self, name, offset, size, factor=1.0, file=1, thread=0, depth=0, carried=0, after=True, time_s=None
    ):
        """All tasks make a call."""
        system = self.system
        reads = CALLS[NUMBERS[name]].op == "read"
        if time_s is None:
            usual = (system.read_s_per_mib if reads else system.write_s_per_mib) * size / MIB
            noise = np.exp(system.noise * self.rng.standard_normal(self.tasks))
            common = np.exp(system.shared_noise * self.rng.standard_normal())
            heavy = np.where(self.rng.random(self.tasks) < system.heavy, 10.0, 1.0)
            busy = np.ones(self.tasks)
            for begin, end, by in system.bursts:
                busy = np.where((begin <= self.now_s) & (self.now_s < end), busy * by, busy)
            beyond = system.cliff_reads if reads else 20
            busy = np.where(self.dirty > system.cliff_bytes, busy * beyond, busy)
            drift = np.exp(np.minimum(system.drift_per_s * self.now_s, 5.0))
            time_s = usual * noise * common * heavy * busy * drift * self.of_task
            self.slow_s += float(np.sum(time_s * (factor - 1)))
            time_s = time_s * factor
        self._row(name, offset, size, time_s, file, thread, depth, carried)
        self.dirty += 0 if reads else size
        if after:
            self.now_s = self.now_s + time_s + self.rng.exponential(2e-4, self.tasks)
        return time_s

    def _row(self, name, offset, size, time_s, file, thread, depth, carried):
        self._rows.add(
            rank=np.arange(self.tasks),
            thread=thread,
            call=NUMBERS[name],
            depth=depth,
            carried=carried,
            file=file,
            offset=offset,
            requested=size,
            moved=size,
            start=np.rint(self.now_s * 1e9).astype(np.int64),
            duration=np.maximum(np.rint(np.broadcast_to(time_s, self.tasks) * 1e9), 1).astype(np.int64),
        )

    def barrier(self):
        """All wait for the slowest."""
        time_s = self.now_s.max() - self.now_s + 1e-5
        self._row("MPI_Barrier", -1, 0, time_s, 0, 0, 0, 0)
        self.now_s = self.now_s + time_s + self.rng.exponential(1e-5, self.tasks)

    def go_on_as(self, other: Program, pause_s: float) -> None:
        """All calls of another program too, after a pause."""
        columns = other._rows.columns()
        shift_s = self.now_s.max() + pause_s
        self._rows.add(**columns | {"start": columns["start"] + int(shift_s * 1e9)})

    @property
    def events(self) -> Events:
        columns = self._rows.columns()
        files = ["", *(f"/scratch/matrices.{number}" for number in range(1, int(columns["file"].max()) + 1))]
        return make_events(columns, CALLS, files, order_by="end")


@dataclass
class Matrices:
    """The shape of the program.

    Attributes
    ----------
    count : int
        Matrices a task: calls of each kind in a phase.
    size_bytes, gap_bytes : int
    own_file : bool
        A file for each task, not one of all.
    head_reads : int
        The middle phase begins with so many reads, and ends with as many writes.
    phases : str
        w: writes; m: reads and writes; r: reads. The reads of each phase begin at the first matrix.
    layer : str
        "posix", "mpiio" (with the POSIX calls inside), "stdio".
    pieces : int
        POSIX calls that a read is cut into.
    lseek : bool
        Before each read.
    lanes : str
        "one" thread, "each" thread has its own matrices, "turns": threads take turns on one stream.
    """

    count: int = 8
    size_bytes: int = 300 * MIB
    gap_bytes: int = MIB // 3
    own_file: bool = False
    head_reads: int = 2
    phases: str = "wmr"
    layer: str = "posix"
    pieces: int = 1
    lseek: bool = True
    lanes: str = "one"
    barriers: bool = True


def run_matrices(shape: Matrices, tasks: int, system: FileSystem, seed: int = 0) -> Program:
    """Run the program."""
    program = Program(tasks, system, seed)
    stride = shape.size_bytes + shape.gap_bytes
    rank = np.arange(tasks)
    file = rank + 1 if shape.own_file else 1
    first = np.zeros(tasks, np.int64) if shape.own_file else rank * shape.count * stride

    def lane(k):
        return k % 2 if shape.lanes == "turns" else 0

    def read(k, in_writes):
        factor = 1.0
        if in_writes and k >= max(shape.head_reads, 1):
            factor *= system.pressure
        if in_writes and k >= 3 and shape.gap_bytes and system.fault:
            factor *= 1 + system.fault * min(k - 2, system.saturates)
        offset = first + k * stride
        if shape.lseek and shape.layer == "posix":
            program.call("lseek", offset, 0, time_s=np.full(tasks, 1e-6), file=file, thread=lane(k))
        if shape.layer == "posix" and shape.pieces == 1:
            program.call("read", offset, shape.size_bytes, factor, file, lane(k))
            return
        if shape.layer == "stdio":
            program.call("fread", offset, shape.size_bytes, factor, file)
            return
        begin, piece = program.now_s.copy(), shape.size_bytes // shape.pieces
        outer = shape.layer == "mpiio"
        for number in range(shape.pieces):
            program.call(
                "pread", offset + number * piece, piece, factor, file, depth=int(outer), carried=int(outer)
            )
        if outer:
            after, program.now_s = program.now_s, begin - 1e-5
            whole_s = after - begin + 2e-5
            program.call("MPI_File_read_at", offset, shape.size_bytes, file=file, time_s=whole_s, after=False)
            program.now_s = after + 2e-5

    def write(k):
        program.call("write", first + k * stride, shape.size_bytes, file=file)

    for phase in shape.phases:
        if phase == "w":
            for k in range(shape.count):
                write(k)
        elif phase == "r":
            for k in range(shape.count):
                read(k, False)
        else:
            lag = max(shape.head_reads - 1, 0)
            for k in range(shape.count + lag):
                if k < shape.count:
                    read(k, True)
                if k >= lag:
                    write(k - lag)
        if shape.barriers:
            program.barrier()
    return program


def write_run(program: Program, folder: Path, mode: str = "trace", offsets: bool = True) -> Path:
    """Write a run directory with a spool a task; `offsets`: the calls tell their places."""
    events = program.events
    folder.mkdir(parents=True)
    names = {number: call for number, call in enumerate(CALLS) if number}
    for rank in range(program.tasks):
        mine = events[events.rank == rank]
        lanes = []
        for thread in range(int(mine.thread.max()) + 1):
            of_thread = mine[mine.thread == thread]
            rows = np.zeros(len(of_thread), EVENT.dtype)
            for name in ("call", "file", "offset", "requested", "moved", "start", "duration", "depth"):
                rows[name] = getattr(of_thread, name)
            if not offsets:
                rows["offset"] = -1
            lanes.append(rows)
        content = SpoolContent(
            lanes,
            {number: path for number, path in enumerate(events.files) if number},
            names,
            properties={"mode": mode, "host": "node0"},
            head={"rank": rank, "tasks": program.tasks, "pid": rank + 9},
        )
        write_spool(folder / f"{rank}.spool", content)
    return folder
