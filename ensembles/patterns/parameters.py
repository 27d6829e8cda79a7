"""The values of a pattern's parameters."""

from __future__ import annotations

from collections.abc import Mapping

from ensembles.errors import EnsioError
from ensembles.patterns.expressions import Expression, Number, parse
from ensembles.patterns.pattern import SHRINK, Pattern

MOST_TASKS = 1 << 24

_NOT_ZERO = ("tasks", "tasks_per_node", SHRINK)


def parameter_values(
    pattern: Pattern, overrides: Mapping[str, int | str] | None = None, paper: bool = False
) -> dict[str, int]:
    """The values that a pattern is expanded with.

    Parameters
    ----------
    pattern : Pattern
    overrides : mapping of str to int or str, optional
        Values in place of the pattern's own, or expressions of the parameters above them.
    paper : bool
        Take the publication's values where they are others.

    Raises
    ------
    EnsioError
        If there is no such parameter, or a value makes no sense.
    """
    overrides = overrides or {}
    for name in overrides:
        if name not in pattern.parameters:
            raise EnsioError(
                f"{pattern.path}: has no parameter {name}: it has {', '.join(pattern.parameters)}"
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
        raise EnsioError(
            f"{pattern.path}: {values['tasks']} tasks are more than the {MOST_TASKS} that can be planned"
        )
    return values


def count_of(expression: Expression, names: Mapping[str, Number], what: str, least: int = 1) -> int:
    """The value of an expression that counts something.

    Raises
    ------
    EnsioError
        If it is below `least`.
    """
    count = expression.evaluate_whole(names)
    if count < least:
        raise EnsioError(
            f'{expression.where}: "{expression.text}": {what} is {count}, it must be at least {least}'
        )
    return count
