"""Histograms of ensembles: those of NumPy over the same edges, by calls and by time."""

from __future__ import annotations

import numpy as np
import pytest

import ensembles as en
from ensembles.statistics.samples.histogram import compute_histogram


def durations(count: int) -> np.ndarray:
    return np.rint(np.random.default_rng(4).lognormal(-8, 1.5, count) * 1e9) * 1e-9


@pytest.mark.parametrize("scale", ["log", "linear"])
@pytest.mark.parametrize("weight", ["calls", "time"])
def test_of_few_calls_it_is_exact(scale: str, weight: str) -> None:
    x = durations(1500)
    found = en.Ensemble(x).histogram(scale, weight=weight)
    above = x + 1e-13 if scale == "log" else x  # edges on the log scale are whole ns, as are these
    expected, _ = np.histogram(above, found.edges_s, weights=x if weight == "time" else None)
    np.testing.assert_allclose(found.amounts, expected, atol=1e-9)
    total = x.sum() if weight == "time" else len(x)
    assert found.amounts.sum() == pytest.approx(total)


@pytest.mark.parametrize("bins", [1, 4, 32])
def test_on_the_log_scale_of_many_calls_it_is_exact_too(bins: int) -> None:
    x = durations(50_000)
    found = en.Ensemble(x).histogram(bins=bins)
    expected, _ = np.histogram(x + 1e-13, found.edges_s)
    np.testing.assert_allclose(found.amounts, expected, atol=1e-6)


def test_on_the_linear_scale_of_many_calls_it_is_right_within_bins_of_the_law() -> None:
    x = durations(50_000)
    found = en.Ensemble(x).histogram("linear", bins=20)
    expected, _ = np.histogram(x, found.edges_s)
    np.testing.assert_allclose(np.cumsum(found.amounts), np.cumsum(expected), rtol=0.01)


def test_density_integrates_to_one() -> None:
    for scale in ("log", "linear"):
        found = en.Ensemble(durations(3000), per="MiB").histogram(scale)
        edges = found.edges_s if scale == "linear" else np.log(found.edges_s)
        assert found.density @ np.diff(edges) == pytest.approx(1)


@pytest.mark.parametrize("x", [[], [0.0], [0.0, 0.0, 1.0], [2.0] * 5, [1e-9]], ids=str)
def test_odd_ensembles_have_histograms(x: list[float]) -> None:
    for scale in ("log", "linear"):
        found = en.Ensemble(x).histogram(scale)
        assert found.amounts.sum() == len(x)
        assert np.isfinite(found.density).all()
        assert len(found.to_json()["edges_s"]) == len(found.amounts) + 1


def test_arguments_that_make_no_sense_are_refused() -> None:
    ensemble = en.Ensemble([1.0])
    for arguments in ({"scale": "cubic"}, {"weight": "bytes"}, {"bins": 0}, {"bins": 33}):
        with pytest.raises(en.EnsioError, match="histogram of"):
            ensemble.histogram(**arguments)
    assert compute_histogram(ensemble.sample).amounts.sum() == 1


def test_it_is_drawn() -> None:
    from ensembles import viz

    tabs = viz.histogram(en.Ensemble(durations(100), name="pwrite", op="write"))
    assert [tab.title for tab in tabs.tabs] == ["log–log", "linear"]
    (item,) = tabs.tabs[0].child.legend.items
    assert item.label.value == "pwrite (n = 100)"
