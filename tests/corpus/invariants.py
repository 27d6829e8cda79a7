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
def intervals_hold_their_places(run: Declared | Several, line: str, answer: Answer) -> Iterator[str]:
    """Where something has a place and an interval, the place lies in it."""
    for place, entry in _objects(answer.out):
        for name in ("t_s", "median_s"):
            values = [entry.get(key) for key in ("low_s", name, "high_s")]
            if all(isinstance(value, int | float) for value in values) and sorted(values) != values:
                yield f"{place}: {name} is {values[1]}, and its interval {values[0]} to {values[2]}"


def _objects(value: Any, place: str = "$") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict):
        yield place, value
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in below:
        yield from _objects(entry, f"{place}.{key}")


@invariant
def calls_add_up(run: Declared | Several, line: str, answer: Answer) -> Iterator[str]:
    """In ``info``, the calls of functions and of layers are those of the run."""
    if line.startswith("info ") and isinstance(answer.out, dict):
        of_functions = sum(call["count"] for call in answer.out["calls"].values())
        of_layers = sum(layer["calls"] for layer in answer.out["layers"].values())
        if not of_functions == of_layers == answer.out["recorded_calls"]:
            yield f"{of_functions} by functions, {of_layers} by layers, {answer.out['recorded_calls']} in all"


@invariant
def weights_of_modes_are_of_the_whole(run: Declared | Several, line: str, answer: Answer) -> Iterator[str]:
    """The weights of modes add up to 1."""
    if line.startswith("modes ") and isinstance(answer.out, dict) and answer.out["modes"]:
        whole = sum(mode["weight"] for mode in answer.out["modes"])
        if not math.isclose(whole, 1, rel_tol=1e-6):
            yield f"the weights add up to {whole}"


@invariant
def json_is_an_object(run: Declared | Several, line: str, answer: Answer) -> Iterator[str]:
    """``--json`` prints one object."""
    if "--json" in line.split() and answer.exit in (0, 1) and not isinstance(answer.out, dict):
        yield f"prints {str(answer.out)[:60]!r}"
