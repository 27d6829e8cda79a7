"""Modes are found where there are some, and not where there are none."""

import json

import numpy as np
import pytest
from real_tables import real_table
from scipy import optimize, stats

from ensembles import Ensemble
from ensembles.answers.modes import ModesAnswer
from ensembles.model.errors import EnsioError
from ensembles.statistics.modes.modes import Modes, fit_modes
from ensembles.statistics.samples.clock_step import clock_step_s
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.summaries.bins import BIN_COUNT, bin_low_ns


def normal_modes(rng, n, places_s, sigma, weights):
    """Calls of log-normal modes, and the number of the mode of each."""
    mode = rng.choice(len(places_s), n, p=np.array(weights) / np.sum(weights))
    return np.array(places_s)[mode] * np.exp(sigma * rng.standard_normal(n))


def counted(cdf, n, rng):
    """A sample of so many calls, drawn bin by bin: as good for a billion as for a thousand."""
    edges_s = (np.append(bin_low_ns().astype(np.float64), 2.0**63) - 0.5) * 1e-9
    chance = np.diff(cdf(np.maximum(edges_s, 0)))
    counts = rng.multinomial(n, chance / chance.sum())[:BIN_COUNT]
    used = np.flatnonzero(counts)
    low_s = bin_low_ns().astype(np.float64) * 1e-9
    return CountedDurations(
        phase=np.zeros(1, np.int64),
        n=np.array([n]),
        min_s=low_s[used[:1]],
        max_s=low_s[used[-1:] + 1],
        begin=np.array([0, len(used)]),
        bin=used,
        count=counts[used],
        phases_known=False,
    )


UNIMODAL = {
    "log-normal": stats.lognorm(0.4, scale=1e-3).cdf,
    "wide log-normal": stats.lognorm(1.5, scale=1e-3).cdf,
    "gamma": stats.gamma(2, scale=1e-3).cdf,
    "Weibull": stats.weibull_min(0.7, scale=1e-3).cdf,
    "near the clock": stats.lognorm(0.7, scale=6e-8).cdf,
}


MONOTONE = {
    "uniform": (stats.uniform(0.04, 0.4).cdf, "rising"),
    "uniform in log time": (stats.loguniform(0.04, 0.44).cdf, "even"),
    "Pareto": (stats.pareto(1.5, scale=0.04).cdf, "falling"),
}


@pytest.mark.parametrize("name", UNIMODAL)
def test_one_mode_stays_one_from_a_thousand_calls_to_a_thousand_million(name):
    rng = np.random.default_rng(101)
    sizes = (10**3, 10**4, 10**5, 10**7, 10**9)
    assert [len(fit_modes(counted(UNIMODAL[name], n, rng), size=2)) for n in sizes] == [1] * 5


@pytest.mark.parametrize("name", MONOTONE)
def test_a_density_without_a_peak_is_spread_at_any_number_of_calls(name):
    """Of log time: uniform durations rise, and a Pareto law falls from its cliff."""
    rng = np.random.default_rng(104)
    cdf, shape = MONOTONE[name]
    for n in (100, 10**3, 10**5, 10**7):
        found = fit_modes(counted(cdf, n, rng), size=20)
        assert (found.modes, found.bumps) == ((), ())
        assert [(part.shape, part.share) for part in found.spread] == [(shape, 1.0)]
        assert found.spread[0].low_s < 0.05
        assert found.spread[0].high_s > 0.4
    assert "without a peak" in str(ModesAnswer(**vars(found)))


@pytest.mark.long
@pytest.mark.parametrize(("phases", "calls"), [(5, 8), (5, 200), (20, 64)])
@pytest.mark.parametrize("sigma_of_phases", [0.0, 0.2])
def test_intervals_of_small_samples_hold_the_mode(phases, calls, sigma_of_phases):
    """Nominally in 90 % of ensembles; less than 75 % of 40 are significantly fewer."""
    rng = np.random.default_rng([phases, calls, round(10 * sigma_of_phases)])
    phase, held, found = np.repeat(np.arange(phases), calls), 0, 0
    for _ in range(40):
        places = rng.normal(-1, sigma_of_phases, phases)[phase] if sigma_of_phases else -1.0
        durations_s = np.exp(rng.normal(places, 0.5, len(phase)))
        for mode in fit_modes(CountedDurations.from_durations(durations_s, phase)).modes:
            assert durations_s.min() <= mode.low_s < mode.t_s < mode.high_s <= durations_s.max()
            found += 1
            held += mode.low_s <= np.exp(-1) <= mode.high_s
    assert found >= 33
    assert held >= 0.75 * found


