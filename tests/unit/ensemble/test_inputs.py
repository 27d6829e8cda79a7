"""Durations come as plain numbers, and as lengths of time of Python, NumPy and pandas."""

import datetime

import numpy as np
import pytest

import ensembles as en

SECONDS = np.array([0.5, 1.0, 1.5, 2.0, 2.5, 3.0])


@pytest.mark.parametrize(
    "values",
    [
        SECONDS,
        SECONDS.tolist(),
        np.ma.array(SECONDS),
        (SECONDS * 1e9).astype("timedelta64[ns]"),
        (SECONDS * 1e3).astype("timedelta64[ms]"),
        [datetime.timedelta(seconds=value) for value in SECONDS],
    ],
    ids=["array", "list", "nothing masked", "timedelta64[ns]", "timedelta64[ms]", "timedelta"],
)
def test_lengths_of_time_are_seconds(values):
    assert np.sort(en.Ensemble(values).durations_s).tolist() == SECONDS.tolist()


def test_pandas_lengths_of_time_are_seconds():
    pandas = pytest.importorskip("pandas")
    index = pandas.to_timedelta(SECONDS, unit="s")
    for values in (index, pandas.Series(index)):
        assert np.sort(en.Ensemble(values).durations_s).tolist() == SECONDS.tolist()
    with pytest.raises(en.EnsioError, match="1 of 2 durations are negative, not a number"):
        en.Ensemble(pandas.to_timedelta([1.0, None], unit="s"))


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (np.ma.array(SECONDS, mask=SECONDS > 2), "2 masked values: leave them out"),
        (np.array(["2020-01-01"], "datetime64[s]"), "not an array of numbers, but of datetime64"),
        ([1j], "not an array of numbers, but of complex128"),
        ([True, False], "not an array of numbers, but of bool"),
        (["a"], "not an array of numbers"),
        ([np.nan], "not a number"),
    ],
)
def test_what_is_no_duration_is_refused(values, told):
    with pytest.raises(en.EnsioError, match=told):
        en.Ensemble(values)


@pytest.mark.parametrize("phase", [SECONDS, np.full(6, np.nan), (SECONDS * 1e9).astype("timedelta64[ns]")])
def test_phases_and_ranks_are_whole_numbers(phase):
    with pytest.raises(en.EnsioError, match="phase is not an array of"):
        en.Ensemble(SECONDS, phase=phase)
    assert en.Ensemble(SECONDS, rank=np.zeros(6)).n == 6


def test_one_quantile_is_a_quantile():
    ensemble = en.Ensemble([1.0, 2.0, 3.0])
    assert ensemble.quantiles(0.5)[0.5].value == 2.0
    with pytest.raises(en.EnsioError, match="not numbers"):
        ensemble.quantiles("median")


@pytest.mark.parametrize("durations_s", [[1.0], [1.0, 2.0], [0.0268, 0.05, 0.06]])
def test_texts_of_few_calls_have_no_nan(durations_s):
    ensemble = en.Ensemble(durations_s)
    for found in (ensemble.moments(), ensemble.quantiles([0, 0.5, 1])):
        assert "nan" not in str(found), str(found)
    assert "1 calls" not in str(en.Ensemble([1.0]).moments())


def test_the_median_of_the_short_text_is_that_of_quantiles():
    assert "median 1.50 s" in repr(en.Ensemble([1.0, 2.0]))
