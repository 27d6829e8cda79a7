"""The published JSON Schema of each command's JSON, made from its answers on the corpus.

python -m tests.corpus.schemas                  # writes docs/reference/schemas anew, and says which changed

A key is required if every answer has it. Types are those of all answers together; units follow from the names
of keys. An object whose keys are data, such as names of functions, has one schema for all of them. Further
keys are allowed: new versions add some.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .answers import ANSWERS, ROOT, Answer, NotThereError
from .declared import RUNS, SEVERAL

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

FOLDER = ROOT / "docs" / "reference" / "schemas"
HISTORY = "--db made-history.db --json"
FURTHER = (
    "fingerprint replay-ior-8 --json",
    "fingerprint replay-ior-8 --against replay-ior-64 --json",
    "scaling sim-healthy-1 sim-slow-1 --json",
    *(
        f"history add {run} --db made-history.db --experiment nightly --label commit={run}"
        for run in ("sim-healthy-1", "sim-healthy-2", "sim-healthy-3", "sim-healthy-4", "sim-slow-1")
    ),
    f"history list {HISTORY}",
    f"history list --experiment nightly {HISTORY}",
    f"history show 1 {HISTORY}",
    f"history check {HISTORY}",
    f"history check --last 1 {HISTORY}",
    f"history context 2 {HISTORY}",
    "replay ior --tasks 2 --set block_bytes=64KiB -o made-replayed --json",
    "try made-replayed --with split=2 --time 60 --json",
    "predict made-replayed --with split=2 --json",
    f"history show --predictions {HISTORY}",
    "pfs run --fs franklin -- sh made-copy.sh",
    "pfs status made-pfs --json",
)
"""Commands that the corpus does not freeze, in their order."""

UNITS = {"_bytes_per_s": "bytes/s", "_per_s": "1/s", "_s": "s", "_ns": "ns", "_bytes": "bytes"}
REAL = re.compile(r"(_s|_share|share|_ratio|ratio|level|confidence|p|low|high)$")
"""Names of keys whose values are real numbers, also where those of the corpus happen to be whole."""

DATA = {"calls", "dropped_events_by_reason", "environment", "faults", "layers", "modules", "parts", "totals"}
"""Names of objects whose keys are data, also where runs of the corpus have the same ones."""

MOST_ROWS = 200
"""JSON lines of a command that are looked at."""

NAMES = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}


def name_of(line: str) -> str:
    """The name of the schema of a command line's answer; "": it prints no JSON."""
    words = line.split()
    if "jsonl" in words:
        return "events"
    if "--json" not in words:
        return ""
    name = "-".join(words[: 2 if words[0] in ("history", "scenarios", "pfs") else 1])
    kind = {
        "--backtest": "-backtest",
        "--against": "-against",
        "--experiment": "-runs",
        "--predictions": "-predictions",
    }
    return name + "".join(
        more for option, more in kind.items() if option in words and name != "history-check"
    )


def answers_of(line: str, exit_code: Any, out: Any) -> list[Any]:
    """The objects that a command printed, each with the keys that the corpus leaves out."""
    if not name_of(line) or exit_code not in (0, 1):
        return []
    found = out[:MOST_ROWS] if isinstance(out, list) else [out]
    return [each | {"bytes": 1} if line.startswith("report ") else each for each in found]


def schema_of(values: list[Any], key: str = "") -> dict[str, Any]:
    """The schema that all these values fit."""
    types = {NAMES[type(value)] for value in values if type(value) in NAMES}
    if "number" in types or ("integer" in types and REAL.search(key)):
        types = types - {"integer"} | {"number"}
    made: dict[str, Any] = {}
    if rows := [value for value in values if isinstance(value, list)]:
        types.add("array")
        inner = [each for row in rows for each in row]
        made["items"] = schema_of(inner, "" if isinstance(next(iter(inner), None), dict) else key)
    if objects := [value for value in values if isinstance(value, dict)]:
        types.add("object")
        made |= object_schema(objects, key)
    unit = next((unit for end, unit in UNITS.items() if key.endswith(end)), "")
    if unit and types & {"number", "integer"}:
        made["unit"] = unit
    if types <= {"null"}:  # what else it may be, these runs do not show
        return made
    return {"type": min(types) if len(types) == 1 else sorted(types)} | made


def object_schema(objects: list[dict[str, Any]], key: str) -> dict[str, Any]:
    """The schema of objects: that of each key, or of all values where keys are data."""
    keys = dict.fromkeys(name for each in objects for name in each)
    always = [name for name in keys if all(name in each for each in objects)]
    kinds = {
        isinstance(value, dict) + 2 * isinstance(value, list) for each in objects for value in each.values()
    }
    if len(kinds) == 1 and (key in DATA or (not always and len(keys) > 1)):
        return {"additionalProperties": schema_of([value for each in objects for value in each.values()])}
    properties = {name: schema_of([each[name] for each in objects if name in each], name) for name in keys}
    return {"properties": properties} | ({"required": always} if always else {})


def further() -> Iterator[tuple[str, Answer]]:
    """The answers of further commands."""
    (ANSWERS.folder / "made-copy.sh").write_text('cp -r "$ENSIO_PFS" made-pfs\n')
    for line in FURTHER:
        yield line, ANSWERS.answer(line)


def answered() -> Iterator[tuple[str, Any]]:
    """The name of the schema and each object of every answer."""
    for line, answer in further():
        for value in answers_of(line, answer.exit, answer.out):
            yield name_of(line), value
    for one in (*RUNS, *SEVERAL):
        try:
            answers = ANSWERS.of(one)
        except NotThereError:
            continue
        for line, answer in answers.items():
            for value in answers_of(line, answer.exit, answer.out):
                yield name_of(line), value


@cache
def validator(name: str) -> Draft202012Validator:
    """The published schema of a command."""
    from jsonschema import (
        Draft202012Validator,  # which takes seconds: not in every process that collects tests
    )

    return Draft202012Validator(json.loads((FOLDER / f"{name}.json").read_text()))


def misfits(line: str, exit_code: Any, out: Any) -> Iterator[str]:
    """Where an answer does not fit the published schema."""
    for value in answers_of(line, exit_code, out):
        for error in validator(name_of(line)).iter_errors(value):
            yield f"{error.json_path}: {error.message[:200]}"


def main() -> None:
    """Write the schemas."""
    values: dict[str, list[Any]] = {}
    for name, value in answered():
        values.setdefault(name, []).append(value)
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.json"):
        if path.stem not in values:
            path.unlink()
    for name, found in sorted(values.items()):
        head = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": f"ensio {name.replace('-', ' ')}",
        }
        text = json.dumps(head | schema_of(found), indent=1) + "\n"
        path: Path = FOLDER / f"{name}.json"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            print(f"{name}: written, from {len(found):,} objects")


if __name__ == "__main__":
    main()
