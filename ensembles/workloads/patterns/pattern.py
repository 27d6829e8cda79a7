"""Patterns: the I/O of an application as data (docs/reference/patterns.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import overload

from ensembles.model.errors import EnsioError
from ensembles.model.units import MOST_TASKS
from ensembles.workloads.patterns.calls import CallKind
from ensembles.workloads.patterns.expressions import Expression, Number, parse


def parameter_values(
    pattern: Pattern, overrides: Mapping[str, int | str] | None = None, paper: bool = False
) -> dict[str, int]:
    """Compute the values of the parameters; `overrides` may use the parameters before them."""
    overrides = overrides or {}
    for name in overrides:
        if name not in pattern.parameters:
            raise EnsioError(
                f"{pattern.path}: there is no parameter {name}: choose from {', '.join(pattern.parameters)}"
            )
    values: dict[str, int] = {}
    for name, expression in pattern.parameters.items():
        if name in overrides:
            expression = parse(overrides[name], f"{pattern.path}: {name} of the command line")
        elif paper and name in pattern.paper:
            expression = pattern.paper[name]
        values[name] = expression.evaluate_whole(values)
        least = 1 if name in _NOT_ZERO or name.endswith("_bytes") else 0
        if values[name] < least:
            raise EnsioError(f"{expression.where}: {name} is {values[name]}, it must be at least {least}")
    if values["tasks"] > MOST_TASKS:
        raise EnsioError(f"{pattern.path}: {values['tasks']:,} tasks exceed the maximum of {MOST_TASKS:,}")
    return values


def evaluate_count(expression: Expression, names: Mapping[str, Number], what: str) -> int:
    """Compute the value of an expression for a count."""
    count = expression.evaluate_whole(names)
    if count < 1:
        raise EnsioError(f'{expression.where}: "{expression.text}": {what} is {count}, it must be at least 1')
    return count


REPETITION = "repetition"
PHASE = "phase"

SHRINK = "shrink"
"""Parameter that divides all sizes of a pattern."""

_NOT_ZERO = ("tasks", "tasks_per_node", SHRINK)


@dataclass(frozen=True)
class File:
    """Files of a pattern: one for all tasks, one per task, or `count` files."""

    path: str  # With ``{rank}``: one file per task; with ``{index}``: `count` files, numbered from 0
    layer: str  # Layer of the calls on it
    count: Expression | None

    @property
    def one_a_task(self) -> bool:
        """Whether every task has one of the files."""
        return "{rank}" in self.path


@dataclass(frozen=True)
class Operation:
    """A call that the tasks for which `when` is not 0 make `times` times in a row."""

    call: str  # Layer and name: ``"posix.write"``
    kind: CallKind
    file: str | None  # Key of the file
    times: Expression
    when: Expression
    # Keys that the call needs (`CallKind.needs`), and `index`, `pieces`, `stride`, `planes`, `plane_stride`
    # and `boxes` if they are given
    values: Mapping[str, Expression]
    where: str  # File and line
    # Whether its calls take turns with those of the operation before it: the first of each, then the second
    # of each
    alternates: bool = False


@dataclass(frozen=True)
class Phase:
    """Operations with a barrier after each ``"repetition"``, or one at the end of the ``"phase"``."""

    name: str
    when: Expression
    repetitions: Expression
    barrier: str
    operations: tuple[Operation, ...]


@dataclass(frozen=True)
class Pattern:
    """A pattern as read from its file; `expand` computes the calls of every task."""

    name: str  # Name of the file without its ending
    path: Path  # Its file
    title: str
    parameters: Mapping[str, Expression]  # In the order of the file; each may use those before it
    paper: Mapping[str, Expression]  # Published values that differ from `parameters`
    hints: Mapping[str, str]  # For MPI-IO and HDF5; ``{NAME}`` is replaced by the value of a parameter
    files: Mapping[str, File]
    phases: tuple[Phase, ...]

    @property
    def layers(self) -> frozenset[str]:
        """Layers of its calls."""
        return frozenset(
            operation.call.partition(".")[0] for phase in self.phases for operation in phase.operations
        )


MOST_FILES = 1 << 26
MOST_OPERATIONS = 1 << 28


class FileNames(Sequence[str]):
    """Names of all files in the order of the pattern; files of one template are consecutive.

    `first`, `counts`: number of the first file, and number of files, of each key of the pattern.
    """

    def __init__(self, pattern: Pattern, parameters: Mapping[str, int]) -> None:
        self.first: dict[str, int] = {}
        self.counts: dict[str, int] = {}
        self._paths: list[tuple[str, int]] = []
        self._total = 0
        for key, file in pattern.files.items():
            count = _number_of(file, parameters)
            if self._total + count > MOST_FILES:
                raise EnsioError(f"{pattern.path}: there would be more than {MOST_FILES:,} files")
            self.first[key], self.counts[key] = self._total, count
            self._paths.append((file.path, count))
            self._total += count
        self._refuse_equal_names(pattern)

    def __len__(self) -> int:
        return self._total

    @overload
    def __getitem__(self, number: int) -> str: ...
    @overload
    def __getitem__(self, number: slice) -> list[str]: ...
    def __getitem__(self, number: int | slice) -> str | list[str]:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        if number < 0:
            number += self._total
        for path, count in self._paths:
            if 0 <= number < count:
                return _name(path, number)
            number -= count
        raise IndexError(number)

    def __iter__(self) -> Iterator[str]:
        for path, count in self._paths:
            yield from (_name(path, number) for number in range(count))

    def _refuse_equal_names(self, pattern: Pattern) -> None:
        for position, (path, count) in enumerate(self._paths):
            for other, other_count in self._paths[:position]:
                if _may_meet(path, other) and not {_name(path, i) for i in range(count)}.isdisjoint(
                    _name(other, i) for i in range(other_count)
                ):
                    raise EnsioError(
                        f"{pattern.path}: two of the files have the same name: {path} and {other}"
                    )


def _number_of(file: File, parameters: Mapping[str, int]) -> int:
    if file.count:
        return evaluate_count(file.count, parameters, "count")
    return parameters["tasks"] if file.one_a_task else 1


def _name(path: str, number: int) -> str:
    return path.replace("{rank}", str(number)).replace("{index}", str(number))


def _may_meet(path: str, other: str) -> bool:
    """Whether two templates can give the same name, judged by the text around their numbers."""
    before, _, after = path.replace("{rank}", "{index}").partition("{index}")
    other_before, _, other_after = other.replace("{rank}", "{index}").partition("{index}")
    if "{" not in path + other:
        return path == other
    begins = before.startswith(other_before) or other_before.startswith(before)
    return begins and (after.endswith(other_after) or other_after.endswith(after))
