"""Plans: every call of every task, expanded from a pattern."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ensembles.errors import EnsioError
from ensembles.patterns.expressions import Expression, Number, parse
from ensembles.patterns.overlap import refuse_overlaps
from ensembles.patterns.pattern import PHASE, Operation, Pattern, Phase

MOST_TASKS = 1 << 24
MOST_OPERATIONS = 1 << 28

_MOST_BYTES = (1 << 63) - 1


@dataclass(frozen=True)
class Step:
    """What the tasks do between two barriers: a repetition of a phase, or all of it (repetition 0)."""

    phase: str
    repetition: int


@dataclass(frozen=True)
class Plan:
    """The calls of all tasks; columns have shape (n,), sorted by task, each task's in its order.

    Attributes
    ----------
    tasks : int
    parameters : dict of str to int
        The values the pattern was expanded with.
    calls, files, steps : tuple
        Names of the calls, names of the files, and steps, which the columns index.
    rank, step, call, file : ndarray of int64
    offset : ndarray of int64
        Bytes from the start of the file, also of calls that use the file's position.
    size : ndarray of int64
        Bytes to move, 0 of calls that move none.
    """

    tasks: int
    parameters: Mapping[str, int]
    calls: tuple[str, ...]
    files: tuple[str, ...]
    steps: tuple[Step, ...]
    rank: np.ndarray
    step: np.ndarray
    call: np.ndarray
    file: np.ndarray
    offset: np.ndarray
    size: np.ndarray

    def needed_bytes(self) -> int:
        """Bytes of the file system that the files need, had they no holes: the sum of their ends."""
        ends = np.zeros(len(self.files), dtype=np.int64)
        moves = self.size > 0
        np.maximum.at(ends, self.file[moves], self.offset[moves] + self.size[moves])
        return sum(int(end) for end in ends)

    def write(self, path: Path, directory: Path, seed: int) -> None:
        """Writes the plan for ``ensio-replay`` (layout: testbed/replay/plan.h).

        Parameters
        ----------
        path : Path
            The plan file.
        directory : Path
            Absolute; the pattern's files will be in it.
        seed : int
            From 0 to 2**64 - 1: what the content of the files is made from.
        """
        sections = [
            ("calls", self.calls),
            ("files", [str(directory / name) for name in self.files]),
            ("steps", [f"{step.phase} {step.repetition}" for step in self.steps]),
        ]
        lines = [f"seed {seed}", f"tasks {self.tasks}"]
        for key, entries in sections:
            lines += [f"{key} {len(entries)}", *entries]
        lines.append(f"operations {len(self.rank)}")
        text = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
        counts = np.bincount(self.rank, minlength=self.tasks).astype(np.int64)
        operations = np.column_stack([self.step, self.call, self.file, self.offset, self.size])
        with path.open("wb") as file:
            file.write(b"ensio-plan 1 %d\n" % len(text) + text)
            counts.tofile(file)
            operations.tofile(file)


def expand(pattern: Pattern, overrides: Mapping[str, int] | None = None) -> Plan:
    """Makes the calls of every task from a pattern.

    Parameters
    ----------
    pattern : Pattern
    overrides : mapping of str to int, optional
        Values of parameters in place of the pattern's own.

    Raises
    ------
    EnsioError
        If a number makes no sense: no tasks, a negative offset, a size below 1 byte, a call on a file that is
        not open, or tasks that write to the same bytes within a phase.
    """
    parameters = _parameters(pattern, overrides or {})
    return _Expansion(pattern, parameters).plan()


def _parameters(pattern: Pattern, overrides: Mapping[str, int]) -> dict[str, int]:
    for name in overrides:
        if name not in pattern.parameters:
            raise EnsioError(
                f"{pattern.path}: has no parameter {name}: it has {', '.join(pattern.parameters)}"
            )
    values: dict[str, int] = {}
    for name, expression in pattern.parameters.items():
        if name in overrides:
            expression = parse(overrides[name], f"{pattern.path}: {name} of the command line")
        values[name] = expression.evaluate_whole(values)
        if values[name] < 1:
            raise EnsioError(f"{expression.where}: {name} is {values[name]}, it must be at least 1")
    if values["tasks"] > MOST_TASKS:
        raise EnsioError(
            f"{pattern.path}: {values['tasks']} tasks are more than the {MOST_TASKS} that can be planned"
        )
    return values


class _Expansion:
    """The state of the files of every task while the phases are gone through, and the calls so far."""

    def __init__(self, pattern: Pattern, parameters: dict[str, int]) -> None:
        self.pattern = pattern
        self.parameters = parameters
        self.tasks = parameters["tasks"]
        self.ranks = np.arange(self.tasks, dtype=np.int64)
        self.calls: dict[str, int] = {}
        self.files: list[str] = []
        self.first_file: dict[str, int] = {}
        for key, file in pattern.files.items():
            self.first_file[key] = len(self.files)
            copies = 1 if file.shared else self.tasks
            self.files += [file.name.replace("{rank}", str(rank)) for rank in range(copies)]
        if len(set(self.files)) < len(self.files):
            raise EnsioError(f"{pattern.path}: two of the files have the same name")
        self.is_open = {key: np.zeros(self.tasks, dtype=bool) for key in pattern.files}
        self.position = {key: np.zeros(self.tasks, dtype=np.int64) for key in pattern.files}
        self.steps: list[Step] = []
        self.operations = 0

    def plan(self) -> Plan:
        blocks = [block for phase in self.pattern.phases for block in self._phase(phase)]
        rank, step, call, file, offset, size = np.concatenate(blocks, axis=1)
        order = np.argsort(rank, kind="stable")
        return Plan(
            tasks=self.tasks,
            parameters=self.parameters,
            calls=tuple(self.calls),
            files=tuple(self.files),
            steps=tuple(self.steps),
            rank=rank[order],
            step=step[order],
            call=call[order],
            file=file[order],
            offset=offset[order],
            size=size[order],
        )

    def _phase(self, phase: Phase) -> list[np.ndarray]:
        blocks: list[np.ndarray] = []
        written: list[np.ndarray] = []
        repetitions = _count(phase.repetitions, self.parameters, "repetitions")
        self._refuse_too_many(phase.repetitions.where, repetitions)
        for repetition in range(repetitions):
            if repetition == 0 or phase.barrier != PHASE:
                self.steps.append(Step(phase.name, repetition))
            for operation in phase.operations:
                for block in self._operation(operation, repetition):
                    blocks.append(block)
                    if operation.kind.writes:
                        written.append(block)
        if written:
            rank, _, _, file, offset, size = np.concatenate(written, axis=1)
            refuse_overlaps(rank, file, offset, size, self.files, f"{self.pattern.path}: phase {phase.name}")
        return blocks

    def _operation(self, operation: Operation, repetition: int) -> Iterator[np.ndarray]:
        """The calls of one operation in one repetition: blocks of shape (6, tasks that make it)."""
        names: dict[str, Number] = {**self.parameters, "repetition": repetition}
        times = _count(operation.times, names, "times")
        self._refuse_too_many(operation.where, times * self.tasks)
        names["rank"] = self.ranks
        for call in range(times):
            names["call"] = call
            makes = self._column(operation.when, names) != 0
            yield self._call(operation, names, self.ranks[makes])

    def _call(self, operation: Operation, names: Mapping[str, Number], ranks: np.ndarray) -> np.ndarray:
        kind, key = operation.kind, operation.file
        is_open, position = self.is_open[key], self.position[key]
        self._follow_open(operation, is_open, position, ranks)
        offset, size = position[ranks], np.zeros_like(ranks)
        if operation.offset:
            offset = self._column(operation.offset, names)[ranks]
            _refuse_where(offset < 0, offset, ranks, operation.offset, "the offset is below 0")
        if operation.size:
            size = self._column(operation.size, names)[ranks]
            _refuse_where(size < 1, size, ranks, operation.size, "the size is below 1 byte")
            _refuse_where(
                offset > _MOST_BYTES - size,
                size,
                ranks,
                operation.size,
                "the file would have 2**63 bytes or more",
            )
        if operation.call == "lseek":
            position[ranks] = offset
        elif kind.moves_position:
            position[ranks] = offset + size
        file = self.first_file[key] + (0 if self.pattern.files[key].shared else ranks)
        columns = (
            ranks,
            len(self.steps) - 1,
            self.calls.setdefault(operation.call, len(self.calls)),
            file,
            offset,
            size,
        )
        return np.stack(np.broadcast_arrays(*(np.asarray(column, dtype=np.int64) for column in columns)))

    def _follow_open(
        self, operation: Operation, is_open: np.ndarray, position: np.ndarray, ranks: np.ndarray
    ) -> None:
        opens = operation.call == "open"
        wrong = ranks[is_open[ranks] == opens]
        if wrong.size:
            state = "which is already open" if opens else "which is not open"
            raise EnsioError(
                f"{operation.where}: task {wrong[0]} makes {operation.call} on {operation.file}, "
                f"{state} there"
            )
        if opens:
            is_open[ranks] = True
            position[ranks] = 0
        elif operation.call == "close":
            is_open[ranks] = False

    def _column(self, expression: Expression, names: Mapping[str, Number]) -> np.ndarray:
        return np.broadcast_to(np.asarray(expression.evaluate(names), dtype=np.int64), self.tasks)

    def _refuse_too_many(self, where: str, more: int) -> None:
        self.operations += more
        if self.operations > MOST_OPERATIONS:
            raise EnsioError(f"{where}: the tasks would make more than {MOST_OPERATIONS} calls together")


def _count(expression: Expression, names: Mapping[str, Number], what: str) -> int:
    count = expression.evaluate_whole(names)
    if count < 1:
        raise EnsioError(f'{expression.where}: "{expression.text}": {what} is {count}, it must be at least 1')
    return count


def _refuse_where(
    wrong: np.ndarray, value: np.ndarray, ranks: np.ndarray, expression: Expression, what: str
) -> None:
    if wrong.any():
        first = int(np.argmax(wrong))
        raise EnsioError(
            f'{expression.where}: "{expression.text}" is {value[first]} for task {ranks[first]}: {what}'
        )