@pytest.mark.long
@pytest.mark.parametrize(
    ("draw", "mode_s"),
    [
        (lambda rng: 0.5 * rng.gamma(2, size=40), 1.0),
        (lambda rng: rng.weibull(3, 40), 1.0),
    ],
)
def test_intervals_of_forty_calls_of_a_skewed_density_hold_the_mode(draw, mode_s):
    """Estimate and replicates are drawn towards the heavier flank: the short side of the interval missed."""
    rng = np.random.default_rng(40)
    phase = np.repeat(np.arange(5), 8)
    held = []
    for _ in range(120):
        modes = fit_modes(CountedDurations.from_durations(1e-3 * draw(rng), phase)).modes
        if modes:
            mode = max(modes, key=lambda mode: mode.weight)
            held.append(mode.low_s <= 1e-3 * mode_s <= mode.high_s)
    assert np.mean(held) >= 0.84


def test_forty_uniform_durations_have_no_mode_at_the_longest():
    rng = np.random.default_rng(2)
    found = [
        fit_modes(CountedDurations.from_durations(rng.uniform(0.04, 0.44, 40), np.tile(np.arange(5), 8)))
        for _ in range(20)
    ]
    assert sum(len(modes.spread) == 1 and not modes.modes for modes in found) >= 14
    for mode in (mode for modes in found for mode in modes.modes):
        assert mode.low_s < mode.t_s < mode.high_s < 0.44


@pytest.mark.parametrize(("calls", "far", "ratio"), [(20, 0, 1), (40, 2, 1000), (40, 5, 30), (50, 5, 1000)])
def test_a_hill_of_few_calls_is_a_mode_with_and_without_calls_far_away(calls, far, ratio):
    """One to three far calls, or few calls at all, made a hill "calls without a peak"."""
    rng = np.random.default_rng([41, calls, far])
    found = []
    for _ in range(30):
        hill_s = 1e-3 * rng.lognormal(0, 0.3, calls - far)
        far_s = ratio * 1e-3 * rng.lognormal(0, 0.4, far)
        found.append(fit_modes(CountedDurations.from_durations(np.append(hill_s, far_s))))
    assert sum(bool(modes.spread) for modes in found) <= 4
    assert all(modes.modes or modes.spread for modes in found)


def test_two_hills_three_decades_apart_are_two_modes():
    for seed in (1, 2, 3):
        rng = np.random.default_rng(seed)
        ends = [(0.2e-3, 1e-3, 136), (1e-3, 56e-3, 42), (56e-3, 0.72, 78)]
        durations_s = np.concatenate([np.exp(rng.uniform(np.log(a), np.log(b), n)) for a, b, n in ends])
        found = fit_modes(CountedDurations.from_durations(durations_s))
        near, far = found.modes
        assert 0.2e-3 < near.low_s < near.t_s < near.high_s < 1e-3
        assert 56e-3 < far.low_s < far.t_s < far.high_s < 0.72


def test_a_valley_between_ticks_is_no_mode():
    durations_s = 1e-6 * np.repeat([2, 3, 4, 5, 6, 7], [300, 6000, 2750, 6900, 4100, 1000])
    found = fit_modes(CountedDurations.from_durations(durations_s), resolution_s=1e-6)
    assert [round(mode.t_s * 1e6) for mode in found.modes] == [3, 5]
    assert [(mode.low_s * 1e6, mode.high_s * 1e6) for mode in found.modes] == [
        (pytest.approx(2.5), pytest.approx(3.5)),
        (pytest.approx(4.5), pytest.approx(5.5)),
    ]


@pytest.mark.parametrize("n", [2000, 20_000, 10**6])
@pytest.mark.parametrize("modes", [2, 3, 5])
def test_number_place_weight_and_width_of_known_modes(n, modes):
    rng = np.random.default_rng([n, modes])
    places_s = 2e-3 * 1.5 ** np.arange(modes)
    weights = np.linspace(1, 2, modes) / np.linspace(1, 2, modes).sum()
    found = fit_modes(
        CountedDurations.from_durations(normal_modes(rng, n, places_s, 0.05, weights)), level=0.999
    )
    assert len(found) == modes
    assert found.p_one_mode < 1e-3
    for mode, t_s, weight in zip(found.modes, places_s, weights, strict=True):
        assert mode.low_s <= t_s <= mode.high_s < 1.1 * mode.low_s
        assert mode.weight_low <= weight <= mode.weight_high
        assert mode.width_low <= 0.05 <= mode.width_high
    assert sum(mode.weight for mode in found.modes) == pytest.approx(1)


