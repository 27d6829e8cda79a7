"""Score answers about runs whose causes are measured: part of the data set, needs only Python.

    python score.py answers.json

The answers say for each run of truth.json what a tool found, in the words of ``ensio diagnose --json``. Ids
are enough: {"run0000": {"findings": [{"id": "small-requests"}]}}, the most costly first. A finding may have a
90 % interval of its gain in seconds, ``gain_s``, and a ``severity``: a ``note`` is not counted as an alarm.
``not_examined`` lists objects with ids that the tool refuses to judge. A run may lack an answer.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import median
from typing import Any

SMALL = 0.02
"""Share of the run from which a habit is a cause."""

LARGE = 0.10
"""Share of the run from which a cause must be the first finding."""

NOT_IN_ONE_RUN = ("cache-cliff", "interference", "misaligned-requests")
"""Causes that a single run of the drawn programs does not show."""


class Judged:
    """One run: its measured causes, and the answer of a tool, with the processor time that it took."""

    def __init__(self, truth: dict[str, Any], said: dict[str, Any], seconds: float = 0.0) -> None:
        self.truth, self.said, self.seconds = truth, said, seconds
        self.costs = {cause["id"]: cause["alone_s"] / truth["span_s"] for cause in truth["causes"]}
        self.refused = [entry["id"] for entry in said.get("not_examined", ())]

    @property
    def loud(self) -> list[dict[str, Any]]:
        """Findings above ``note``."""
        return [finding for finding in self.said["findings"] if finding.get("severity") != "note"]

    @property
    def quiet(self) -> list[dict[str, Any]]:
        """Notes that may gain `SMALL` of the run, which the text of a diagnosis shows one by one."""
        least_s = SMALL * self.truth["span_s"]
        notes = [finding for finding in self.said["findings"] if finding.get("severity") == "note"]
        return [finding for finding in notes if finding["gain_s"] and finding["gain_s"][1] >= least_s]


def measures(judged: list[Judged]) -> list[tuple[str, str, str]]:
    """Return what holds for the answers of any tool: measure, result and aim."""
    healthy = [run for run in judged if not run.costs]
    quiet = sum(not run.loud for run in healthy)
    planted = [run for run in judged if run.costs]
    large = [run for run in planted if max(run.costs.values()) >= LARGE]
    return [
        ("healthy runs without a finding above note", share_text(quiet, len(healthy)), "98 %"),
        (
            "first finding is a cause, where one costs 10 % or more",
            share_text(sum(map(is_first, large)), len(large)),
            "90 %",
        ),
        ("causes of 10 % or more that are named", named(planted, LARGE, 2), "95 %"),
        ("the same, without those that are refused with advice", named(planted, LARGE, 2, told=True), ""),
        ("causes of 2 to 10 % that are named", named(planted, SMALL, LARGE), "60 %"),
        ("the same, notes that may gain 2 % included", named(planted, SMALL, LARGE, notes=True), ""),
        ("causes that are named, or refused with advice", named(planted, SMALL, 2, refused=True), "95 %"),
        (f"{', '.join(NOT_IN_ONE_RUN)}: refused with advice", _told(planted), "95 %"),
        ("pairs of causes of 5 % or more each: both named", _pairs(planted), "85 %"),
        ("the same, named or refused with advice", _pairs(planted, refused=True), ""),
        ("the same, of pairs without a cause that is refused", _pairs(planted, told=True), ""),
        ("90 % intervals of the gain that hold the measured gain", coverage(gains(judged)), "85 to 95 %"),
        ("median width of the interval, as a share of the gain", width(gains(judged)), "30 %"),
        ("findings above note that are causes", _true_share(judged), "confidence"),
    ]


def share_text(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / whole:.0%})" if whole else "none"


def is_first(run: Judged) -> bool:
    return bool(run.loud) and run.loud[0]["id"] in run.costs


def is_named(run: Judged, cause: str, refused: bool = False) -> bool:
    """Whether a finding above ``note`` names a cause, or names it as a symptom of another measured cause."""
    if any(finding["id"] == cause for finding in run.loud) or (refused and cause in run.refused):
        return True
    least_s = SMALL * run.truth["span_s"]
    left_s = next((each["left_s"] for each in run.truth["causes"] if each["id"] == cause), {})
    return any(
        cause in finding.get("symptoms", ()) and left_s.get(finding["id"], least_s) < least_s
        for finding in run.loud
    )


def named(
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
        is_named(run, cause, refused) or (notes and any(each["id"] == cause for each in run.quiet))
        for run, cause in wanted
    ]
    return share_text(sum(named), len(wanted))


def _told(runs: list[Judged]) -> str:
    """Count the causes that one run cannot show, and of these the ones that are refused."""
    wanted = [(run, cause) for run in runs for cause in run.costs if cause in NOT_IN_ONE_RUN]
    return share_text(sum(cause in run.refused for run, cause in wanted), len(wanted))


def _pairs(runs: list[Judged], refused: bool = False, told: bool = False) -> str:
    pairs = [run for run in runs if sum(cost >= 0.05 for cost in run.costs.values()) >= 2]
    if told:
        pairs = [run for run in pairs if not any(run.costs[c] >= 0.05 for c in run.costs if c in run.refused)]
    both = [
        all(is_named(run, cause, refused) for cause, cost in run.costs.items() if cost >= 0.05)
        for run in pairs
    ]
    return share_text(sum(both), len(both))


Gains = list[tuple[float, list[float]]]
"""Measured gains in seconds, and their intervals."""


def gains(judged: list[Judged], cause: str | None = None) -> Gains:
    return [
        (run.costs[finding["id"]] * run.truth["span_s"], finding["gain_s"])
        for run, finding in true_findings(judged)
        if finding.get("gain_s") and cause in (None, finding["id"])
    ]


def coverage(gains: Gains) -> str:
    return share_text(sum(low <= true <= high for true, (low, high) in gains), len(gains))


def width(gains: Gains) -> str:
    widths = [(high - low) / max(true, 1e-9) for true, (low, high) in gains]
    return f"{median(widths):.0%}" if widths else "none"


def true_findings(judged: list[Judged]) -> list[tuple[Judged, dict[str, Any]]]:
    """Return the findings above ``note`` that are measured causes."""
    return [(run, finding) for run in judged for finding in run.loud if finding["id"] in run.costs]


def _true_share(judged: list[Judged]) -> str:
    found = [finding["id"] in run.costs for run in judged for finding in run.loud]
    return share_text(sum(found), len(found))


def main() -> None:
    """Print the measures of a file of answers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("answers", type=argparse.FileType(), metavar="answers.json")
    answers = json.load(parser.parse_args().answers)
    truth = json.loads(Path(__file__).with_name("truth.json").read_text())
    print(f"{len(truth.keys() & answers.keys())} of {len(truth)} runs have an answer")
    judged = [Judged(truth[run], answers.get(run, {"findings": []})) for run in truth]
    for what, result, _ in measures(judged):
        print(f"{what:<70} {result}")


if __name__ == "__main__":
    main()
