"""Harmonics are found where modes are fractions of one, and distinguished from coincidence."""

import numpy as np
import pytest

from ensembles import Ensemble
from ensembles.model.errors import EnsioError
from ensembles.statistics.modes.harmonics import find_fair_share, find_harmonics, find_time_slices
from ensembles.statistics.modes.modes import fit_modes
from ensembles.statistics.samples.counted_durations import CountedDurations


def franklin(rng, n=4096, per_s=32.0, spread=0.06):
    """Calls as in the first figure of the paper: at R, R/2 and R/4."""
    order = rng.choice([1, 2, 4], n, p=[0.6, 0.25, 0.15])
    return per_s / order * np.exp(spread * rng.standard_normal(n))


def at(places, error=0.01, range_log=4.6, seed=0):
    places = np.asarray(places, dtype=float)
    return find_harmonics(places * (1 - error), places, places * (1 + error), range_log, seed)


def test_harmonics_of_the_papers_ensemble():
    found = fit_modes(CountedDurations.from_durations(franklin(np.random.default_rng(20))))
    assert len(found) == 3
    assert found.harmonics.orders == (1, 2, 4)
    assert found.harmonics.modes == (2, 1, 0)
    assert found.harmonics.fundamental_s == pytest.approx(32, rel=0.02)
    assert found.harmonics.chance <= 0.01
    assert "R/4" in str(found.harmonics)


def test_the_two_modes_of_t_and_half_of_it():
    found = at([8.0, 16.0])
    assert (found.orders, found.modes) == ((1, 2), (1, 0))
    assert found.fundamental_s == pytest.approx(16)


def test_other_modes_do_not_hide_harmonics():
    found = at([1.0, 7.97, 11.0, 16.03, 32.0, 100.0])
    assert found.orders == (1, 2, 4)
    assert found.modes == (4, 3, 1)
    assert found.deviation < 0.01


@pytest.mark.parametrize("places", [[5.0], [8.0, 11.0], [8.0, 9.6, 11.5]])
def test_modes_that_are_no_fractions_are_no_harmonics(places):
    assert at(places) is None


def test_places_that_are_hardly_known_prove_nothing():
    assert at([8.0, 16.0], error=0.3) is None


@pytest.mark.long
@pytest.mark.parametrize("modes", [2, 4, 8])
def test_modes_at_random_are_rarely_taken_for_harmonics(modes):
    """At most 5 %; of 200 so placed, 99 % of such counts are 18 or less."""
    rng = np.random.default_rng([21, modes])
    found = [at(np.exp(np.sort(rng.uniform(0, np.log(100), modes))), seed=i) for i in range(200)]
    assert sum(one is not None for one in found) <= 18


def test_fair_share_is_the_limit_over_the_tasks():
    share = find_fair_share([32.0, 8.0], 16e9, 1024, 512e6)
    assert share.rate_bytes_per_s == pytest.approx(15_625_000)
    assert share.duration_s == pytest.approx(32.768)
    assert share.speed == pytest.approx((1.024, 4.096))


def test_an_ensemble_knows_its_calls_sizes():
    durations_s = franklin(np.random.default_rng(22))
    ensemble = Ensemble(durations_s, bytes=np.full(4096, 500_000_000))
    found = ensemble.modes(limit_bytes_per_s=16e9, tasks=1024)
    assert found.fair_share.duration_s == pytest.approx(32.0)
    assert found.fair_share.speed == pytest.approx((4, 2, 1), rel=0.03)
    with pytest.raises(EnsioError, match="calls of known sizes"):
        Ensemble(durations_s).modes(limit_bytes_per_s=16e9, tasks=1024)
    sizes = np.random.default_rng(1).integers(1, 1000, 4096)
    with pytest.raises(EnsioError, match=r"calls of one size.*--per-byte"):
        Ensemble(durations_s, bytes=sizes).modes(limit_bytes_per_s=16e9, tasks=1024)


@pytest.mark.parametrize("wrong", [(0, 4, 1), (1e9, 0, 1), (1e9, 4, 0)])
def test_a_fair_share_of_nothing_is_refused(wrong):
    with pytest.raises(EnsioError, match="above zero"):
        find_fair_share([1.0], *wrong)


SLICES_S = [0.0008, 0.00405, 0.00798, 0.0121, 0.0159]


def slices_at(places, error=0.01, crowded=""):
    places = np.asarray(places, dtype=float)
    return find_time_slices(places * (1 - error), places, places * (1 + error), crowded)


def test_multiples_of_a_tick_are_time_slices():
    found = slices_at(SLICES_S)
    assert (found.slice_s, found.multiples, found.modes) == (0.004, (1, 2, 3, 4), (1, 2, 3, 4))
    assert found.deviation == pytest.approx(0.025)
    assert "modes at multiples of 4 ms (1, 2, 3 and 4 times" in str(found)
    assert "a tick of the kernel" in str(found)
    crowded = slices_at(SLICES_S, crowded="8 tasks share the 2 processors of n1")
    assert "a time slice: 8 tasks share the 2 processors of n1, and calls wait for a" in str(crowded)
    assert [slices_at(np.array([1.01, 1.99, 3.02, 3.98]) * s).slice_s for s in (0.001, 0.01)] == [0.001, 0.01]


@pytest.mark.parametrize("places", [[0.004], [0.0055, 0.0095, 0.0143], [0.4, 0.8, 1.2], [0.0004, 0.0008]])
def test_other_modes_are_no_time_slices(places):
    assert slices_at(places) is None


@pytest.mark.parametrize("crowded", ["", "8 tasks share the 2 processors of n1"])
def test_modes_at_random_are_rarely_taken_for_time_slices(crowded):
    """At most 1 %, or 4 %; of 300 so placed, 99 % of such counts are 8, or 20, or less."""
    rng = np.random.default_rng(5)
    found = [slices_at(np.exp(np.sort(rng.uniform(-7, -3, 5))), crowded=crowded) for _ in range(300)]
    assert sum(one is not None for one in found) <= (20 if crowded else 8)


def test_calls_without_bytes_have_no_fair_share_and_shared_processors_have_slices():
    rng = np.random.default_rng(20)
    durations_s = franklin(rng, per_s=0.016)
    written, synced, crowded = (Ensemble(durations_s, op=op) for op in ("write", "sync", "write"))
    crowded.crowded = "8 tasks share the 2 processors of n1"
    assert written.modes().harmonics.orders == (1, 2, 4)
    assert written.modes().time_slices is None
    assert synced.modes().harmonics is None
    assert Ensemble(3.1 * durations_s, op="meta").modes().harmonics is None
    found = crowded.modes()
    assert found.harmonics is None
    assert found.time_slices.multiples == (1, 2, 4)
    assert found.to_json()["time_slices"]["crowded"] == crowded.crowded
    assert "multiples of 4 ms (1, 2 and 4 times" in str(found)
