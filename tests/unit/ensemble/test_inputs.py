"""What an ensemble takes as durations, and what it refuses in one sentence."""

from datetime import timedelta

import numpy as np
import pytest

import ensembles as en


@pytest.mark.parametrize("unit", ["ns", "us", "ms"])
def test_differences_of_times_have_their_own_unit(unit):
    durations = np.array([50, 60], "timedelta64[ms]").astype(f"timedelta64[{unit}]")
    np.testing.assert_allclose(en.Ensemble(durations).durations_s, [0.05, 0.06])


def test_differences_of_python_and_pandas_have_their_own_unit():
    assert en.Ensemble([timedelta(seconds=1.5), timedelta(milliseconds=20)]).durations_s.tolist() == [
        1.5,
        0.02,
    ]
    pandas = pytest.importorskip("pandas")
    column = pandas.Series(pandas.to_timedelta([50, 60], unit="ms"))
    np.testing.assert_allclose(en.Ensemble(column).durations_s, [0.05, 0.06])


@pytest.mark.parametrize(
    ("durations", "why"),
    [
        (np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]), "masked"),
        (np.array([1.0, 2.0]) + 1j, "complex"),
        (np.array(["2020-01-01", "2020-01-02"], "datetime64[D]"), "datetime64"),
        (np.array(["NaT", 1], "timedelta64[s]"), "NaT"),
    ],
)
def test_what_is_no_plain_number_is_refused(durations, why):
    with pytest.raises(en.EnsioError, match=why):
        en.Ensemble(durations)


def test_a_masked_array_without_masked_values_is_an_array():
    assert en.Ensemble(np.ma.array([1.0, 2.0], mask=[0, 0])).n == 2


def test_masked_phases_are_refused():
    with pytest.raises(en.EnsioError, match="phase has masked values"):
        en.Ensemble([1.0, 2.0], phase=np.ma.array([0, 1], mask=[0, 1]))


def test_one_quantile_is_a_quantile():
    ensemble = en.Ensemble([1.0, 2.0, 3.0])
    assert ensemble.quantiles(0.5)[0.5].value == 2.0
    with pytest.raises(en.EnsioError, match="not numbers"):
        ensemble.quantiles("median")


@pytest.mark.parametrize("durations_s", [[1.0], [1.0, 2.0], [0.0268, 0.05, 0.06]])
def test_texts_of_few_calls_have_no_nan(durations_s):
    ensemble = en.Ensemble(durations_s)
    for found in (ensemble.moments(), ensemble.robust(), ensemble.quantiles([0, 0.5, 1])):
        assert "nan" not in str(found), str(found)
    assert "1 calls" not in str(en.Ensemble([1.0]).moments())


def test_the_median_of_the_short_text_is_that_of_quantiles():
    assert "median 1.50 s" in repr(en.Ensemble([1.0, 2.0]))
