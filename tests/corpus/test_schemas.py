"""Every ``--json`` has a published schema, which answers fit and which notices what goes."""

from __future__ import annotations

import argparse
import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from ensembles.cli.main import build_parser

from .answers import ANSWERS
from .schemas import FOLDER, further, misfits, name_of, schema_of

INFO = "info replay-ior-8 --json"


def parsers(parser: argparse.ArgumentParser, name: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Each command and action with its parser."""
    yield name, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, below in action.choices.items():
                yield from parsers(below, f"{name}-{word}".strip("-"))


def test_every_command_with_json_has_a_schema() -> None:
    wanted = {name for name, parser in parsers(build_parser()) if "--json" in parser._option_string_actions}
    published = {path.stem for path in FOLDER.glob("*.json")}
    assert wanted - published == set()
    assert published - wanted <= {
        *("events", "fingerprint-against", "tail-backtest", "history-list-runs", "history-show-predictions"),
    }


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_schemas_are_schemas(path: Any) -> None:
    from jsonschema import Draft202012Validator

    Draft202012Validator.check_schema(json.loads(path.read_text()))


@pytest.mark.slow
def test_answers_of_further_commands_fit() -> None:
    for line, answer in further():
        assert answer.exit in (0, 1), (line, answer.messages)
        assert [*misfits(line, answer.exit, answer.out)] == [], line


def test_a_key_that_goes_or_changes_its_type_is_noticed_and_a_new_one_is_welcome() -> None:
    answer = ANSWERS.answer(INFO)
    assert [*misfits(INFO, 0, answer.out)] == []
    assert [*misfits(INFO, 0, answer.out | {"new": 1})] == []
    gone = {key: value for key, value in answer.out.items() if key != "span_s"}
    assert "'span_s' is a required property" in next(misfits(INFO, 0, gone))
    changed = copy.deepcopy(answer.out)
    changed["calls"]["open"]["time_s"] = "3 s"
    assert next(misfits(INFO, 0, changed)).startswith("$.calls.open.time_s")


def test_types_and_units_are_those_of_all_answers_together() -> None:
    made = schema_of([{"a_s": 1, "calls": {"read": 1}}, {"a_s": None, "b": [0.5], "calls": {"open": 2}}])
    assert made["required"] == ["a_s", "calls"]
    assert made["properties"]["a_s"] == {"type": ["null", "number"], "unit": "s"}
    assert made["properties"]["b"] == {"type": "array", "items": {"type": "number"}}
    assert made["properties"]["calls"] == {"type": "object", "additionalProperties": {"type": "integer"}}
    assert name_of("tail run --backtest --json") == "tail-backtest"
