"""The papers' case studies, simulated at their full sizes."""

from __future__ import annotations

import pytest

from testbed.reproduce import gcrm, ior, madbench
from testbed.reproduce.runs import Runs

SEED = 20100604


@pytest.mark.parametrize("case", [ior, madbench, gcrm], ids=lambda case: case.CASE)
def test_a_case_study_comes_out_as_in_the_paper(case, tmp_path):
    figures = list(case.figures(Runs(tmp_path, SEED)))

    assert [figure.cells() for figure in figures if not figure.met] == []
