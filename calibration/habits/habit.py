"""A habit that is planted in a real program, and the runs that it makes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

WAYS = ("relinked", "preloaded")
FLAVOURS = ("openmpi", "mpich")
OWN_PROGRAMS = ("posix_habits", "mpi_habits")
"""Programs of this folder in C, which can be relinked."""


@dataclass(frozen=True)
class Habit:
    """A program with a habit and without it."""

    cause: str  # Id of the finding that names it; ``""``: no finding should
    name: str  # The habit in words, and the twin without it
    program: str  # Program in C of this folder, ``NAME.py`` of this folder, or a command of the system
    # Arguments with the habit. ``{data}`` is a new folder on the disk, ``{slow}`` one on a disk that is
    # throttled, ``{model}`` one under a model of a parallel file system, ``{memory}`` one in memory.
    words: str
    twin: str  # Arguments without the habit
    tasks: int = 0  # Number of tasks of MPI; 0: no MPI
    before: str = ""  # Arguments with which the program prepares its files, without being recorded
    cold: bool = False  # The page cache is emptied before each run
    neighbour: bool = False  # With the habit, another program fills the queue of the throttled disk
    # ways, flavours: How it is recorded, and with which MPI
    ways: tuple[str, ...] = WAYS
    flavours: tuple[str, ...] = FLAVOURS

    @property
    def text(self) -> str:
        """All arguments, as one text."""
        return " ".join((self.words, self.twin, self.before))


@dataclass(frozen=True)
class Planted:
    """One run: a habit, recorded in one way."""

    habit: Habit
    way: str
    flavour: str

    def __str__(self) -> str:
        parts = [self.habit.program.removesuffix(".py"), self.flavour, self.way]
        return f"{self.habit.name} ({', '.join(part for part in parts if part)})"


def runs_of(habits: tuple[Habit, ...]) -> Iterator[Planted]:
    """List the runs of habits: each way and each MPI that can be."""
    for habit in habits:
        ways = habit.ways if habit.program in OWN_PROGRAMS else ("preloaded",)
        for way in ways:
            for flavour in habit.flavours if habit.tasks else ("",):
                yield Planted(habit, way, flavour)
