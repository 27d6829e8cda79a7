"""The form in which answers are kept, and how two of them differ.

One file a run, one line a command. Long lists are condensed to what shows a change: how many, sum, least,
greatest and centre. Whole numbers and words are kept as they are, other numbers to ten digits, and compared
with a tolerance that only rounding may use up. Of sentences only that they are there is kept: their numbers
are in the JSON, and `test_texts.py` compares both.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .answers import HERE, Answer

FOLDER = HERE / "frozen"
TOLERANCE = 1e-7
"""Relative: sums in another order, or another processor's exp and log, differ by less."""
UNSTEADY = {
    (
        "tail replay-gcrm --op write --tasks 1024 --json",
        "$.out.mean_s",
    ): "null or a number by the last digit of a fit",
}
"""Places that another processor's rounding changes by more: known defects, not compared."""
_LONGEST_LIST = 16
_LONGEST_DICT = 64
_SENTENCE_WORDS = 4
_SENTENCE = "…"


def condensed(answer: Answer) -> dict[str, Any]:
    """What is kept of an answer."""
    kept = {"exit": answer.exit, "messages": _short(answer.messages), "out": _short(answer.out)}
    if answer.made is not None:
        kept["made"] = _short(answer.made)
    return kept


def _short(value: Any) -> Any:
    if isinstance(value, dict) and len(value) > _LONGEST_DICT:
        return {"keys": _condensed_list(list(value)), "values": _condensed_list(list(value.values()))}
    if isinstance(value, dict):
        return {str(key): _short(below) for key, below in value.items()}
    if isinstance(value, list):
        return [_short(below) for below in value] if len(value) <= _LONGEST_LIST else _condensed_list(value)
    if isinstance(value, float):
        return float(f"{value:.10g}") if math.isfinite(value) else str(value)
    if isinstance(value, str) and len(value.split()) >= _SENTENCE_WORDS:
        return _SENTENCE
    return value


def _condensed_list(values: list[Any]) -> dict[str, Any]:
    if all(isinstance(value, dict) for value in values):
        names = dict.fromkeys(name for value in values for name in value)
        columns = {name: _condensed_list([value.get(name) for value in values]) for name in names}
        return {"rows": len(values), "first": _short(values[0]), "columns": columns}
    numbers = [_number(value) for value in values]
    finite = [number for number in numbers if number is not None and math.isfinite(number)]
    if finite and all(
        number is not None or value in (None, "") for number, value in zip(numbers, values, strict=True)
    ):
        weights = math.fsum(map(abs, finite))
        kept: dict[str, Any] = {
            "numbers": len(finite),
            "sum": _exact_sum(finite),
            "least": _short(min(finite)),
            "greatest": _short(max(finite)),
        }
        if weights and min(finite) != max(finite):  # of which place: shows that two changed places
            centre = math.fsum(place * abs(number) for place, number in enumerate(finite, 1)) / weights
            kept["centre"] = _short(centre)
        if len(finite) < len(values):
            kept["without_number"] = len(values) - len(finite)
        return kept
    texts = [
        _short(value) if isinstance(value, str) else json.dumps(_short(value), sort_keys=True)
        for value in values
    ]
    different = sorted(set(texts))
    kept = {"texts": len(texts), "different": len(different), "crc": zlib.crc32("\0".join(texts).encode())}
    if len(different) <= 4:
        kept["each"] = {text[:200]: texts.count(text) for text in different}
    return kept


def _number(value: Any) -> float | int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    try:
        return int(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _exact_sum(numbers: list[Any]) -> Any:
    whole = all(isinstance(number, int) for number in numbers)
    return sum(numbers) if whole else _short(math.fsum(numbers))


def path_of(name: str) -> Path:
    """The file of a run's frozen answers."""
    return FOLDER / f"{name}.json"


def read(name: str) -> dict[str, Any]:
    """The frozen answers of a run by command lines; none if it was never frozen."""
    path = path_of(name)
    return json.loads(path.read_text()) if path.exists() else {}


def write(name: str, answers: dict[str, Any]) -> None:
    """Freeze answers: one line a command."""
    rows = [f"{json.dumps(line)}: {_dumped(answers[line])}" for line in sorted(answers)]
    FOLDER.mkdir(exist_ok=True)
    path_of(name).write_text("{\n" + ",\n".join(rows) + "\n}\n")


def _dumped(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


@dataclass(frozen=True)
class Difference:
    """A place in which two answers differ.

    Attributes
    ----------
    kind : str
        ``"number"``, ``"value"`` (a text, true, false, null) or ``"shape"`` (a key or entry that is new or
        gone).
    """

    run: str
    line: str
    place: str
    before: Any
    after: Any
    kind: str

    def __str__(self) -> str:
        relative = ""
        if self.kind == "number" and self.before:
            relative = f"  ({(self.after - self.before) / abs(self.before):+.2g})"
        return f"{self.run} | {self.line} | {self.place}: {_cut(self.before)} -> {_cut(self.after)}{relative}"


_ABSENT = "(not there)"


def differences(run: str, before: dict[str, Any], after: dict[str, Any]) -> list[Difference]:
    """Where the answers on a run differ; both by command lines."""
    found = []
    for line in dict.fromkeys([*before, *after]):
        if line not in before or line not in after:
            asked = [_ABSENT if line not in side else "(answered)" for side in (before, after)]
            found.append(Difference(run, line, "$", *asked, "shape"))
            continue
        for place, old, new, kind in _walk("$", before[line], after[line]):
            if (line, place) not in UNSTEADY:
                found.append(Difference(run, line, place, old, new, kind))
    return found


def _walk(place: str, before: Any, after: Any) -> Iterator[tuple[str, Any, Any, str]]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys([*before, *after]):
            if key in before and key in after:
                yield from _walk(f"{place}.{key}", before[key], after[key])
            else:
                yield f"{place}.{key}", before.get(key, _ABSENT), after.get(key, _ABSENT), "shape"
    elif isinstance(before, list) and isinstance(after, list):
        for number in range(max(len(before), len(after))):
            sides = [side[number] if number < len(side) else _ABSENT for side in (before, after)]
            if number < min(len(before), len(after)):
                yield from _walk(f"{place}[{number}]", *sides)
            else:
                yield f"{place}[{number}]", *sides, "shape"
    elif _is_number(before) and _is_number(after):
        if not _same_number(before, after):
            yield place, before, after, "number"
    elif before != after or type(before) is not type(after):
        yield place, before, after, "value"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same_number(before: float, after: float) -> bool:
    if isinstance(before, int) and isinstance(after, int):
        return before == after
    return math.isclose(before, after, rel_tol=TOLERANCE, abs_tol=1e-15)


def _cut(value: Any) -> str:
    text = value if value == _ABSENT else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= 160 else text[:157] + "..."
