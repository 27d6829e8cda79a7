"""Plans: all calls of all tasks, expanded from a pattern block by block."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.workloads.patterns.cross_task_checks import Checks
from ensembles.workloads.patterns.instantiate import Expansion, Step
from ensembles.workloads.patterns.pattern import FileNames, Pattern, parameter_values
from ensembles.workloads.patterns.task_block import ROW, Block, block_of

VERSION = 2

_MOST_ROWS_KEPT = 1 << 20


@dataclass(frozen=True)
class Plan:
    """The calls of all tasks; large plans are expanded again, block by block, for each use."""

    parameters: Mapping[str, int]  # Values of the parameters of the pattern
    tasks: int
    tasks_per_node: int
    # Layer and name of the calls, such as ``"posix.write"``; rows contain their indices
    calls: tuple[str, ...]
    files: FileNames  # Names of the files; rows contain their indices
    steps: tuple[Step, ...]
    hints: Mapping[str, str]  # For MPI-IO and HDF5
    operations: int  # Number of all rows; a call of several boxes has a row for each
    counts: np.ndarray  # int64, shape (tasks,): Number of rows of each task
    _ends: np.ndarray = field(repr=False)
    _expansion: Expansion = field(repr=False)
    _kept: tuple[Block, ...] = field(repr=False)

    def blocks(self) -> Iterator[Block]:
        """Yield all calls in the order of the tasks, block by block."""
        if self._kept or not self.operations:
            yield from self._kept
        else:
            yield from (block_of(self._expansion, first, end) for first, end in self._expansion.spans())

    def column(self, name: str) -> np.ndarray:
        """Return one column of all rows, by its name in `ROW` or ``"rank"``: shape (operations,)."""
        if name == "rank":
            return np.repeat(np.arange(self.tasks), self.counts)
        number = ROW.index(name)
        return np.concatenate([block.rows[:, number] for block in self.blocks()])

    def needed_bytes(self) -> int:
        """Return the space in bytes that the files need without holes, the sum of their ends."""
        return sum(self._ends.tolist())

    def write(self, path: Path, directory: Path, seed: int) -> None:
        """Write the plan for ``ensio-replay`` and ``ensio-simulate`` (layout: testbed/replay/plan.h)."""
        write_plan(
            path,
            seed=seed,
            tasks=self.tasks,
            tasks_per_node=self.tasks_per_node,
            calls=self.calls,
            files=[str(directory / name) for name in self.files],
            hints=self.hints,
            steps=[f"{step.phase} {step.repetition}" for step in self.steps],
            counts=self.counts,
            rows=(block.rows for block in self.blocks()),
        )


def write_plan(
    path: Path,
    *,
    seed: int,
    tasks: int,
    tasks_per_node: int,
    calls: Sequence[str],
    files: Sequence[str],
    hints: Mapping[str, str],
    steps: Sequence[str],
    counts: np.ndarray,
    rows: Iterable[np.ndarray],
) -> None:
    """Write a plan for ``ensio-replay`` and ``ensio-simulate`` (layout: testbed/replay/plan.h)."""
    operations = int(counts.sum())
    lines = [f"seed {seed}", f"tasks {tasks}", f"tasks_per_node {tasks_per_node}"]
    lines += [f"calls {len(calls)}", *calls, f"files {len(files)}", *files]
    lines += [f"hints {len(hints)}", *(f"{key} {value}" for key, value in hints.items())]
    lines += [f"steps {len(steps)}", *steps, f"operations {operations}"]
    text = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
    try:
        with path.open("wb") as file:
            file.write(b"ensio-plan %d %d\n" % (VERSION, len(text)) + text)
            file.write(counts.data)
            for block in rows:
                file.write(block.data)
    except OSError as error:
        raise EnsioError(
            f"{path}: the plan of {72 * operations:,} bytes cannot be written: {error.strerror}"
        ) from None


def expand(
    pattern: Pattern, overrides: Mapping[str, int | str] | None = None, *, paper: bool = False
) -> Plan:
    """Expand a pattern, with its parameters or the published ones, and check that calls are consistent."""
    parameters = parameter_values(pattern, overrides, paper)
    expansion = Expansion(pattern, parameters)
    checks = Checks(expansion)
    counts, kept = [], []
    for first, end in expansion.spans():
        block = block_of(expansion, first, end)
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
