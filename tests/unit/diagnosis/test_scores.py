"""The scores of ./dev evaluate on answers whose scores are known."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from project import ROOT

sys.path.insert(0, str(ROOT))
from calibration.evaluate.place import place_is_right
from calibration.evaluate.score import _reliability, _unexplained, _unnamed_s
from calibration.evaluate.scorer import Judged, named


def finding(cause: str, op: str | None = None, ranks: str = "", **more: Any) -> dict[str, Any]:
    where = {"op": op, "ranks": ranks, "files": more.pop("files", [])}
    return {
        "id": cause,
        "severity": more.pop("severity", "warning"),
        "confidence": more.pop("confidence", 0.95),
        "where": where,
        "evidence": more,
        "gain_s": [1.0, 2.0],
        "symptoms": [],
    }


def judged(
    causes: dict[str, float], found: list[dict[str, Any]], unexplained_s: float = 0.0, **left_s: float
) -> Judged:
    listed = [
        {"id": name, "alone_s": cost, "where": {}, "left_s": {other: left_s[f"{name}_{other}"]}}
        if (other := next((key.split("_")[1] for key in left_s if key.startswith(f"{name}_")), ""))
        else {"id": name, "alone_s": cost, "where": {}, "left_s": {}}
        for name, cost in causes.items()
    ]
    truth = {"causes": listed, "span_s": 10.0, "harmless": {}}
    refused = [{"id": "interference"}]
    return Judged(truth, {"findings": found, "not_examined": refused, "unexplained_s": unexplained_s})


@pytest.mark.parametrize(
    ("cause", "where", "found", "right"),
    [
        ("straggler-task", {"ranks": [3, 3]}, finding("straggler-task", ranks="3"), True),
        ("straggler-task", {"ranks": [3, 3]}, finding("straggler-task", ranks="3-4"), False),
        ("straggler-node", {"ranks": [4, 7]}, finding("straggler-node", ranks="4-7"), True),
        ("slow-target", {"target": 5}, finding("slow-target", "write", target=5), True),
        ("slow-target", {"target": 5}, finding("slow-target", "write", target=6), False),
        ("close-cost", {}, finding("close-cost", "close"), True),
        ("close-cost", {}, finding("close-cost"), False),
        ("small-requests", {}, finding("small-requests"), True),
        ("redundant-reads", {}, finding("redundant-reads", "read", files=["/a/data.dat"]), True),
        ("redundant-reads", {}, finding("redundant-reads", "read", files=["/a/header.dat"]), False),
    ],
)
def test_places_are_right_only_where_all_that_is_said_is(cause, where, found, right):
    assert place_is_right(cause, where, found) is right


def test_unexplained_time_is_compared_with_what_unnamed_causes_cost_after_the_named_ones():
    run = judged({"a": 6.0, "b": 3.0}, [finding("a")], 0.7, b_a=0.5)
    assert _unnamed_s(run) == 0.5
    assert _unexplained([run, judged({"a": 6.0}, [], 1.0), judged({}, [], 0.9)]) == "2 of 3 (67%)"


def test_a_refused_cause_is_not_among_those_that_a_run_can_show():
    runs = [judged({"interference": 5.0}, []), judged({"a": 5.0}, [finding("a")]), judged({"a": 5.0}, [])]
    assert named(runs, 0.1, 2) == "1 of 3 (33%)"
    assert named(runs, 0.1, 2, refused=True) == "2 of 3 (67%)"
    assert named(runs, 0.1, 2, told=True) == "1 of 2 (50%)"


def test_reliability_compares_stated_confidence_with_what_is_true():
    runs = [judged({"a": 5.0}, [finding("a"), finding("b", confidence=0.76)]) for _ in range(4)]
    assert [row[1:] for row in _reliability(runs)] == [(4, "76%", "0 of 4 (0%)"), (4, "95%", "4 of 4 (100%)")]
