"""What `single-stripe` promises against the measured gain: the same simulated run with eight stripes."""

from __future__ import annotations

import sys

import pytest
from project import ROOT

import ensembles as en
from ensembles.diagnosis.rules.stripes import single_stripe

sys.path.insert(0, str(ROOT))
from calibration.evaluate.draw import draw
from calibration.evaluate.truth import make_run

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("seed", "healthy"), [(6_000_021, False), (6_000_057, True), (6_000_078, True)])
def test_the_gain_of_more_stripes_lies_in_the_interval(seed, healthy, tmp_path):
    drawn = draw(seed, healthy)
    assert drawn.settings["stripe_count"] == 1
    truth = make_run(drawn, tmp_path / "run")
    (found,) = en.diagnose(en.open(str(tmp_path / "run")), [single_stripe]).findings
    (gained_s,) = (cause["alone_s"] for cause in truth["causes"] if cause["id"] == "single-stripe")
    assert found.severity != "note"
    assert found.gain_s[0] <= gained_s <= found.gain_s[1]
    assert gained_s > 0.1 * truth["span_s"]


def test_parts_that_lie_rounds_of_stripes_apart_promise_less(tmp_path):
    """A task writes 2 of its 8 MiB in a phase, in stripes of 1 MiB: of 8 targets, one or two have work."""
    drawn = draw(6_000_060, True)
    truth = make_run(drawn, tmp_path / "run")
    run = en.open(str(tmp_path / "run"))
    writes = run.select(op="write", phase=1)
    assert set((writes.offset >> 20) % 8) == {0, 1}
    (found,) = en.diagnose(run, [single_stripe]).findings
    (gained_s,) = (cause["alone_s"] for cause in truth["causes"] if cause["id"] == "single-stripe")
    assert found.gain_s[0] <= gained_s <= found.gain_s[1]
    assert found.gain_s[1] < 0.6 * truth["span_s"]
