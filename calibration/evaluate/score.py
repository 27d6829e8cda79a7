"""Scores of the diagnosis on runs whose causes are measured."""

from __future__ import annotations

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
        ("places of findings that are right", _places(true_findings(judged)), ""),
        ("unexplained time within 10 points of what unnamed causes cost", _unexplained(judged), ""),
        ("mean processor time of a diagnosis", f"{np.mean([run.seconds for run in judged]):.2f} s", ""),
    ]
    show(rows, ("measure", "result", "aim of the issue"))
    if causes := _by_cause(judged):
        show([tuple(row.values()) for row in causes], tuple(causes[0]))
    show(
        _reliability(judged),
        ("stated confidence", "findings above note", "mean stated", "share that is true"),
    )


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


def _by_cause(judged: list[Judged]) -> list[dict[str, object]]:
    """Tabulate by cause: what is named, gains and places, and runs with the habit at no cost."""
    rows: list[dict[str, object]] = []
    for name in sorted({cause for run in judged for cause in run.costs}):
        runs = [run for run in judged if name in run.costs]
        missed = [run.costs[name] for run in runs if not is_named(run, name)]
        found = [(run, finding) for run, finding in true_findings(judged) if finding["id"] == name]
        harmless = [run for run in judged if name in run.truth["harmless"]]
        rows.append(
            {
                "cause": name,
                "runs": len(runs),
                "named": len(runs) - len(missed),
                "refused with advice": sum(name in run.refused for run in runs),
                "first": sum(run.loud[:1] == [finding] for run, finding in found),
                "missed cost, mean": f"{np.mean(missed):.0%}" if missed else "",
                "false": sum(name not in run.costs and is_named(run, name) for run in judged),
                "interval holds the gain": coverage(gains(judged, name)),
                "width, median": width(gains(judged, name)),
                "place right": _places(found),
                "harmless": len(harmless),
                "of these alarm": sum(name in [each["id"] for each in run.loud] for run in harmless),
            }
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