def test_modes_a_factor_of_1_3_apart_and_of_2_percent():
    rng = np.random.default_rng(8)
    durations_s = normal_modes(rng, 100_000, [1e-3, 1.3e-3, 5e-3], 0.05, [0.60, 0.38, 0.02])
    found = fit_modes(CountedDurations.from_durations(durations_s))
    np.testing.assert_allclose([mode.t_s for mode in found.modes], [1e-3, 1.3e-3, 5e-3], rtol=0.02)
    assert found.modes[2].weight == pytest.approx(0.02, abs=0.002)


def test_a_shallow_antimode_beside_few_calls_divides():
    """5 % of the calls, 4.6 standard deviations away, which blocks find in four of ten ensembles."""
    numbers = []
    for seed in range(10):
        rng = np.random.default_rng([41, seed])
        durations_s = 1e-3 * np.where(rng.random(5000) < 0.05, 2.0, 1.0) * rng.lognormal(0, 0.15, 5000)
        numbers.append(len(fit_modes(CountedDurations.from_durations(durations_s), size=2).modes))
    assert numbers.count(2) >= 8
    assert max(numbers) == 2


def test_modes_stand_out_of_a_background():
    rng = np.random.default_rng(9)
    durations_s = normal_modes(rng, 20_000, [1e-3, 3e-3], 0.1, [0.5, 0.5])
    durations_s[:2000] = np.exp(rng.uniform(np.log(1e-4), np.log(1e-1), 2000))
    assert len(fit_modes(CountedDurations.from_durations(durations_s))) == 2


def test_a_place_is_the_maximum_of_the_density_of_log_time():
    """Of skewed densities too; their maxima by numerical search."""
    rng = np.random.default_rng(10)
    for family in (
        stats.gamma(2, scale=1e-3),
        stats.weibull_min(3, scale=1e-3),
        stats.invgauss(1, scale=1e-3),
    ):
        top = optimize.minimize_scalar(
            lambda x, family=family: -family.pdf(np.exp(x)) * np.exp(x), bounds=(-12, -4), method="bounded"
        ).x
        mode = fit_modes(
            CountedDurations.from_durations(family.rvs(50_000, random_state=rng)), level=0.999
        ).modes[0]
        assert mode.low_s <= np.exp(top) <= mode.high_s < 1.2 * mode.low_s


@pytest.mark.parametrize("rounding", [np.rint, np.floor, np.ceil])
@pytest.mark.parametrize("median_us", [1.0, 3.0, 9.0, 40.0])
def test_a_microsecond_clock_makes_no_modes(rounding, median_us):
    rng = np.random.default_rng(12)
    durations_s = 1e-6 * rounding(rng.lognormal(np.log(median_us), 0.4, 20_000))
    assert len(fit_modes(CountedDurations.from_durations(durations_s), size=2)) == 1
    found = fit_modes(
        CountedDurations.from_durations(durations_s), size=2, resolution_s=clock_step_s(durations_s)
    )
    assert len(found) == 1
    assert found.resolution_s == pytest.approx(1e-6)


def test_two_modes_show_through_a_microsecond_clock():
    rng = np.random.default_rng(13)
    durations_s = 1e-6 * np.rint(normal_modes(rng, 20_000, [6.0, 30.0], 0.3, [0.6, 0.4]))
    found = fit_modes(CountedDurations.from_durations(durations_s))
    assert len(found) == 2
    assert found.modes[0].weight == pytest.approx(0.6, abs=0.02)


def test_intervals_of_dependent_calls_are_those_of_phases():
    """Phases differ in place: the mean of 40 is known to 0.2 / sqrt(40), however many calls there are."""
    rng = np.random.default_rng(14)
    phase = np.repeat(np.arange(40), 500)
    durations_s = np.exp(-6 + 0.2 * rng.standard_normal(40)[phase] + 0.2 * rng.standard_normal(len(phase)))
    by_phase = fit_modes(CountedDurations.from_durations(durations_s, phase)).modes[0]
    by_call = fit_modes(CountedDurations.from_durations(durations_s)).modes[0]
    widths = [np.log(mode.high_s / mode.low_s) for mode in (by_phase, by_call)]
    assert widths[0] > 2 * widths[1]
    assert widths[0] > 1.645 * 0.2 / np.sqrt(40)
    assert by_phase.effective_phases == pytest.approx(40)
    assert by_call.effective_phases is None


