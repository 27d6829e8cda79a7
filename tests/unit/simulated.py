"""Programs whose phases are known: ranks that do I/O, and wait for each other or not."""

from __future__ import annotations

import numpy as np
from builders import EventRows, make_events

from ensembles.model.events import Call, Events

CALLS = (
    Call("pread", "posix", "read"),
    Call("pwrite", "posix", "write"),
    Call("open", "posix", "open"),
    Call("lseek", "posix", "seek"),
    Call("MPI_Barrier", "mpisync", "wait"),
    Call("MPI_Allreduce", "mpisync", "wait"),
    Call("MPI_Bcast", "mpisync", "wait"),
    Call("MPI_Init", "mpisync", "wait"),
    Call("MPI_Finalize", "mpisync", "wait"),
    Call("MPI_Allgather", "mpisync", "wait"),
    Call("MPI_Waitall", "mpisync", "wait"),
    Call("MPI_Isend", "mpimsg", "wait"),
)
NUMBERS = {call.name: number for number, call in enumerate(CALLS)}
FILES = ["", "/scratch/a", "/scratch/b"]


class Program:
    """Ranks at work, each at its own time; what they do is recorded with the phase it truly belongs to (-1:
    none)."""

    def __init__(self, ranks: int, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.now = self.rng.integers(0, 1_000_000, ranks)
        self.phase = 1
        self._rows = EventRows()

    @property
    def ranks(self) -> int:
        return len(self.now)

    def call(self, name, duration_ns, who=None, file=1, size=1 << 20, phase=None, after=True):
        """Every rank (of `who`) makes a call; `duration_ns` is a number or one for each of them."""
        who = np.arange(self.ranks) if who is None else np.asarray(who)
        duration = np.broadcast_to(duration_ns, who.shape).astype(np.int64)
        self._rows.add(
            rank=who,
            start=self.now[who],
            duration=duration,
            call=NUMBERS[name],
            file=file if name in ("pread", "pwrite", "open") else 0,
            offset=-1,
            requested=size,
            moved=size,
            phase=self.phase if phase is None else phase,
        )
        if after:
            self.now[who] += duration

    def io(self, name, calls, who=None, typical_ns=5_000_000, spread=0.6, think_ns=2_000, **more):
        """Calls one after the other, with log-normal durations."""
        who = np.arange(self.ranks) if who is None else np.asarray(who)
        for _ in range(calls):
            self.now[who] += 1 + self.rng.exponential(think_ns, len(who)).astype(np.int64)
            self.call(name, typical_ns * self.rng.lognormal(0, spread, len(who)), who, **more)

    def meet(self, name="MPI_Barrier", who=None, recorded=True, size=0, late_ns=50_000, ends_phase=True):
        """All ranks (of `who`) wait for each other; they leave within `late_ns`."""
        who = np.arange(self.ranks) if who is None else np.asarray(who)
        entry = self.now[who] + 500
        leave = entry.max() + 2_000 + self.rng.integers(0, late_ns, len(who))
        self.now[who] = entry
        if recorded:
            self.call(name, leave - entry, who, size=size)
        self.now[who] = leave
        self.phase += ends_phase

    def compute(self, typical_ns, spread=0.0):
        """Time without I/O."""
        self.now += (typical_ns * self.rng.lognormal(0, spread, self.ranks)).astype(np.int64)

    def recorded(self) -> tuple[Events, np.ndarray]:
        """The events, by rank and start, and the phase of each."""
        columns = self._rows.columns()
        phase = columns.pop("phase")
        order = np.lexsort((columns["start"], columns["rank"]))
        return make_events(columns, CALLS, FILES, order_by="start"), phase[order]


def ior_like(ranks, seed, phases=6, calls=1, recorded=False, **io):
    """Phases of writes, then of reads, with a barrier between any two."""
    program = Program(ranks, seed)
    for number in range(phases):
        program.io("pwrite" if 2 * number < phases else "pread", calls, **io)
        program.meet(recorded=recorded)
    return program.recorded()
