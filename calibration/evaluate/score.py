"""Scores of the diagnosis on runs whose causes are measured."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from calibration.evaluate.place import place_is_right
from calibration.page import say, show

SMALL = 0.02
"""Share of the run from which a habit is a cause."""

LARGE = 0.10
"""Share of the run from which a cause must be the first finding."""

NEAR = 0.10
"""Share of the run by which the unexplained time may differ from what unnamed causes cost."""

CONFIDENCES = (0.0, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Limits of the bins of stated confidence."""


NOT_IN_ONE_RUN = ("cache-cliff", "interference", "misaligned-requests")
"""Causes that a single run of the drawn programs does not show."""


@dataclass
class Judged:
    """One run: its measured causes, and what was found."""

    truth: dict[str, Any]
    findings: list[dict[str, Any]]
    refused: list[str]
    drishti: set[str]
    unexplained_s: float | None
    seconds: float
    costs: dict[str, float] = field(init=False)

    def __post_init__(self) -> None:
        self.costs = {cause["id"]: cause["alone_s"] / self.truth["span_s"] for cause in self.truth["causes"]}

    @property
    def loud(self) -> list[dict[str, Any]]:
        """Findings above ``note``."""
        return [finding for finding in self.findings if finding["severity"] != "note"]

    @property
    def quiet(self) -> list[dict[str, Any]]:
        """Notes that may gain `SMALL` of the run, which the text of a diagnosis shows one by one."""
        least_s = SMALL * self.truth["span_s"]
        notes = [finding for finding in self.findings if finding["severity"] == "note"]
        return [finding for finding in notes if finding["gain_s"] and finding["gain_s"][1] >= least_s]


def report(judged: list[Judged]) -> None:
    """Print the tables."""
    healthy = [run for run in judged if not run.costs]
    alarms = [run for run in healthy if run.loud]
    planted = [run for run in judged if run.costs]
    large = [run for run in planted if max(run.costs.values()) >= LARGE]
    rows = [
        ("healthy runs without a finding above note", _of(len(healthy) - len(alarms), len(healthy)), "98 %"),
        (
            "first finding is a cause, where one costs 10 % or more",
            _of(sum(_first(run) for run in large), len(large)),
            "90 %",
        ),
        ("causes of 10 % or more that are named", _named(planted, LARGE, 2), "95 %"),
        ("the same, without those that are refused with advice", _named(planted, LARGE, 2, told=True), ""),
        ("causes of 2 to 10 % that are named", _named(planted, SMALL, LARGE), "60 %"),
        ("the same, notes that may gain 2 % included", _named(planted, SMALL, LARGE, notes=True), ""),
        (
            "causes that are named, or refused with advice",
            _named(planted, SMALL, 2, refused=True),
            "95 %",
        ),
        (f"{', '.join(NOT_IN_ONE_RUN)}: refused with advice", _told(planted), "95 %"),
        ("pairs of causes of 5 % or more each: both named", _pairs(planted), "85 %"),
        ("the same, named or refused with advice", _pairs(planted, refused=True), ""),
        ("the same, of pairs without a cause that is refused", _pairs(planted, told=True), ""),
        ("90 % intervals of the gain that hold the measured gain", _coverage(_gains(judged)), "85 to 95 %"),
        ("median width of the interval, as a share of the gain", _width(_gains(judged)), "30 %"),
        ("findings above note that are causes", _true_share(judged), "confidence"),
        ("notes that may gain 2 % that are causes", _true_notes(judged), ""),
        ("mean confidence of findings above note", _confidence(judged), "as above"),
        ("places of findings that are right", _places(_true_findings(judged)), ""),
        ("unexplained time within 10 points of what unnamed causes cost", _unexplained(judged), ""),
        ("mean processor time of a diagnosis", f"{np.mean([run.seconds for run in judged]):.2f} s", ""),
    ]
    show(rows, ("measure", "result", "aim of the issue"))
    show(
        _by_cause(judged),
        ("cause", "runs", "named", "refused with advice", "first", "missed cost, mean", "false", "Drishti"),
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
    false = sum(bool(run.drishti) for run in healthy)
    say(f"Drishti's triggers fire in {_of(false, len(healthy))} of the healthy runs.")


def _of(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / whole:.0%})" if whole else "none"


def _first(run: Judged) -> bool:
    return bool(run.loud) and run.loud[0]["id"] in run.costs


def _is_named(run: Judged, cause: str, refused: bool = False) -> bool:
    """Whether a finding above ``note`` names a cause, or names it as a symptom of another measured cause."""
    if any(finding["id"] == cause for finding in run.loud) or (refused and cause in run.refused):
        return True
    least_s = SMALL * run.truth["span_s"]
    left_s = next((each["left_s"] for each in run.truth["causes"] if each["id"] == cause), {})
    return any(
        cause in finding["symptoms"] and left_s.get(finding["id"], least_s) < least_s for finding in run.loud
    )


def _named(
    runs: list[Judged],
    least: float,
    below: float,
    refused: bool = False,
    told: bool = False,
    notes: bool = False,
) -> str:
    """Count the causes that are named; `refused`, `notes`: or in these; `told`: of those not refused."""
    wanted = [(run, cause) for run in runs for cause, cost in run.costs.items() if least <= cost < below]
    wanted = [(run, cause) for run, cause in wanted if not told or cause not in run.refused]
    named = [
        _is_named(run, cause, refused) or (notes and any(each["id"] == cause for each in run.quiet))
        for run, cause in wanted
    ]
    return _of(sum(named), len(wanted))


