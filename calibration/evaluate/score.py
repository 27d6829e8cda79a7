"""Scores of the diagnosis on runs whose causes are measured."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np

from calibration.evaluate.place import place_is_right
from calibration.evaluate.scorer import (
    Judged,
    coverage,
    gains,
    is_named,
    measures,
    share_text,
    true_findings,
    width,
)
from calibration.page import show

NEAR = 0.10
"""Share of the run by which the unexplained time may differ from what unnamed causes cost."""

CONFIDENCES = (0.0, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Limits of the bins of stated confidence."""


def report(judged: list[Judged]) -> None:
    """Print the tables."""
    rows = [
        *measures(judged),
        ("notes that may gain 2 % that are causes", _true_notes(judged), ""),
        ("mean confidence of findings above note", _confidence(judged), "as above"),
        ("places of findings that are right", _places(true_findings(judged)), ""),
        ("unexplained time within 10 points of what unnamed causes cost", _unexplained(judged), ""),
        ("mean processor time of a diagnosis", f"{np.mean([run.seconds for run in judged]):.2f} s", ""),
    ]
    show(rows, ("measure", "result", "aim of the issue"))
    show(
        _by_cause(judged),
        ("cause", "runs", "named", "refused with advice", "first", "missed cost, mean", "false"),
    )
    show(
        _gains_by_cause(judged),
        (
            "cause",
            "found",
            "interval holds the gain",
            "width, median",
            "place right",
            "harmless",
            "of these alarm",
        ),
    )
    show(
        _reliability(judged),
        ("stated confidence", "findings above note", "mean stated", "share that is true"),
    )
    show(_confusion(judged), ("measured cause", "most costly finding (number of runs)"))


def _places(found: list[tuple[Judged, dict[str, Any]]]) -> str:
    right = [
        place_is_right(cause["id"], cause["where"], finding)
        for run, finding in found
        for cause in run.truth["causes"]
        if cause["id"] == finding["id"]
    ]
    return share_text(sum(right), len(right))


def _unnamed_s(run: Judged) -> float:
    """Return what the causes that no finding names cost after those that are named are mended.

    Costs of several causes together were measured for pairs only: of more, the smallest remainder counts.
    """
    named = {cause for cause in run.costs if is_named(run, cause)}
    left = [
        min([cause["alone_s"], *(left_s for name, left_s in cause["left_s"].items() if name in named)])
        for cause in run.truth["causes"]
        if cause["id"] not in named
    ]
    return max(left, default=0.0)


def _unexplained(judged: list[Judged]) -> str:
    known = [run for run in judged if run.said["unexplained_s"] is not None]
    near = [abs(run.said["unexplained_s"] - _unnamed_s(run)) <= NEAR * run.truth["span_s"] for run in known]
    return share_text(sum(near), len(near))


def _gains_by_cause(judged: list[Judged]) -> list[tuple[object, ...]]:
    """Tabulate by cause: interval and place of what was found, and runs that have the habit at no cost."""
    rows = []
    for name in sorted({cause for run in judged for cause in run.costs}):
        found = [(run, finding) for run, finding in true_findings(judged) if finding["id"] == name]
        intervals = gains(judged, name)
        harmless = [run for run in judged if name in run.truth["harmless"]]
        alarms = sum(any(finding["id"] == name for finding in run.loud) for run in harmless)
        rows.append(
            (name, len(found), coverage(intervals), width(intervals), _places(found), len(harmless), alarms)
        )
    return rows


def _reliability(judged: list[Judged]) -> list[tuple[object, ...]]:
    """Compare stated confidence with the share of findings that are measured causes."""
    stated = np.array([finding["confidence"] for run in judged for finding in run.loud])
    true = np.array([finding["id"] in run.costs for run in judged for finding in run.loud])
    place = np.digitize(stated, CONFIDENCES[1:-1])
    return [
        (
            f"{low:.0%} to {high:.0%}",
            int((place == number).sum()),
            f"{stated[place == number].mean():.0%}",
            share_text(int(true[place == number].sum()), int((place == number).sum())),
        )
        for number, (low, high) in enumerate(pairwise(CONFIDENCES))
        if (place == number).any()
    ]


def _true_notes(judged: list[Judged]) -> str:
    found = [finding["id"] in run.costs for run in judged for finding in run.quiet]
    return share_text(sum(found), len(found))


def _confidence(judged: list[Judged]) -> str:
    found = [finding["confidence"] for run in judged for finding in run.loud]
    return f"{np.mean(found):.0%}" if found else "none"


def _by_cause(judged: list[Judged]) -> list[tuple[object, ...]]:
    names = sorted({cause for run in judged for cause in run.costs})
    rows = []
    for name in names:
        runs = [run for run in judged if name in run.costs]
        missed = [run.costs[name] for run in runs if not is_named(run, name)]
        false = sum(name not in run.costs and is_named(run, name) for run in judged)
        rows.append(
            (
                name,
                len(runs),
                sum(is_named(run, name) for run in runs),
                sum(name in run.refused for run in runs),
                sum(bool(run.loud) and run.loud[0]["id"] == name for run in runs),
                f"{np.mean(missed):.0%}" if missed else "",
                false,
            )
        )
    return rows


def _confusion(judged: list[Judged]) -> list[tuple[str, str]]:
    rows: dict[str, Counter[str]] = {}
    for run in judged:
        cause = max(run.costs, key=lambda name: run.costs[name]) if run.costs else "none"
        rows.setdefault(cause, Counter())[run.loud[0]["id"] if run.loud else "none"] += 1
    return [
        (cause, ", ".join(f"{name} ({count})" for name, count in found.most_common()))
        for cause, found in sorted(rows.items())
    ]
