"""Plans: every call of every task, expanded from a pattern block by block."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.workloads.patterns.cross_task_checks import Checks
from ensembles.workloads.patterns.instantiate import Expansion, Step
from ensembles.workloads.patterns.pattern import FileNames, Pattern, parameter_values
from ensembles.workloads.patterns.task_block import ROW, Block

VERSION = 2

_MOST_ROWS_KEPT = 1 << 20


@dataclass(frozen=True)
class Plan:
    """The calls of all tasks, which are made again, block by block, whenever they are asked for.

    Attributes
    ----------
    parameters : dict of str to int
        The values the pattern was expanded with.
    tasks, tasks_per_node : int
    calls : tuple of str
        Names of the calls with their layer, such as ``"posix.write"``, by the numbers in the rows.
    files : sequence of str
        Names of the files, by the numbers in the rows.
    steps : tuple of Step
    hints : dict of str to str
        For MPI-IO and HDF5.
    operations : int
        Number of all calls.
    counts : ndarray of int64, shape (tasks,)
        Calls of each task.
    """

    parameters: Mapping[str, int]
    tasks: int
    tasks_per_node: int
    calls: tuple[str, ...]
    files: FileNames
    steps: tuple[Step, ...]
    hints: Mapping[str, str]
    operations: int
    counts: np.ndarray
    _ends: np.ndarray = field(repr=False)
    _expansion: Expansion = field(repr=False)
    _kept: tuple[Block, ...] = field(repr=False)

    def blocks(self) -> Iterator[Block]:
        """All calls, in the order of the tasks, never all of them in memory."""
        if self._kept or not self.operations:
            yield from self._kept
        else:
            yield from (self._expansion.block(first, end) for first, end in self._expansion.spans())

    def column(self, name: str) -> np.ndarray:
        """One column of all rows, or ``"rank"``, shape (operations,): for plans that are not large."""
        if name == "rank":
            return np.repeat(np.arange(self.tasks), self.counts)
        number = ROW.index(name)
        return np.concatenate([block.rows[:, number] for block in self.blocks()])

    def needed_bytes(self) -> int:
        """Bytes of the file system that the files need, had they no holes: the sum of their ends."""
        return sum(self._ends.tolist())

    def write(self, path: Path, directory: Path, seed: int) -> None:
        """Writes the plan for ``ensio-replay`` and ``ensio-simulate`` (layout: testbed/replay/plan.h).

        Parameters
        ----------
        path : Path
            The plan file.
        directory : Path
            Absolute; the pattern's files will be in it.
        seed : int
            From 0 to 2**64 - 1: what the content of the files is made from.

        Raises
        ------
        EnsioError
            If the plan cannot be written there.
        """
        lines = [f"seed {seed}", f"tasks {self.tasks}", f"tasks_per_node {self.tasks_per_node}"]
        lines += [f"calls {len(self.calls)}", *self.calls]
        lines += [f"files {len(self.files)}", *(str(directory / name) for name in self.files)]
        lines += [f"hints {len(self.hints)}", *(f"{key} {value}" for key, value in self.hints.items())]
        lines += [f"steps {len(self.steps)}", *(f"{step.phase} {step.repetition}" for step in self.steps)]
        lines.append(f"operations {self.operations}")
        text = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
        try:
            with path.open("wb") as file:
                file.write(b"ensio-plan %d %d\n" % (VERSION, len(text)) + text)
                file.write(self.counts.data)
                for block in self.blocks():
                    file.write(block.rows.data)
        except OSError as error:
            raise EnsioError(
                f"{path}: the plan, of {72 * self.operations} bytes, cannot be written: {error.strerror}"
            ) from None


def expand(
    pattern: Pattern, overrides: Mapping[str, int | str] | None = None, *, paper: bool = False
) -> Plan:
    """Makes the calls of every task from a pattern, and checks that they go together.

    Parameters
    ----------
    pattern : Pattern
    overrides : mapping of str to int or str, optional
        Values of parameters in place of the pattern's own, numbers or expressions.
    paper : bool
        Take the publication's parameters where they are others.

    Raises
    ------
    EnsioError
        If a number makes no sense: no tasks, a negative offset, a size below 1 byte, a call on a file that is
        not open, tasks that write to the same bytes within a phase, or a collective call that not every task
        makes.
    """
    parameters = parameter_values(pattern, overrides, paper)
    expansion = Expansion(pattern, parameters)
    checks = Checks(expansion)
    counts, kept = [], []
    for first, end in expansion.spans():
        block = expansion.block(first, end)
        checks.add(block)
        counts.append(block.counts)
        if checks.operations <= _MOST_ROWS_KEPT:
            kept.append(block)
        else:
            kept.clear()
    checks.finish()
    return Plan(
        parameters=parameters,
        tasks=expansion.tasks,
        tasks_per_node=parameters.get("tasks_per_node", expansion.tasks),
        calls=expansion.calls,
        files=expansion.files,
        steps=expansion.steps,
        hints={key: _filled(text, parameters) for key, text in pattern.hints.items()},
        operations=checks.operations,
        counts=np.concatenate(counts),
        _ends=checks.ends,
        _expansion=expansion,
        _kept=tuple(kept),
    )


def _filled(text: str, parameters: Mapping[str, int]) -> str:
    return re.sub(r"\{([^{}]*)\}", lambda found: str(parameters[found[1]]), text)
