"""The step of the clock is found in durations, and modes are not taken for it."""

import numpy as np
import pytest

from ensembles import Ensemble
from ensembles.statistics.modes.density import LogCells
from ensembles.statistics.samples.clock_step import clock_step_of_counts_s, clock_step_s
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.summaries.bins import bin_low_ns


def by_clock(step_s, steps=9.0, sigma=0.5, n=20_000, rounding=np.rint, seed=11):
    return step_s * rounding(np.random.default_rng(seed).lognormal(np.log(steps), sigma, n))


@pytest.mark.parametrize("step_s", [1e-8, 1e-7, 1e-6, 4e-3, 2.0**-22])
@pytest.mark.parametrize("rounding", [np.rint, np.floor])
def test_step_is_found_from_durations_and_from_bins(step_s, rounding):
    durations_s = by_clock(step_s, rounding=rounding)
    assert clock_step_s(durations_s) == pytest.approx(step_s, rel=2e-3)
    assert clock_step_of_counts_s(CountedDurations.from_durations(durations_s).counts) == pytest.approx(
        step_s, rel=2e-3
    )


def test_step_is_found_where_a_bin_holds_several():
    durations_s = by_clock(1e-6, steps=90.0, sigma=0.4)
    assert clock_step_s(durations_s) == pytest.approx(1e-6)
    assert clock_step_of_counts_s(CountedDurations.from_durations(durations_s).counts) == pytest.approx(1e-6)


def test_step_is_found_though_times_went_through_coarse_floats():
    """A microsecond clock, then seconds since 1970 in floating-point numbers, which are 0.24 µs apart."""
    rng = np.random.default_rng(5)
    start_s = 1.7e9 + np.cumsum(rng.integers(30, 60, 20_000)) * 1e-6
    durations_s = (start_s + by_clock(1e-6)) - start_s
    assert clock_step_s(durations_s) == pytest.approx(1e-6, rel=0.01)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_tick_that_is_no_whole_number_of_ns_is_found(seed):
    """As of a time-stamp counter that advances every 10.017 ns."""
    true_ns = np.exp(np.random.default_rng(seed).normal(np.log(900), 0.08, 20_000))
    durations_s = np.round(np.floor(true_ns / 10.017) * 10.017) * 1e-9
    assert clock_step_s(durations_s) == pytest.approx(10.017e-9, rel=1e-3)
    assert len(Ensemble(durations_s).modes()) == 1


@pytest.mark.parametrize(("median_s", "sigma"), [(0.5e-6, 0.5), (1.2e-6, 0.15), (3e-6, 0.15), (10e-6, 0.15)])
def test_a_round_step_is_found_above_the_step_of_doubles_since_1970(median_s, sigma):
    """Two lattices: whole microseconds, each time rounded to 238 ns."""
    rng = np.random.default_rng(1)
    start_s, true_s = rng.uniform(0, 600, 20_000), rng.lognormal(np.log(median_s), sigma, 20_000)
    first_s, last_s = (np.floor(at * 1e6) / 1e6 + 1.6e9 for at in (start_s, start_s + true_s))
    durations_s = np.maximum(last_s - first_s, 0)
    assert clock_step_s(durations_s) == pytest.approx(1e-6)
    assert len(Ensemble(durations_s).modes()) == 1


def test_a_quantum_of_service_is_no_step_of_a_clock():
    """The paper's MADbench, simulated: reads near multiples of 91 ms, by a clock of 1 ns."""
    rng = np.random.default_rng(1)
    quanta = rng.choice([0.5, 1, 2, 3, 4, 5, 6, 8, 12, 24, 48, 72], 256)
    durations_s = quanta * 91.2e-3 * (1 + 0.02 * rng.standard_normal(256))
    assert clock_step_s(durations_s) == 0.0


@pytest.mark.parametrize(
    "durations_s",
    [
        np.random.default_rng(1).lognormal(-7, 0.3, 20_000),
        np.random.default_rng(1).lognormal(-7, 0.005, 20_000),
        32.0
        / np.random.default_rng(1).choice([1, 2, 4], 20_000)
        * np.random.default_rng(2).normal(1, 0.03, 20_000),
        np.full(100, 0.25),
        np.array([1.234567891e-3, 5.432198761e-3]).repeat(50),
        np.empty(0),
        np.zeros(5),
    ],
    ids=["wide", "narrow", "harmonics", "tied", "two values", "empty", "zero"],
)
def test_no_step_is_seen_where_there_is_none(durations_s):
    assert clock_step_s(durations_s) == 0.0
    assert clock_step_of_counts_s(CountedDurations.from_durations(durations_s).counts) == 0.0


def test_cells_hold_all_calls_and_are_as_wide_as_the_clock_tells():
    durations_s = by_clock(1e-6, steps=20.0, sigma=1.0)
    sample = CountedDurations.from_durations(durations_s)
    cells = LogCells.from_counts(sample.counts, 1e-6)
    assert cells.counts.sum() == len(durations_s)
    # Up to 32 µs every value has its own cell, half a step to each side; but zero and
    # one step share a cell.
    values, counts = np.unique(np.rint(durations_s * 1e6), return_counts=True)
    edges_us = np.exp(cells.edges) * 1e6
    assert cells.counts[0] == counts[values <= 1].sum()
    for value, count in zip(values, counts, strict=True):
        if 1 < value <= 32:
            cell = np.searchsorted(edges_us, value) - 1
            np.testing.assert_allclose(edges_us[cell : cell + 2], [value - 0.5, value + 0.5])
            assert cells.counts[cell] == count


def test_density_of_cells_has_no_teeth():
    """Calls uniform in log time: every cell's count over its width is the same, up to chance."""
    edges_ns = bin_low_ns().astype(np.float64)[500:900] - 0.5
    exact = np.zeros(len(bin_low_ns()), np.int64)
    exact[500:899] = np.rint(1e9 * np.diff(np.log(edges_ns)))
    cells = LogCells.from_counts(exact)
    np.testing.assert_allclose(cells.counts / cells.widths, 1e9, rtol=1e-6)


def test_coarser_cells_are_runs_of_cells():
    counts = CountedDurations.from_durations(np.random.default_rng(4).lognormal(-6, 1.5, 500)).counts
    cells = LogCells.from_counts(counts)
    coarse = cells.coarser(4, 0.1)
    assert coarse.counts.sum() == 500
    assert np.isin(coarse.edges, cells.edges).all()
    assert len(coarse.counts) < len(cells.counts)
    used = np.flatnonzero(counts)
    np.testing.assert_array_equal(np.bincount(coarse.cell_of_bin[used], counts[used]), coarse.counts)
