"""Lost time is given to all findings with a gain, and more stripes do not shorten what clients lose."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from made_io import MIB, Made, io_run

from ensembles.diagnosis.accounting import share_out
from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence import Evidence
from ensembles.diagnosis.evidence_rule import SUMMARY, case_of
from ensembles.diagnosis.finding import Finding, Where
from ensembles.diagnosis.rules.not_io import rule
from ensembles.passes.group import SummaryRequest


@pytest.fixture
def case(tmp_path) -> Case:
    # Four tasks read 10 × 5 ms and write 10 × 3 ms: 80 ms.
    calls = [
        made
        for number in range(10)
        for made in (
            Made("pread", 5000, MIB, number * MIB, gap_us=0),
            Made("pwrite", 3000, MIB, number * MIB, gap_us=0),
        )
    ]
    run = io_run(tmp_path / "a", [calls] * 4)
    return case_of(run, run.summarize({SUMMARY: SummaryRequest(Evidence.for_run, Evidence.columns)})[SUMMARY])


def found(cause: str, gain_s: tuple[float, float], **more: object) -> Finding:
    return Finding(cause, 0.95, Where(op="read"), {"run_s": 0.08}, (), "", gain_s, cause, **more)


def test_more_stripes_do_not_shorten_what_calls_lose_in_the_client(case):
    # Half of all reads is lost in the client; eight stripes save 7/8 of what is left: 7/8 of 80 - 25 ms.
    stripes = found("single-stripe", (0.06, 0.07), saved_ns=7 / 8 * case.rows["time_ns"])
    reads = np.where(case.op == "read", 0.5 * case.rows["time_ns"], 0.0)
    client = found("strided-readahead", (0.025, 0.025), saved_ns=reads)
    shares = {each.id: each for each in share_out([client, stripes], case)[0]}
    alone_s = 7 / 8 * 0.055
    assert shares["single-stripe"].gain_s == pytest.approx((0.06 * 55 / 80, 0.07 * 55 / 80), rel=1e-3)
    assert case.gain_s(shares["single-stripe"].saved_ns) == pytest.approx(alone_s, rel=1e-3)
    assert sum(each.share_s for each in shares.values()) <= case.span_s
    (alone,), *_ = share_out([replace(stripes)], case)
    assert alone.gain_s == (0.06, 0.07)


@pytest.mark.parametrize(
    ("first", "second", "low_s", "is_symptom"),
    [
        ("sync-per-write", "imbalance", 0.077, True),
        ("sync-per-write", "imbalance", 0.05, False),
        ("o-sync", "small-requests", 0.05, True),  # one of them explains what these calls cost
    ],
)
def test_a_symptom_is_one_also_if_its_cause_saves_less_than_expected(first, second, low_s, is_symptom, case):
    # The cause saves 98 % of all calls: of the 15 ms that the other finding saves in writes 0.3 ms are left.
    # Halfway to a lower end of 50 ms, the cause saves 80 %, and 3 ms are left of a run of 80 ms.
    cause = found(first, (low_s, 0.08), saved_ns=0.98 * case.rows["time_ns"])
    half = np.where(case.op == "write", 0.5 * case.rows["time_ns"], 0.0)
    other = found(second, (0.014, 0.016), saved_ns=half)
    shared = {each.id: each for each in share_out([cause, other], case)[0]}
    assert shared[first].symptoms == (second,) * is_symptom
    assert shared[second].severity == ("note" if is_symptom else "warning")  # a second is critical once


def test_the_spread_of_phases_that_gain_in_proportion_to_their_length_is_no_error(tmp_path):
    # Phases of 1, 2, 4 and 8 ms, each of which a remedy halves: 7.5 ms, with the least margin only.
    calls = []
    for number in range(4):
        calls += [Made("pwrite", 1000 * 2**number, MIB, number * MIB), Made("MPI_Barrier", 100)]
    run = io_run(tmp_path / "a", [calls] * 4)
    case = case_of(run, run.summarize(dict(rule.NEEDS))[SUMMARY])
    half = np.where(case.op == "write", 0.5 * case.rows["time_ns"], 0.0)
    assert len(case.windows) == 4
    low, high = case.model.interval_s(half, half, half)
    assert (low, high) == pytest.approx((0.9 * 7.5e-3, 1.1 * 7.5e-3), rel=0.01)
