"""Patterns: what an application's I/O looks like, as data (format: testbed/patterns/README.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ensembles.patterns.calls import CallKind
from ensembles.patterns.expressions import Expression

REPETITION = "repetition"
PHASE = "phase"

SHRINK = "shrink"
"""The parameter by which a pattern's sizes are divided, so that one number scales all of them."""


@dataclass(frozen=True)
class File:
    """Files of a pattern: one for all tasks, one for each, or as many as `count` says.

    Attributes
    ----------
    path : str
        With ``{rank}`` in it: one for each task; with ``{index}``: `count` of them, numbered from 0.
    layer : str
        Whose calls it takes.
    """

    path: str
    layer: str
    count: Expression | None

    @property
    def one_a_task(self) -> bool:
        return "{rank}" in self.path


@dataclass(frozen=True)
class Operation:
    """A call, made `times` times in a row by the tasks for which `when` is not 0.

    Attributes
    ----------
    call : str
        With its layer: ``"posix.write"``.
    file : str or None
        Key of the file.
    times, when : Expression
    values : dict of str to Expression
        What the call needs (`CallKind.needs`), `index`, and `pieces`, `stride`, `planes` and `plane_stride`
        where they are given.
    where : str
        File and line.
    """

    call: str
    kind: CallKind
    file: str | None
    times: Expression
    when: Expression
    values: Mapping[str, Expression]
    where: str


@dataclass(frozen=True)
class Phase:
    """Operations between barriers, one after each ``"repetition"`` or one at the end of the ``"phase"``."""

    name: str
    when: Expression
    repetitions: Expression
    barrier: str
    operations: tuple[Operation, ...]


@dataclass(frozen=True)
class Pattern:
    """A pattern as it was read; `expand` makes the calls of every task from it.

    Attributes
    ----------
    name : str
        The file's name without its ending.
    path : Path
        Where it was read.
    parameters : dict of str to Expression
        In the order of the file: each may use those before it.
    paper : dict of str to Expression
        Those that are others in the publication that the pattern is taken from.
    hints : dict of str to str
        For MPI-IO and HDF5; ``{NAME}`` stands for a parameter's value.
    """

    name: str
    path: Path
    title: str
    parameters: Mapping[str, Expression]
    paper: Mapping[str, Expression]
    hints: Mapping[str, str]
    files: Mapping[str, File]
    phases: tuple[Phase, ...]

    @property
    def layers(self) -> frozenset[str]:
        """The layers whose calls it makes."""
        return frozenset(
            operation.call.partition(".")[0] for phase in self.phases for operation in phase.operations
        )
