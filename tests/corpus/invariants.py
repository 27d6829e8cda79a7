"""What must hold of every answer on every run: a function each, which yields its violations."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from .answers import Answer
from .declared import Declared, Several

Invariant = Callable[[Declared | Several, str, Answer], Iterator[str]]
INVARIANTS: list[Invariant] = []


def invariant(function: Invariant) -> Invariant:
    """Register a function of a run, a command line and its answer."""
    INVARIANTS.append(function)
    return function


def leaves(value: Any, place: str = "$") -> Iterator[tuple[str, Any]]:
    """All values of a JSON text with their places."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from leaves(below, f"{place}.{key}")
    elif isinstance(value, list):
        for number, below in enumerate(value):
            yield from leaves(below, f"{place}[{number}]")
    else:
        yield place, value


@invariant
def numbers_are_finite(run: Declared | Several, line: str, answer: Answer) -> Iterator[str]:
    """JSON knows neither NaN nor infinity."""
    for place, value in leaves(answer.out):
        if isinstance(value, float) and not math.isfinite(value):
            yield f"{place} is {value}"


@invariant
def refusals_are_one_sentence(run: Declared | Several, line: str, answer: Answer) -> Iterator[str]:
    """Exit code 2 comes with one line on standard error, and nothing on standard output."""
    if answer.exit == 2:
        told = [message for message in answer.messages if not message.startswith("ensio: note: ")]
        if len(told) != 1 or not told[0].startswith("ensio: "):
            yield f"exit 2 with {told}"
        if answer.out not in ("", []):
            yield "exit 2, and something on standard output"


@invariant
def json_is_an_object(run: Declared | Several, line: str, answer: Answer) -> Iterator[str]:
    """``--json`` prints one object."""
    if "--json" in line.split() and answer.exit in (0, 1) and not isinstance(answer.out, dict):
        yield f"prints {str(answer.out)[:60]!r}"