def test_a_bump_of_one_phase_is_told_and_is_no_mode():
    rng = np.random.default_rng(15)
    phase = np.repeat(np.arange(100, 150), 200)
    durations_s = rng.lognormal(-6, 0.2, len(phase))
    durations_s[phase == 117] *= 5
    found = fit_modes(CountedDurations.from_durations(durations_s, phase))
    assert len(found) == 1
    assert found.p_one_mode == 1.0
    assert [bump.phase for bump in found.bumps] == [117]
    assert found.bumps[0].effective_phases == pytest.approx(1, abs=0.2)
    assert "phase 117" in str(ModesAnswer(**vars(found)))
    # The weight of the mode is of all calls: with the bump, they add up to the whole.
    assert found.bumps[0].share == pytest.approx(0.02, abs=0.002)
    assert found.modes[0].weight + found.bumps[0].share == pytest.approx(1)
    # The same calls in all phases are a mode.
    assert len(fit_modes(CountedDurations.from_durations(durations_s, rng.permutation(phase)))) == 2


def test_answers_repeat_and_are_json():
    durations_s = normal_modes(np.random.default_rng(16), 5000, [1e-3, 4e-3], 0.1, [0.5, 0.5])
    first, again = (fit_modes(CountedDurations.from_durations(durations_s)) for _ in range(2))
    assert first == again
    loaded = json.loads(json.dumps(first.to_json(), allow_nan=False))
    assert loaded["n"] == 5000
    assert {"t_s", "low_s", "high_s", "weight"} <= set(loaded["modes"][0])
    assert "modes in 5,000 calls" in str(ModesAnswer(**vars(first)))


@pytest.mark.parametrize("durations_s", [[], [1.0], [0.0] * 50], ids=["none", "one", "zeros"])
def test_what_has_no_modes_is_told_in_one_sentence(durations_s):
    found = fit_modes(CountedDurations.from_durations(np.array(durations_s)))
    assert found.modes == ()
    assert found.refused
    assert "\n" not in str(ModesAnswer(**vars(found)))
    assert json.loads(json.dumps(found.to_json(), allow_nan=False))["modes"] == []


def test_calls_that_are_all_tied_have_one_mode_where_they_are():
    found = fit_modes(CountedDurations.from_durations(np.full(1000, 0.125)))
    assert [(mode.t_s, mode.low_s, mode.high_s, mode.weight) for mode in found.modes] == [
        (0.125, 0.125, 0.125, 1.0)
    ]


def test_calls_shorter_than_the_clock_make_one_mode_that_begins_at_zero():
    durations_s = 1e-6 * np.repeat([0, 1, 2], [500, 300, 200])
    found = fit_modes(CountedDurations.from_durations(durations_s), resolution_s=clock_step_s(durations_s))
    assert len(found) == 1
    assert found.modes[0].low_s <= 1e-6 <= found.modes[0].high_s
    assert len(fit_modes(CountedDurations.from_durations(durations_s))) == 1


def test_an_ensemble_finds_its_clock_itself():
    durations_s = 1e-6 * np.rint(np.random.default_rng(17).lognormal(np.log(10), 0.4, 5000))
    found = Ensemble(durations_s).modes()
    assert isinstance(found, Modes)
    assert (len(found), found.resolution_s) == (1, pytest.approx(1e-6))
    assert len(fit_modes(CountedDurations.from_durations(durations_s), resolution_s=1e-9)) > 5


def test_a_level_must_be_a_chance():
    with pytest.raises(EnsioError, match="the level 90 is not between 0 and 1"):
        fit_modes(CountedDurations.from_durations(np.ones(10)), level=90)


def test_a_cluster_outside_of_the_phases_is_told_without_a_number():
    rng = np.random.default_rng(15)
    phase = np.repeat(np.arange(-1, 49), 200)
    durations_s = rng.lognormal(-6, 0.2, len(phase))
    durations_s[phase == -1] *= 5
    found = fit_modes(CountedDurations.from_durations(durations_s, phase))
    assert "calls outside of the phases alone" in str(ModesAnswer(**vars(found)))
    assert "-1" not in str(ModesAnswer(**vars(found)))


