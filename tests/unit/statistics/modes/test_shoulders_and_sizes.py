"""What modes say beside their places: shoulders on their flanks, and the sizes of the calls in each."""

import numpy as np
import pytest
from scipy import stats

from ensembles import Ensemble
from ensembles.statistics.modes.modes import fit_modes
from ensembles.statistics.samples.counted_durations import CountedDurations

MIB = 1 << 20


def test_a_shoulder_is_told_with_its_place_and_share():
    """Two modes three widths apart have no antimode between them, but the flank is not concave."""
    rng = np.random.default_rng(1)
    second = rng.random(20_000) < 0.2
    durations_s = 1e-3 * np.exp(0.15 * (rng.standard_normal(20_000) + 3 * second))
    found = fit_modes(CountedDurations.from_durations(durations_s))
    assert len(found) == 1
    (shoulder,) = found.shoulders
    assert shoulder.mode == 0
    assert np.log(shoulder.t_s / 1e-3) / 0.15 == pytest.approx(3, abs=1)
    assert shoulder.share == pytest.approx(0.2, abs=0.1)
    assert "shoulder: mode 1 has one near" in str(found.shoulders[0])


@pytest.mark.parametrize(
    "family",
    [stats.lognorm(0.4), stats.gamma(2), stats.weibull_min(3), stats.pareto(2), stats.t(5)],
    ids=["log-normal", "gamma", "Weibull", "Pareto", "heavy tails"],
)
def test_one_kind_of_calls_has_no_shoulder(family):
    for seed in range(5):
        drawn = family.rvs(20_000, random_state=np.random.default_rng(seed))
        durations_s = 1e-3 * (np.exp(0.2 * drawn) if (drawn < 0).any() else drawn)
        assert fit_modes(CountedDurations.from_durations(durations_s), size=2).shoulders == ()


@pytest.fixture
def per_mib():
    """Three sizes at one speed with 5 ms of latency: the modes of time per MiB are the sizes."""
    rng = np.random.default_rng(2)
    sizes = rng.choice([MIB // 16, MIB, 16 * MIB], 3000)
    durations_s = (5e-3 + sizes / MIB * 20e-3) * rng.lognormal(0, 0.05, 3000)
    return Ensemble(durations_s / (sizes / MIB), bytes=sizes, per="MiB", resolution_s=0.0)


def test_modes_per_mib_are_tabulated_by_size(per_mib):
    found = per_mib.modes()
    assert len(found) == 3
    assert [(row.low_bytes, row.high_bytes) for row in found.sizes] == [
        (size, size) for size in (MIB // 16, MIB, 16 * MIB)
    ]
    assert sum(row.calls for row in found.sizes) == 3000
    assert [int(np.argmax(row.shares)) for row in found.sizes] == [2, 1, 0]
    assert all(max(row.shares) > 0.95 and sum(row.shares) <= 1 + 1e-9 for row in found.sizes)
    text = str(found)
    assert "64.0 KiB" in text or "64 KiB" in text
    assert found.to_json()["sizes"][0]["low_bytes"] == MIB // 16


def test_many_sizes_are_tabulated_by_octave(per_mib):
    rng = np.random.default_rng(3)
    sizes = rng.integers(1 << 12, 1 << 15, 2000)
    ensemble = Ensemble(rng.lognormal(-3, 0.2, 2000), bytes=sizes, per="MiB", resolution_s=0.0)
    rows = ensemble.modes().sizes
    assert len(rows) == 3
    assert all(row.high_bytes < 2 * row.low_bytes for row in rows)
    assert sum(row.calls for row in rows) == 2000


def test_the_step_of_durations_per_mib_has_its_unit(per_mib):
    per_call = Ensemble(per_mib.durations_s, resolution_s=1e-4)
    assert "Timer resolution: 100 µs." in str(per_call.modes())
    scaled = Ensemble(per_mib.durations_s, per="MiB", resolution_s=1e-4)
    assert "Timer resolution: 100 µs/MiB." in str(scaled.modes())


def test_text_of_calls_without_a_mode_says_how_they_lie():
    ensemble = Ensemble(np.random.default_rng(5).uniform(0.04, 0.44, 400), name="write")
    text = str(ensemble.modes())
    assert text.startswith("No mode in 400 calls (write)\n")
    assert "Spread: 100.0 % of the calls (100 % of the time) lie between" in " ".join(text.split())
    assert "without a peak (their density in log time is rising)" in " ".join(text.split())


def test_text_of_one_mode_claims_no_more_than_the_calls_show():
    ensemble = Ensemble(np.random.default_rng(6).lognormal(0, 0.3, 40))
    text = str(ensemble.modes())
    assert "100.0 %" in text
    assert "(100.0 % – 100.0 %)" not in text
    assert "Too few calls to count modes. One of less than 15 % would not be seen." in text
