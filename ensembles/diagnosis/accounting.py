"""Causes and symptoms: lost time is given to findings one after the other, the largest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.finding import FROM_SHARE, Finding, rate_severity

ALIKE = 0.9
"""Findings with this share of the largest gain, or more, gain nearly the same."""


def share_out(findings: Sequence[Finding], case: Case) -> tuple[list[Finding], float]:
    """Give the lost time to findings, and find symptoms.

    Parameters
    ----------
    findings : sequence of Finding
        With `Finding.saved_ns` where the rule knows it.
    case : Case

    Returns
    -------
    findings : list of Finding
        With `Finding.share_s` and `Finding.symptoms`, the causes first. A symptom is a note.
    unexplained_s : float
        Time for which the tasks of a phase wait for its slowest one, less what the findings explain.
    """
    rest = [finding for finding in findings if finding.saved_ns is not None]
    done: list[Finding] = [finding for finding in findings if finding.saved_ns is None]
    mended, explained_s = np.zeros(len(case)), 0.0
    least_s = FROM_SHARE["warning"] * case.span_s
    symptoms: list[Finding] = []
    while rest:
        gains = [case.gain_s(_both(case, mended, finding.saved_ns)) - explained_s for finding in rest]
        # Of findings that gain nearly the same, the first is the most specific.
        best = int(np.argmax(np.array(gains) >= ALIKE * max(gains))) if max(gains) > 0 else 0
        finding, share_s = rest.pop(best), max(gains[best], 0.0)
        if done and share_s < least_s <= case.gain_s(finding.saved_ns):
            symptoms.append(finding)
            continue
        mended = _both(case, mended, finding.saved_ns)
        explained_s += share_s
        done.append(replace(finding, share_s=share_s))
    for symptom in symptoms:
        cause = _cause_of(symptom, done, case)
        done[cause] = replace(done[cause], symptoms=(*done[cause].symptoms, symptom.id))
        done.append(replace(symptom, share_s=0.0, severity=rate_severity(0.0)))
    return done, max(case.waiting_s - explained_s, 0.0)


def _both(case: Case, mended: np.ndarray, saved: np.ndarray) -> np.ndarray:
    """Combine savings: what the first leaves of a row is saved at the second's share."""
    time_ns = np.maximum(case.rows["time_ns"], 1)
    both: np.ndarray = mended + saved * np.maximum(1 - mended / time_ns, 0)
    return both


def _cause_of(symptom: Finding, causes: Sequence[Finding], case: Case) -> int:
    """Return the number of the cause after whose remedy least is left of a symptom."""
    left = []
    for cause in causes:
        if cause.saved_ns is None or cause.share_s is None:
            left.append(np.inf)
            continue
        left.append(case.gain_s(_both(case, cause.saved_ns, symptom.saved_ns)) - case.gain_s(cause.saved_ns))
    return int(np.argmin(left))