def _told(runs: list[Judged]) -> str:
    """Count the causes that one run cannot show, and of these the ones that are refused."""
    wanted = [(run, cause) for run in runs for cause in run.costs if cause in NOT_IN_ONE_RUN]
    return _of(sum(cause in run.refused for run, cause in wanted), len(wanted))


def _pairs(runs: list[Judged], refused: bool = False, told: bool = False) -> str:
    pairs = [run for run in runs if sum(cost >= 0.05 for cost in run.costs.values()) >= 2]
    if told:
        pairs = [run for run in pairs if not any(run.costs[c] >= 0.05 for c in run.costs if c in run.refused)]
    both = [
        all(_is_named(run, cause, refused) for cause, cost in run.costs.items() if cost >= 0.05)
        for run in pairs
    ]
    return _of(sum(both), len(both))


Gains = list[tuple[float, list[float]]]
"""Measured gains in seconds, and their intervals."""


def _gains(judged: list[Judged], cause: str | None = None) -> Gains:
    return [
        (run.costs[finding["id"]] * run.truth["span_s"], finding["gain_s"])
        for run, finding in _true_findings(judged)
        if finding["gain_s"] and cause in (None, finding["id"])
    ]


def _coverage(gains: Gains) -> str:
    return _of(sum(low <= true <= high for true, (low, high) in gains), len(gains))


def _width(gains: Gains) -> str:
    widths = [(high - low) / max(true, 1e-9) for true, (low, high) in gains]
    return f"{np.median(widths):.0%}" if widths else "none"


def _true_findings(judged: list[Judged]) -> list[tuple[Judged, dict[str, Any]]]:
    """Return the findings above ``note`` that are measured causes."""
    return [(run, finding) for run in judged for finding in run.loud if finding["id"] in run.costs]


def _places(found: list[tuple[Judged, dict[str, Any]]]) -> str:
    right = [
        place_is_right(cause["id"], cause["where"], finding)
        for run, finding in found
        for cause in run.truth["causes"]
        if cause["id"] == finding["id"]
    ]
    return _of(sum(right), len(right))


def _unnamed_s(run: Judged) -> float:
    """Return what the causes that no finding names cost after those that are named are mended.

    Costs of several causes together were measured for pairs only: of more, the smallest remainder counts.
    """
    named = {cause for cause in run.costs if _is_named(run, cause)}
    left = [
        min([cause["alone_s"], *(left_s for name, left_s in cause["left_s"].items() if name in named)])
        for cause in run.truth["causes"]
        if cause["id"] not in named
    ]
    return max(left, default=0.0)


def _unexplained(judged: list[Judged]) -> str:
    known = [run for run in judged if run.unexplained_s is not None]
    near = [abs(run.unexplained_s - _unnamed_s(run)) <= NEAR * run.truth["span_s"] for run in known]
    return _of(sum(near), len(near))


def _gains_by_cause(judged: list[Judged]) -> list[tuple[object, ...]]:
    """Tabulate by cause: interval and place of what was found, and runs that have the habit at no cost."""
    rows = []
    for name in sorted({cause for run in judged for cause in run.costs}):
        found = [(run, finding) for run, finding in _true_findings(judged) if finding["id"] == name]
        gains = _gains(judged, name)
        harmless = [run for run in judged if name in run.truth["harmless"]]
        alarms = sum(any(finding["id"] == name for finding in run.loud) for run in harmless)
        rows.append(
            (name, len(found), _coverage(gains), _width(gains), _places(found), len(harmless), alarms)
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
            _of(int(true[place == number].sum()), int((place == number).sum())),
        )
        for number, (low, high) in enumerate(pairwise(CONFIDENCES))
        if (place == number).any()
    ]


def _true_share(judged: list[Judged]) -> str:
    found = [finding["id"] in run.costs for run in judged for finding in run.loud]
    return _of(sum(found), len(found))


def _true_notes(judged: list[Judged]) -> str:
    found = [finding["id"] in run.costs for run in judged for finding in run.quiet]
    return _of(sum(found), len(found))


def _confidence(judged: list[Judged]) -> str:
    found = [finding["confidence"] for run in judged for finding in run.loud]
    return f"{np.mean(found):.0%}" if found else "none"


def _by_cause(judged: list[Judged]) -> list[tuple[object, ...]]:
    from calibration.evaluate.drishti import CAUSES

    names = sorted({cause for run in judged for cause in run.costs})
    rows = []
    for name in names:
        runs = [run for run in judged if name in run.costs]
        missed = [run.costs[name] for run in runs if not _is_named(run, name)]
        false = sum(name not in run.costs and _is_named(run, name) for run in judged)
        told = sum(any(name in CAUSES[trigger] for trigger in run.drishti) for run in runs)
        rows.append(
            (
                name,
                len(runs),
                sum(_is_named(run, name) for run in runs),
                sum(name in run.refused for run in runs),
                sum(bool(run.loud) and run.loud[0]["id"] == name for run in runs),
                f"{np.mean(missed):.0%}" if missed else "",
                false,
                told,
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
