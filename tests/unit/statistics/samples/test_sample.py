"""A sample holds what its durations are, phase by phase."""

import numpy as np
import pytest

from ensembles.model.errors import EnsioError
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.summaries.bins import bin_low_ns


def some_durations():
    rng = np.random.default_rng(3)
    return rng.lognormal(-7, 1.5, 5000), rng.integers(10, 17, 5000)


def test_counts_are_those_of_numpy_over_the_edges_of_the_bins():
    durations_s, phase = some_durations()
    sample = CountedDurations.from_durations(durations_s, phase)
    ns = np.rint(durations_s * 1e9)
    edges = np.append(bin_low_ns().astype(float), 2.0**64)
    np.testing.assert_array_equal(sample.counts, np.histogram(ns, edges)[0])
    assert sample.total == sample.counts.sum() == 5000
    for place, number in enumerate(sample.phase):
        mine = phase == number
        part = slice(*sample.begin[place : place + 2])
        found = np.histogram(ns[mine], edges)[0]
        np.testing.assert_array_equal(sample.bin[part], np.flatnonzero(found))
        np.testing.assert_array_equal(sample.count[part], found[found > 0])
        assert (sample.n[place], sample.min_s[place], sample.max_s[place]) == (
            mine.sum(),
            durations_s[mine].min(),
            durations_s[mine].max(),
        )


def test_chosen_phases_are_the_sample_of_their_calls():
    durations_s, phase = some_durations()
    some = CountedDurations.from_durations(durations_s, phase).chosen(
        np.array([True, False, False, True, False, True, False])
    )
    mine = np.isin(phase, [10, 13, 15])
    other = CountedDurations.from_durations(durations_s[mine], phase[mine])
    for name in ("phase", "n", "min_s", "max_s", "begin", "bin", "count"):
        np.testing.assert_array_equal(getattr(some, name), getattr(other, name), err_msg=name)


def test_pooled_is_the_sample_without_phases():
    durations_s, phase = some_durations()
    pooled, other = (
        CountedDurations.from_durations(durations_s, phase).pooled(),
        CountedDurations.from_durations(durations_s),
    )
    for name in ("phase", "n", "min_s", "max_s", "begin", "bin", "count", "phases_known"):
        np.testing.assert_array_equal(getattr(pooled, name), getattr(other, name), err_msg=name)


def test_an_empty_sample_has_no_phase():
    sample = CountedDurations.from_durations(np.empty(0))
    assert (sample.total, len(sample.phase), sample.begin.tolist()) == (0, 0, [0])
    assert sample.pooled().begin.tolist() == [0]
    assert len(sample.chosen(np.empty(0, bool)).n) == 0


@pytest.mark.parametrize("bad", [-1e-9, np.nan, np.inf, 1e10])
def test_durations_that_make_no_sense_are_refused_in_one_sentence(bad):
    with pytest.raises(EnsioError, match=r"^1 of 3 durations are negative, not a number"):
        CountedDurations.from_durations(np.array([1.0, bad, 2.0]))
