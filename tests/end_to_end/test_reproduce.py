"""The papers' case studies, simulated at their full sizes."""

from __future__ import annotations

import re

import numpy as np
import pytest

from testbed.reproduce import benchio, gcrm, ior, madbench, sdumont, tapioca
from testbed.reproduce.figure import Figure, Row, near, rows_of, summary
from testbed.reproduce.fitted import FITS, listed, told
from testbed.reproduce.not_reproduced import OUTSIDE
from testbed.reproduce.page import HEADERS, PAGE, Kept, kept
from testbed.reproduce.runs import Runs

SEEDS = (20100604, 20100605, 20100606)


def rows_of_page() -> list[Kept]:
    """Return the rows of the committed page."""
    cells = re.findall(r"^\| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    found = [line.split(" | ") for line in cells]
    return [
        Kept(row[0], row[1], row[2], row[-1] == "yes")
        for row in found
        if len(row) == len(HEADERS) and tuple(row) != HEADERS
    ]


CASES = [
    # The pictures of these two are compared with those of the page of figures, from the same simulations.
    *(pytest.param(case, id=case.CASE, marks=pytest.mark.long) for case in (ior, gcrm)),
    *(pytest.param(case, id=case.CASE) for case in (madbench, sdumont, tapioca, benchio)),
]


@pytest.mark.all_cases
@pytest.mark.parametrize("seeds", [SEEDS[:1], pytest.param(SEEDS, marks=pytest.mark.long)], ids=len)
@pytest.mark.parametrize("case", CASES)
def test_a_case_study_comes_out_as_in_the_paper_or_has_a_reason(case, seeds, tmp_path):
    by_seed = []
    for seed in seeds:
        (tmp_path / str(seed)).mkdir()
        by_seed.append(list(case.figures(Runs(tmp_path / str(seed), seed))))
    rows = rows_of(by_seed)

    outside = {row.name for row in rows if not row.met}
    assert outside <= set(OUTSIDE), [row.cells() for row in rows if row.name in outside - set(OUTSIDE)]
    mine = {name for name in OUTSIDE if name[0] == case.CASE}
    assert mine <= {row.name for row in rows}
    # Rows at the edge of their tolerance (two of GCRM) are met with some seeds.
    assert len(mine - outside) <= 2, f"these are reproduced now: {mine - outside}"
    # The page has the same rows of the same kinds; which are met may differ between few seeds and twenty.
    of_page = [(row.case, row.what, row.kind) for row in rows_of_page() if row.case == case.CASE]
    assert of_page == [kept(row)[:3] for row in rows]


def test_the_page_counts_the_fitted_numbers_and_the_rows_that_they_explain():
    rows = rows_of_page()
    assert {row.case for row in rows} == {case for fit in FITS for case in fit.cases}
    text = PAGE.read_text()
    assert all(f"* {sentence}\n" in text for sentence in told(rows))
    assert all(f"* {sentence}\n" in text for sentence in listed([row.case for row in rows]))
    assert all(key in text for fit in FITS for keys in fit.numbers.values() for key in keys)
    predicted = [row.is_met for row in rows if row.kind == "predicted"]
    assert f"* predicted: {sum(predicted)} of {len(predicted)} within tolerance" in text
    assert all(f"* {row.case}, {row.what}: " in text for row in rows if not row.is_met)


@pytest.mark.parametrize("fit", FITS, ids=lambda fit: fit.machines)
def test_more_rows_come_out_than_numbers_are_fitted(fit):
    assert fit.explained(rows_of_page()) > fit.count()


def test_what_follows_by_construction_or_is_missed_is_not_explained_by_fitted_numbers():
    (fit,) = [each for each in FITS if each.machines == "Santos Dumont"]
    kinds = [("predicted", True), ("fitted", True), ("by construction", True), ("predicted", False)]
    rows = [Kept("SDumont", str(place), *kind) for place, kind in enumerate(kinds)]
    assert fit.explained([*rows, Kept("IOR", "of another machine", "predicted", True)]) == 2
    (sentence,) = told(rows)
    assert sentence.startswith("Santos Dumont: 2 fitted numbers and rules explain 2 ")


def test_no_tolerance_includes_that_nothing_happens():
    """A decrease of 0 % is outside of each interval for a decrease."""
    decrease = near("IOR", "decrease", "predicted", 3.4, 0.0, "%")
    assert not Row(decrease, np.zeros(3)).met


def test_a_row_has_median_and_range_of_its_seeds():
    figures = [[near("case", "what", "fitted", 10.0, ours)] for ours in (9.0, 11.0, 30.0)]
    (row,) = rows_of(figures)
    assert row.median == 11.0
    assert row.met
    assert row.cells()[4:6] == ("11 s", "9 – 30")
    assert summary([row]) == ["fitted: 1 of 1 within tolerance"]


def test_the_range_of_a_count_has_values_of_seeds():
    """One of twenty seeds finds nothing: an interpolated quantile had 2.85."""
    (row,) = rows_of(
        [[Figure("case", "modes", "predicted", 3, ours, 3, 3, "")] for ours in [0.0] + 19 * [3.0]]
    )
    assert row.met
    assert row.cells()[5] == "0 – 3"


def test_what_half_of_the_runs_do_not_show_is_not_met():
    values = [Figure("case", "what", "predicted", 1, ours, 0, 2) for ours in (1.0, np.nan, np.nan)]
    (row,) = rows_of([[value] for value in values])
    assert not row.met
    assert row.cells()[4] == "not seen"
