"""Integer expressions of patterns, parsed with `ast` and evaluated without running Python code."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.model.units import LARGEST_INT64


def balanced_factors(tasks: int, axes: int) -> tuple[int, ...]:
    """Split a number of tasks into balanced factors, one per axis, the largest first, as ``MPI_Dims_create``.

    Each prime factor, from the largest on, goes to the axis with the smallest product so far.

    Examples
    --------
    >>> balanced_factors(48, 3)
    (4, 4, 3)
    """
    factors = [1] * axes
    for prime in reversed(_prime_factors(tasks)):
        factors[factors.index(min(factors))] *= prime
    return tuple(sorted(factors, reverse=True))


def _prime_factors(number: int) -> list[int]:
    """Return the prime factors in ascending order."""
    found = []
    divisor = 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            found.append(divisor)
            number //= divisor
        divisor += 1
    if number > 1:
        found.append(number)
    return found


Number = int | np.ndarray

CONSTANTS: Mapping[str, int] = {
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
}
"""Units, in bytes and in nanoseconds."""

_MOST_CHARACTERS = 1000


class _ExpressionProblem(Exception):
    """An error in an expression, without its location."""


@dataclass(frozen=True)
class Expression:
    """A formula over whole numbers."""

    text: str  # Source text
    where: str  # File and line, for messages
    tree: ast.expr  # Contains only nodes that `evaluate` supports

    @cached_property
    def names(self) -> frozenset[str]:
        """Names that the expression uses."""
        return frozenset(node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name)) - {
            *_FUNCTIONS
        }

    def parted(self, name: str) -> tuple[Expression | None, Expression | None]:
        """Separate the operands of an ``and`` without a name from those with it; None: there are none."""
        conditions = [self.tree]
        if isinstance(self.tree, ast.BoolOp) and isinstance(self.tree.op, ast.And):
            conditions = self.tree.values
        without: list[ast.expr] = []
        having: list[ast.expr] = []
        for tree in conditions:
            (having if name in Expression(self.text, self.where, tree).names else without).append(tree)
        return self._all_of(without), self._all_of(having)

    def _all_of(self, conditions: list[ast.expr]) -> Expression | None:
        if not conditions:
            return None
        tree = conditions[0] if len(conditions) == 1 else ast.BoolOp(op=ast.And(), values=conditions)
        return Expression(self.text, self.where, tree)

    def evaluate(self, names: Mapping[str, Number]) -> Number:
        """Compute the value of the expression: an array if the value of a used name is one.

        Examples
        --------
        >>> parse("rank // 2 * 4KiB".replace("4KiB", "4 * KiB"), "pattern.toml:1").evaluate({"rank": 5})
        8192
        """
        try:
            return _evaluate(self.tree, names)
        except _ExpressionProblem as problem:
            raise EnsioError(f'{self.where}: "{self.text}": {problem}') from None

    def evaluate_whole(self, names: Mapping[str, Number]) -> int:
        """Compute the value of an expression without arrays, as `evaluate`."""
        value = self.evaluate(names)
        assert isinstance(value, int)
        return value


def parse(source: object, where: str) -> Expression:
    """Parse an expression of a pattern."""
    if isinstance(source, bool) or not isinstance(source, int | str):
        raise EnsioError(f"{where}: {source!r} is neither a whole number nor an expression in quotes")
    text = str(source)
    try:
        if len(text) > _MOST_CHARACTERS:
            raise _ExpressionProblem(f"is longer than {_MOST_CHARACTERS} characters")
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise _ExpressionProblem("is not an expression: see ensio help patterns") from None
        _check(tree)
    except _ExpressionProblem as problem:
        raise EnsioError(f'{where}: "{text}": {problem}') from None
    return Expression(text, where, tree)


def _largest(value: Number) -> int:
    """Return the largest absolute value as an int, which cannot overflow."""
    if isinstance(value, int):
        return abs(value)
    return max(abs(int(value.min())), abs(int(value.max()))) if value.size else 0


def _limited(bound: int) -> None:
    if bound > LARGEST_INT64:
        raise _ExpressionProblem("the result has more than 63 bits")


def _add(left: Number, right: Number) -> Number:
    _limited(_largest(left) + _largest(right))
    return left + right


def _subtract(left: Number, right: Number) -> Number:
    _limited(_largest(left) + _largest(right))
    return left - right


def _multiply(left: Number, right: Number) -> Number:
    _limited(_largest(left) * _largest(right))
    return left * right


def _refuse_zero(divisor: Number) -> None:
    if np.any(np.equal(divisor, 0)):
        raise _ExpressionProblem("divides by zero")


def _divide_exactly(left: Number, right: Number) -> Number:
    _refuse_zero(right)
    if np.any(left % right):
        raise _ExpressionProblem("the division leaves a remainder: use // to round down")
    return left // right


def _divide_down(left: Number, right: Number) -> Number:
    _refuse_zero(right)
    return left // right


def _remainder(left: Number, right: Number) -> Number:
    _refuse_zero(right)
    return left % right


_ARITHMETIC: Mapping[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: _add,
    ast.Sub: _subtract,
    ast.Mult: _multiply,
    ast.Div: _divide_exactly,
    ast.FloorDiv: _divide_down,
    ast.Mod: _remainder,
}

_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Number, Number], np.ndarray]] = {
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
}

_LOGIC: Mapping[type[ast.boolop], Callable[[Number, Number], np.ndarray]] = {
    ast.And: np.logical_and,
    ast.Or: np.logical_or,
}


def _smallest_of(*values: Number) -> Number:
    result = values[0]
    for value in values[1:]:
        result = (
            min(result, value)
            if isinstance(result, int) and isinstance(value, int)
            else np.minimum(result, value)
        )
    return result


def _largest_of(*values: Number) -> Number:
    result = values[0]
    for value in values[1:]:
        result = (
            max(result, value)
            if isinstance(result, int) and isinstance(value, int)
            else np.maximum(result, value)
        )
    return result


def _dimension(*values: Number) -> Number:
    """The tasks along one axis of a grid of tasks."""
    if len(values) != 3:
        raise _ExpressionProblem("dims takes three numbers: tasks, axes, and which axis, from 0")
    tasks, axes, axis = values
    if not (isinstance(tasks, int) and isinstance(axes, int) and isinstance(axis, int)):
        raise _ExpressionProblem("dims takes numbers that are the same for every task")
    if not (0 < tasks <= _MOST_FACTORED and 0 <= axis < axes <= _MOST_AXES):
        raise _ExpressionProblem(f"dims has no axis {axis} of {axes} for {tasks} tasks")
    return balanced_factors(tasks, axes)[axis]


def _square_root(*values: Number) -> Number:
    """The largest whole number whose square is at most a number."""
    if len(values) != 1 or not isinstance(values[0], int) or values[0] < 0:
        raise _ExpressionProblem("isqrt takes one number of at least 0 that is the same for every task")
    return math.isqrt(values[0])


def _picked(*values: Number) -> Number:
    """The value with a number, from 0 on; the last one for higher numbers."""
    number, *choices = values
    if not choices:
        raise _ExpressionProblem("pick takes a number and the values that it chooses from")
    if np.any(np.less(number, 0)):
        raise _ExpressionProblem("pick has no value with a number below 0")
    if isinstance(number, int):
        return choices[min(number, len(choices) - 1)]
    chosen = choices[-1]
    for place, choice in enumerate(choices[:-1]):
        chosen = np.where(number == place, choice, chosen)
    return np.asarray(np.broadcast_to(chosen, number.shape), dtype=np.int64)


_MOST_FACTORED = 1 << 32
_MOST_AXES = 8

_FUNCTIONS: Mapping[str, Callable[..., Number]] = {
    "min": _smallest_of,
    "max": _largest_of,
    "dims": _dimension,
    "isqrt": _square_root,
    "pick": _picked,
}


def _check(node: ast.expr) -> None:
    """Reject every node that `_evaluate` does not support."""
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            if abs(value) > LARGEST_INT64:
                raise _ExpressionProblem("a number has more than 63 bits")
        case ast.Name():
            pass
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _ARITHMETIC:
            _check(left)
            _check(right)
        case ast.UnaryOp(op=ast.USub() | ast.Not(), operand=operand):
            _check(operand)
        case ast.BoolOp(values=values):
            for operand in values:
                _check(operand)
        case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in _COMPARISONS:
            _check(left)
            _check(right)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if (
            name in _FUNCTIONS and arguments
        ):
            for argument in arguments:
                _check(argument)
        case _:
            raise _ExpressionProblem(
                f'"{ast.unparse(node)}" is not allowed: use names, whole numbers, + - * / // %, '
                f"comparisons, and, or, not, {', '.join(_FUNCTIONS)}"
            )


def _truth(value: np.ndarray | np.bool_) -> Number:
    return value.astype(np.int64) if isinstance(value, np.ndarray) else int(value)


def _evaluate(node: ast.expr, names: Mapping[str, Number]) -> Number:
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.Name(id=name):
            if name in names:
                return names[name]
            if name in CONSTANTS:
                return CONSTANTS[name]
            raise _ExpressionProblem(
                f'"{name}" is not a name here: choose from {", ".join([*names, *CONSTANTS])}'
            )
        case ast.BinOp(left=left, op=operator, right=right):
            return _ARITHMETIC[type(operator)](_evaluate(left, names), _evaluate(right, names))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_evaluate(operand, names)
        case ast.UnaryOp(operand=operand):
            return _truth(np.equal(_evaluate(operand, names), 0))
        case ast.BoolOp(op=operator, values=values):
            parts = [_evaluate(value, names) for value in values]
            result = parts[0]
            for part in parts[1:]:
                result = _truth(_LOGIC[type(operator)](result, part))
            return result
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            return _truth(_COMPARISONS[type(operator)](_evaluate(left, names), _evaluate(right, names)))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return _FUNCTIONS[name](*(_evaluate(argument, names) for argument in arguments))
    raise AssertionError(ast.dump(node))