@pytest.mark.parametrize(
    ("call", "places_s", "least_share"),
    [
        ("STDIO:fopen64", [4.5e-6, 1.6e-4], 0.8),
        ("POSIX:opendir", [1.6e-5, 1.6e-4], 0.8),
        ("POSIX:__xstat", [1.1e-5, 1.6e-4], 0.65),
    ],
)
def test_metadata_calls_of_a_weather_model_have_two_modes(call, places_s, least_share):
    """Where the histogram shows two to the eye; parts of the run of 200 calls each stand for phases."""
    table = real_table("cm1_48_dftracer")
    mine = table["op"] == table["op_names"].tolist().index(call)
    order = np.argsort(table["start"][mine], kind="stable")
    durations_s = (table["end"] - table["start"])[mine][order]
    found = fit_modes(
        CountedDurations.from_durations(durations_s, np.arange(len(order)) // 200, clock_step_s(durations_s))
    )
    assert found.resolution_s == pytest.approx(1e-6)
    heavy = sorted(sorted(found.modes, key=lambda mode: -mode.weight)[:2], key=lambda mode: mode.t_s)
    assert [mode.t_s for mode in heavy] == pytest.approx(places_s, rel=0.1)
    assert sum(mode.weight for mode in heavy) > least_share


def test_a_table_whose_clock_steps_in_microseconds_shows_no_modes_of_it():
    """Values of 0.9 to 1.2 µs, 1.9 to 2.2 µs, 2.8 to 3.1 µs ... are one mode by a coarse clock."""
    table = real_table("cm1_recorder")
    for call in ("__fxstat", "lseek"):
        mine = table["op"] == table["op_names"].tolist().index(call)
        durations_s = (table["end"] - table["start"])[mine]
        assert len(np.unique(np.rint(durations_s * 1e9))) < 20
        assert len(Ensemble(durations_s).modes()) == 1


def test_calls_evenly_spread_over_time_are_told_and_are_no_mode():
    """In log time their density grows up to a cliff, far behind the modes."""
    rng = np.random.default_rng(18)
    durations_s = normal_modes(rng, 20_000, [1e-3, 4e-3], 0.1, [0.5, 0.5])
    durations_s[:3000] = rng.uniform(0, 0.1, 3000)
    found = fit_modes(CountedDurations.from_durations(durations_s))
    assert [mode.t_s for mode in found.modes] == pytest.approx([1e-3, 4e-3], rel=0.02)
    assert found.bumps == ()
    assert [part.shape for part in found.spread] == ["rising"]
    assert found.spread[0].high_s == pytest.approx(0.1, rel=0.01)
    assert sum(mode.weight for mode in found.modes) + found.spread[0].share == pytest.approx(1)
    assert "without a peak" in str(ModesAnswer(**vars(found)))
    # Calls that gather at the end of the range are a mode, though it ends with a cliff.
    durations_s[:3000] = 0.1 * rng.uniform(0.9, 1.0, 3000)
    assert len(fit_modes(CountedDurations.from_durations(durations_s))) == 3


def test_few_far_calls_that_took_most_of_the_time_are_told() -> None:
    """Seen on IOR with a file per process: 4 writes of 256 took 87 % of the time, far from the only mode."""
    rng = np.random.default_rng(5)
    near_s = 53e-6 * rng.lognormal(0, 0.12, 252)
    far_s = np.array([0.021, 0.026, 0.031, 0.031])
    found = fit_modes(CountedDurations.from_durations(np.concatenate([near_s, far_s])))
    assert len(found) == 1
    assert found.far_calls.calls == 4
    assert found.far_calls.share == 4 / 256
    assert found.far_calls.time_share == pytest.approx(far_s.sum() / (far_s.sum() + near_s.sum()), rel=0.02)
    assert "4 calls" in str(found.far_calls)
    # Together, the rows and the sentence are all of the time.
    shares = sum(mode.time_share for mode in found.modes) + found.far_calls.time_share
    assert shares == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("far", [(), (5.4e-4,)])
def test_what_is_near_or_took_little_time_is_not_far(far: tuple[float, ...]) -> None:
    near_s = 53e-6 * np.random.default_rng(6).lognormal(0, 0.3, 1000)
    found = fit_modes(CountedDurations.from_durations(np.concatenate([near_s, far])))
    assert found.far_calls is None


def test_times_per_mib_have_no_share_of_the_time() -> None:
    durations_s = np.concatenate([53e-6 * np.random.default_rng(7).lognormal(0, 0.1, 252), [0.02] * 4])
    found = {
        per: Ensemble(durations_s, bytes=np.full(256, 1 << 20), per=per).modes() for per in ("call", "MiB")
    }
    assert found["call"].far_calls.calls == 4
    assert found["MiB"].far_calls is None
