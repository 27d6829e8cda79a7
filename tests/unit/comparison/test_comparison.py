"""Groups of runs: the same, different or not to be told, and what moved."""

from __future__ import annotations

import json

import numpy as np
import pytest
from compared_runs import THREE_MODES, TWO_MODES, run_of_modes, run_of_phases
from real_tables import real_table
from scipy.stats import binom

import ensembles as en
from ensembles.answers.compare import ShownComparison
from ensembles.comparison.compare_samples import Kind, compare_kinds, compare_samples
from ensembles.model.errors import EnsioError
from ensembles.statistics.samples.counted_durations import CountedDurations


def groups_of(rng, runs=5, modes=TWO_MODES, factors=None, **options):
    return [
        [run_of_modes(rng, modes, **options) for _ in range(runs)],
        [run_of_modes(rng, modes, factors=factors, **options) for _ in range(runs)],
    ]


def moved(found):
    return {(move.what, move.mode) for move in found.moved}


@pytest.mark.parametrize(
    ("modes", "which"), [(TWO_MODES, 0), (TWO_MODES, 1), (THREE_MODES, 1), (THREE_MODES, 2)]
)
def test_a_tenth_more_of_one_mode_is_found_in_five_and_five_runs_of_a_thousand_calls(modes, which):
    rng = np.random.default_rng([71, len(modes), which])
    factors = np.ones(len(modes))
    factors[which] = 1.1
    found = [compare_samples(groups_of(rng, modes=modes, factors=factors)) for _ in range(20)]
    assert sum(one.verdict == "different" for one in found) >= 19
    named = [one for one in found if moved(one) == {("mode place", which + 1)}]
    assert len(named) >= 16
    effects = [
        move.effect
        for one in named
        for move in one.moved
        if move.mode == which + 1 and move.what == "mode place"
    ]
    assert np.median([effect.value for effect in effects]) == pytest.approx(1.1, rel=0.02)
    assert np.mean([effect.low <= 1.1 <= effect.high for effect in effects]) >= 0.8


def test_runs_of_the_same_program_are_seldom_called_different():
    rng = np.random.default_rng(72)
    trials = 60
    verdicts = [compare_samples(groups_of(rng, calls=300, between_runs=0.1)).verdict for _ in range(trials)]
    assert verdicts.count("different") <= binom.ppf(0.995, trials, 0.05)


@pytest.mark.long
@pytest.mark.parametrize(("phases", "memory"), [(10, 0.9), (40, 0.0), (80, 0.6)])
def test_two_runs_whose_phases_depend_on_each_other_are_seldom_called_different(phases, memory):
    rng = np.random.default_rng([73, phases])
    trials = 25
    verdicts = [
        compare_samples(
            [[run_of_phases(rng, phases, memory=memory, heavy=i % 2 == 1)] for _ in range(2)]
        ).verdict
        for i in range(trials)
    ]
    assert verdicts.count("different") <= binom.ppf(0.995, trials, 0.05)


def test_a_slower_run_is_found_by_its_phases_alone():
    rng = np.random.default_rng(174)
    found = compare_samples([[run_of_phases(rng, 60)], [run_of_phases(rng, 60, factor=2)]])
    assert (found.verdict, found.direction) == ("different", "slower")
    assert moved(found) == {("all", None)}
    assert found.moved[0].effect.low <= 2 <= found.moved[0].effect.high
    assert found.shift.low <= 2 <= found.shift.high
    assert found.tests["units"] == "blocks of phases"
    assert any("variation from run to run is unknown" in note for note in found.notes)


def test_of_two_runs_that_runs_of_one_program_may_be_the_direction_is_said():
    rng = np.random.default_rng(174)
    found = compare_samples([[run_of_phases(rng, 60)], [run_of_phases(rng, 60, factor=1.25)]])
    assert found.verdict == "inconclusive"
    assert found.shift.low < 1 < found.shift.median_ratio
    assert "calls of the second run are longer" in found.reason
    assert "variation from run to run is unknown" in found.reason


def test_single_runs_are_never_different_where_the_interval_of_their_ratio_holds_one():
    """The median of three blocks may not be certain although the location of the mode is."""
    rng = np.random.default_rng(176)
    verdicts = []
    phase = np.repeat(np.arange(12), 6)
    for _ in range(20):
        one, other = (
            CountedDurations.from_durations(
                typical_s * np.where(rng.random(72) < 0.5, 1.0, 2.6) * rng.lognormal(0, 0.3, 72), phase
            )
            for typical_s in (1e-4, 2e-4)
        )
        found = compare_samples([[one], [other]])
        if found.shift.low is None:
            continue  # fewer than three blocks show nothing
        verdicts.append(found.verdict)
        assert found.verdict != "different" or found.shift.is_certain
        for part in found.parts:
            assert part.verdict != "different" or part.effects[0].is_certain
        # No interval is narrower than that of runs that vary by 10 %.
        assert found.shift.high / found.shift.low > 1.1 ** (2 * 1.96 * 2**0.5)
    assert set(verdicts) == {"different", "inconclusive"}


@pytest.mark.parametrize("factor", [2.0, 0.5])
def test_a_mode_that_doubled_is_found_in_three_and_three_runs(factor):
    """Permutations of 3 + 3 runs have no p-value below 0.1, so that they never found it."""
    rng = np.random.default_rng(75)
    for _ in range(15):
        found = compare_samples(groups_of(rng, runs=3, between_runs=0.05, factors=(1.0, factor)))
        assert (found.verdict, found.direction) == ("different", "slower" if factor > 1 else "faster")
        # A mode that halved overlaps with the other one, and cannot be distinguished any more.
        assert ("mode place", 2) in moved(found) or factor < 1
    assert found.tests["smallest_p"] == pytest.approx(0.1)


@pytest.mark.parametrize("common", [0.0, 0.05])
def test_one_new_run_that_is_five_times_slower_than_four_baselines_is_found(common):
    """The smallest p-value of a rank or permutation test of 4 + 1 runs is 0.4 or 0.2."""
    rng = np.random.default_rng(175)
    for _ in range(15):
        baselines = [run_of_modes(rng, between_runs=0.05 - common, common=common) for _ in range(4)]
        new = [run_of_modes(rng, between_runs=0.05 - common, common=common, factors=(5, 5))]
        found = compare_samples([baselines, new])
        assert (found.verdict, found.direction) == ("different", "slower")
        back = compare_samples([new, baselines])
        assert (back.verdict, back.direction) == ("different", "faster")


@pytest.mark.long
@pytest.mark.parametrize("sizes", [(4, 1), (3, 3), (1, 1), (2, 1)])
def test_runs_that_vary_by_five_percent_make_few_false_alarms(sizes):
    rng = np.random.default_rng([176, *sizes])
    trials = 40

    def run():
        return run_of_phases(rng, 40, factor=np.exp(0.05 * rng.standard_normal()))

    verdicts = [compare_samples([[run() for _ in range(n)] for n in sizes]).verdict for _ in range(trials)]
    assert verdicts.count("different") <= binom.ppf(0.99, trials, 0.05)


def test_a_mode_moved_by_a_fifth_is_found_in_five_and_five_runs():
    rng = np.random.default_rng(177)
    found = [compare_samples(groups_of(rng, between_runs=0.05, factors=(1.0, 1.2))) for _ in range(30)]
    assert sum(one.verdict == "different" for one in found) >= 0.8 * 30
    assert all(one.direction == "slower" for one in found if one.verdict == "different")


def test_equal_runs_of_four_and_four_are_the_same_although_they_vary_by_five_percent():
    rng = np.random.default_rng(178)
    found = [compare_samples(groups_of(rng, runs=4, between_runs=0.0, common=0.05)) for _ in range(40)]
    assert sum(one.verdict == "same" for one in found) >= 0.75 * 40
    moved_far = [
        compare_samples(groups_of(rng, runs=4, between_runs=0.0, common=0.05, factors=(1.25, 1.25)))
        for _ in range(20)
    ]
    assert not any(one.verdict == "same" for one in moved_far)


def test_equal_runs_whose_modes_vary_each_by_itself_are_the_same_in_most_cases():
    """The width of each mode and the place of the tail are parts, too."""
    rng = np.random.default_rng(1781)
    found = [compare_samples(groups_of(rng, runs=4, between_runs=0.05)) for _ in range(60)]
    assert sum(one.verdict == "same" for one in found) >= 0.70 * 60


def test_a_move_by_the_margin_is_seldom_the_same():
    rng = np.random.default_rng(1782)
    found = [
        compare_samples(groups_of(rng, runs=4, between_runs=0.0, common=0.05, factors=(0.9, 0.9)))
        for _ in range(60)
    ]
    assert sum(one.verdict == "same" for one in found) <= 0.2 * 60


def test_a_mode_that_moves_against_the_others_is_found_although_runs_vary():
    """A factor common to a run cancels in the ratio of its modes."""
    rng = np.random.default_rng(179)
    found = [
        compare_samples(groups_of(rng, runs=4, between_runs=0.005, common=0.2, factors=(1.0, 1.15)))
        for _ in range(10)
    ]
    assert sum(("mode ratio", 2) in moved(one) for one in found) >= 9
    ratios = [move.effect for one in found for move in one.moved if move.what == "mode ratio"]
    assert sum(effect.low <= 1.15 <= effect.high for effect in ratios) >= 8


def test_modes_of_runs_that_vary_more_than_modes_are_wide_are_matched():
    """Without alignment each run had its own mode, and nothing could be said."""
    rng = np.random.default_rng(180)
    narrow = ((1e-3, 0.6, 0.03), (16e-3, 0.4, 0.03))
    found = compare_samples(groups_of(rng, runs=5, modes=narrow, between_runs=0.0, common=0.3))
    assert [part.name for part in found.parts if part.what == "mode place"] == [
        "mode 1 place",
        "mode 2 place",
    ]
    assert [mode.seen_in for mode in found.modes] == [10, 10]


def test_what_cannot_be_said_is_said_with_the_number_of_runs_that_would_do():
    rng = np.random.default_rng(181)
    found = compare_samples(groups_of(rng, runs=3, between_runs=0.0, common=0.1))
    assert found.verdict == "inconclusive"
    assert 8 <= found.enough_runs <= 60
    assert f"{found.enough_runs} runs per group" in found.reason


def test_rank_tests_stand_beside_whatever_the_unit_is():
    rng = np.random.default_rng(182)
    for groups, unit in (
        (groups_of(rng, runs=3), "runs"),
        ([[run_of_phases(rng, 60)], [run_of_phases(rng, 60)]], "blocks of phases"),
    ):
        found = compare_samples(groups)
        assert (found.tests["rank_test"], found.tests["units"]) == ("Wilcoxon-Mann-Whitney", unit)
        assert all(0 < part["rank_p"] <= 1 for part in found.tests["parts"].values())
        assert f"{unit} as units" in str(ShownComparison(**vars(found)))
        assert "Wilcoxon-Mann-Whitney" in str(ShownComparison(**vars(found)))


def test_four_and_four_runs_can():
    rng = np.random.default_rng(76)
    assert compare_samples(groups_of(rng, runs=4, factors=(1.0, 1.5))).verdict == "different"


def test_one_run_a_side_without_phases_is_judged_by_the_gap_between_all_durations():
    rng = np.random.default_rng(183)

    def run(median_s, spread):
        return [CountedDurations.from_durations(median_s * rng.lognormal(0, spread, 500))]

    apart = compare_samples([run(1e-3, 0.05), run(5e-3, 0.05)])
    assert (apart.verdict, apart.direction) == ("different", "slower")
    assert any("variation from run to run is unknown" in note for note in apart.notes)
    assert apart.shift.median_ratio == pytest.approx(5, rel=0.05)
    assert apart.shift.low is None
    overlapping = compare_samples([run(1e-3, 0.5), run(2e-3, 0.5)])
    assert overlapping.verdict == "inconclusive"
    assert "calls of the second run are longer" in overlapping.reason
    assert "its phases are unknown" in overlapping.reason


def test_too_few_phases_are_inconclusive():
    rng = np.random.default_rng(77)
    found = compare_samples([[run_of_phases(rng, 4)], [run_of_phases(rng, 4, factor=3)]])
    assert found.verdict == "inconclusive"
    assert "at least 3" in found.reason


def test_equal_groups_are_the_same_within_the_margin_and_not_within_a_tiny_one():
    rng = np.random.default_rng(78)
    groups = groups_of(rng, between_runs=0.01)
    assert compare_samples(groups).verdict == "same"
    strict = compare_samples(groups, margin=0.005)
    assert strict.verdict == "inconclusive"
    assert "margin" in strict.reason


def test_a_run_of_few_phases_is_the_same_as_itself():
    """Two blocks cannot show how far a run is uncertain, but nothing differs at all."""
    durations_s = np.random.default_rng(3).lognormal(-3, 0.3, 40)
    sample = CountedDurations.from_durations(durations_s, np.repeat(np.arange(5), 8))
    found = compare_samples([[sample], [sample]])
    assert (found.verdict, {part.verdict for part in found.parts}) == ("same", {"same"})
    assert "the same histogram" in found.reason
    slower = CountedDurations.from_durations(1.1 * durations_s, np.repeat(np.arange(5), 8))
    assert compare_samples([[sample], [slower]]).verdict == "inconclusive"


def test_half_and_half_modes_are_the_same_although_the_median_lies_between_them():
    rng = np.random.default_rng(279)
    found = compare_samples(groups_of(rng, modes=((1e-3, 0.5, 0.1), (9e-3, 0.5, 0.1)), between_runs=0.01))
    assert found.verdict == "same"
    assert any("median lies between modes" in note for note in found.notes)


def test_a_moved_weight_is_named():
    rng = np.random.default_rng(80)
    other = ((1e-3, 0.5, 0.2), (4e-3, 0.5, 0.2))
    found = [
        compare_samples([[run_of_modes(rng, modes) for _ in range(5)] for modes in (TWO_MODES, other)])
        for _ in range(10)
    ]
    # Of two weights, which add up to one, the test takes one.
    assert sum(moved(one) in ({("mode weight", 1)}, {("mode weight", 2)}) for one in found) >= 8
    assert all(one.direction == "slower" for one in found)
    moves = [move for one in found for move in one.moved if move.what == "mode weight"]
    signs = [1 if move.mode == 2 else -1 for move in moves]
    inside = [
        move.effect.low <= 0.2 * sign <= move.effect.high for move, sign in zip(moves, signs, strict=True)
    ]
    assert sum(inside) >= 8
    effects = [move.effect for move in moves if move.mode == 2]
    assert (effects[0].before, effects[0].after) == pytest.approx((0.3, 0.5), abs=0.03)


def test_a_longer_tail_is_named_and_a_mode_that_only_moved_has_none():
    rng = np.random.default_rng(81)

    def run(slow):
        durations_s = 1e-3 * rng.lognormal(0, 0.2, 1000) * np.exp(0.02 * rng.standard_normal())
        durations_s[:15] *= slow * rng.lognormal(0, 1, 15)
        return CountedDurations.from_durations(durations_s)

    tail = compare_samples([[run(2) for _ in range(5)], [run(20) for _ in range(5)]])
    assert ("tail place", None) in moved(tail) <= {("tail", None), ("tail place", None)}
    assert next(move for move in tail.moved if move.what == "tail place").effect.low > 1.5
    whole = compare_samples(groups_of(rng, modes=((1e-3, 1.0, 0.1),), factors=(1.3,)))
    assert moved(whole) == {("all", None)}


def test_a_mode_that_only_became_wider_is_named_and_not_the_same():
    rng = np.random.default_rng(84)
    wider = ((1e-3, 0.7, 0.4), (4e-3, 0.3, 0.2))
    found = compare_samples([[run_of_modes(rng, modes) for _ in range(5)] for modes in (TWO_MODES, wider)])
    assert ("mode width", 1) in moved(found) <= {("mode width", 1), ("tail", None)}
    (effect,) = [move.effect for move in found.moved if move.what == "mode width"]
    assert effect.low < 2 < effect.high
    assert found.direction is None


def test_all_modes_that_moved_by_one_factor_are_told_as_one():
    rng = np.random.default_rng(82)
    found = compare_samples(groups_of(rng, factors=(1.2, 1.2)))
    assert moved(found) == {("all", None)}
    assert found.moved[0].effect.low <= 1.2 <= found.moved[0].effect.high


def test_a_mode_that_moved_to_where_none_was_is_followed():
    rng = np.random.default_rng(83)
    found = compare_samples(groups_of(rng, modes=THREE_MODES, factors=(1.0, 1.6, 1.0)))
    assert moved(found) == {("mode place", 2)}
    assert found.moved[0].effect.value == pytest.approx(1.6, rel=0.05)


def test_places_are_those_of_the_first_group():
    """Runs are aligned with those that resemble the others most, here the second group of more runs."""
    rng = np.random.default_rng(87)
    groups = [
        [run_of_modes(rng) for _ in range(3)],
        [run_of_modes(rng, factors=(64.0, 64.0)) for _ in range(7)],
    ]
    found = compare_samples(groups)
    places_s = [part.t_s for part in found.parts if part.what == "mode place"]
    assert places_s == pytest.approx([1e-3, 4e-3], rel=0.1)
    assert [mode.t_s for mode in found.modes] == places_s
    assert max(part.t_s for part in found.parts) <= max(run.max_s.max() for run in groups[0])


def test_what_moved_has_the_number_that_the_mode_has_among_the_parts():
    """The first group's second mode is the third of all, as the other group has one between."""
    rng = np.random.default_rng(86)
    first, other = (
        ((1e-3, 0.6, 0.2), (16e-3, 0.4, 0.2)),
        ((1e-3, 0.5, 0.2), (4e-3, 0.2, 0.2), (22e-3, 0.3, 0.2)),
    )
    found = compare_samples([[run_of_modes(rng, modes) for _ in range(5)] for modes in (first, other)])
    at_s = {part.mode: part.t_s for part in found.parts if part.what == "mode place"}
    assert sorted(at_s) == [1, 2, 3]
    assert {("mode weight", 2), ("mode place", 3)} <= moved(found)
    for move in found.moved:
        if move.mode is not None:
            assert at_s[move.mode] == pytest.approx(move.t_s, rel=0.4)


def test_a_mode_that_is_only_in_one_group_is_a_weight_that_moved():
    rng = np.random.default_rng(84)
    one = ((1e-3, 1.0, 0.2),)
    groups = [[run_of_modes(rng, one) for _ in range(5)], [run_of_modes(rng) for _ in range(5)]]
    found = compare_samples(groups)
    appeared = [move for move in found.moved if move.what == "mode weight" and move.effect.value > 0]
    assert len(appeared) == 1
    assert appeared[0].t_s == pytest.approx(4e-3, rel=0.1)
    assert appeared[0].effect.after == pytest.approx(0.3, abs=0.03)


def test_of_three_groups_the_one_that_differs_is_named_by_dunn_too():
    rng = np.random.default_rng(85)
    groups = [*groups_of(rng, factors=(1.0, 1.0)), [run_of_modes(rng, factors=(1.0, 1.3)) for _ in range(5)]]
    found = compare_samples(groups, names=["before", "again", "after"])
    assert found.verdict == "different"
    assert {(move.effect.group, move.what, move.mode) for move in found.moved} == {("after", "mode place", 2)}
    assert found.tests["rank_test"] == "Kruskal-Wallis"
    pairs = {tuple(pair["groups"]): pair["p"] for pair in found.tests["parts"]["mode 2 place"]["dunn_holm_p"]}
    assert pairs["before", "after"] < 0.05
    assert pairs["before", "again"] > 0.05
    assert "after" in str(found)


def test_exchanged_groups_give_the_same_verdict_and_the_reciprocal_factor():
    rng = np.random.default_rng(86)
    a, b = groups_of(rng, factors=(1.0, 1.15))
    there, back = compare_samples([a, b]), compare_samples([b, a])
    assert there.verdict == back.verdict == "different"
    for part, other in zip(there.parts, back.parts, strict=True):
        assert part.adjusted_p == pytest.approx(other.adjusted_p)
        if part.effects[0].is_ratio:
            assert part.effects[0].value * other.effects[0].value == pytest.approx(1)


def test_a_change_of_the_unit_of_time_changes_nothing():
    rng = np.random.default_rng(87)
    durations = [[rng.lognormal(-7 + 0.1 * side, 0.4, 800) for _ in range(5)] for side in (0, 1)]
    # An octave is a shift by as many bins for everything.
    found, doubled = (
        compare_samples(
            [[CountedDurations.from_durations(factor * run) for run in side] for side in durations]
        )
        for factor in (1, 2)
    )
    assert found.tests["p"] == pytest.approx(doubled.tests["p"], rel=1e-2)
    assert found.parts[0].effects[0].value == pytest.approx(doubled.parts[0].effects[0].value, rel=1e-3)


def test_the_answer_repeats_and_is_plain_json():
    rng = np.random.default_rng(88)
    groups = [[run_of_phases(rng, 30)], [run_of_phases(rng, 30)]]
    first, second = compare_samples(groups), compare_samples(groups)
    text = json.dumps(first.to_json(), allow_nan=False)
    assert text == json.dumps(second.to_json(), allow_nan=False)
    assert {"op", "verdict", "shift", "tests"} <= set(json.loads(text))
    assert {"median_ratio", "low", "high"} <= set(json.loads(text)["shift"])


@pytest.mark.parametrize(
    "values",
    [np.full(100, 1e-3), np.zeros(100), np.full(100, 1e-9), np.tile([1e-6, 2e-6], 50), np.full(100, 4e9)],
    ids=["constant", "zero", "one ns", "two values", "a century"],
)
def test_tied_durations_are_the_same_as_themselves(values):
    found = compare_samples(
        [[CountedDurations.from_durations(values)] * 5, [CountedDurations.from_durations(values)] * 5]
    )
    assert found.verdict == "same"
    json.dumps(found.to_json(), allow_nan=False)
    assert "SAME" in str(ShownComparison(**vars(found)))


def test_constant_durations_that_differ_are_different_and_those_a_bin_apart_are_not():
    def constant(value_s):
        return [CountedDurations.from_durations(np.full(100, value_s))] * 5

    found = compare_samples([constant(1e-3), constant(2e-3)])
    assert moved(found) == {("all", None)}
    # 1.000 and 1.001 ms may fall into two bins: what lies between is not known.
    assert compare_samples([constant(1.000e-3), constant(1.001e-3)]).verdict == "same"


def test_groups_with_hardly_any_calls_are_inconclusive():
    few = [CountedDurations.from_durations(np.full(5, 1e-3))] * 5
    found = compare_samples([few, few], names=["morning", "evening"])
    assert found.verdict == "inconclusive"
    assert "morning has 25 such calls" in found.reason
    empty = compare_samples([few, [CountedDurations.from_durations(np.empty(0))]])
    assert empty.verdict == "inconclusive"
    json.dumps(empty.to_json(), allow_nan=False)
    assert "INCONCLUSIVE" in str(ShownComparison(**vars(empty)))


@pytest.mark.parametrize("options", [{"margin": 0}, {"margin": -1}, {"level": 0}, {"level": 0.7}])
def test_options_that_make_no_sense_are_refused(options):
    sample = CountedDurations.from_durations(np.full(100, 1e-3))
    with pytest.raises(EnsioError, match=r"must be between 0 and 0\.5"):
        compare_samples([[sample], [sample]], **options)


def test_one_group_is_no_comparison():
    with pytest.raises(EnsioError, match="two groups"):
        compare_samples([[CountedDurations.from_durations(np.full(100, 1e-3))]])


def test_modes_come_back_with_the_spread_that_they_were_given():
    rng = np.random.default_rng(89)
    runs = [[run_of_modes(rng, between_runs=0.05, calls=4000) for _ in range(30)] for _ in range(2)]
    modes = compare_samples(runs).modes
    assert [mode.seen_in for mode in modes] == [60, 60]
    for mode, (median_s, share, _) in zip(modes, TWO_MODES, strict=True):
        assert mode.t_s == pytest.approx(median_s, rel=0.03)
        assert mode.weight == pytest.approx(share, abs=0.01)
        assert mode.place_spread == pytest.approx(0.05, rel=0.3)
        assert mode.weight_spread == pytest.approx(np.sqrt(share * (1 - share) / 4000), rel=0.3)


@pytest.mark.parametrize("name", ["local_bufwr256k_6runs", "local_dirwr64k_6runs"])
def test_repetitions_of_a_real_benchmark_are_not_called_different(name):
    table = real_table(name)
    runs = []
    for number in np.unique(table["run"]):
        mine = table["run"] == number
        runs.append(en.Ensemble((table["end"] - table["start"])[mine], rank=table["rank"][mine]))
    assert en.compare(runs[:3], runs[3:]).verdict == "inconclusive"
    assert en.compare(runs[::2], runs[1::2]).verdict == "inconclusive"


@pytest.mark.long
def test_phases_of_a_real_run_dealt_out_at_random_are_seldom_called_different():
    table = real_table("vpic_hdf5_summit_gpfs_192")
    mine = (table["op"] == 1) & (table["length"] == 1 << 19) & (table["layer"] == 0)
    duration_s, start, rank = (table["end"] - table["start"])[mine], table["start"][mine], table["rank"][mine]
    order = np.lexsort((start, rank))
    _, count = np.unique(rank, return_counts=True)
    phase = np.empty(len(order), np.int64)
    phase[order] = np.arange(len(order)) - np.repeat(np.cumsum(count) - count, count)
    rng = np.random.default_rng(90)
    verdicts = []
    for _ in range(12):
        side = rng.permutation(phase.max() + 1) % 2
        chosen = [side[phase] == number for number in (0, 1)]
        verdicts.append(
            en.compare(*(en.Ensemble(duration_s[here], phase=phase[here]) for here in chosen)).verdict
        )
    assert verdicts.count("different") <= binom.ppf(0.995, 12, 0.05)


def test_single_runs_tell_how_well_modes_come_back_if_there_are_three_of_them():
    rng = np.random.default_rng(91)
    runs = [[run_of_modes(rng, between_runs=0.1)] for _ in range(12)]
    found = compare_samples(runs)
    assert found.verdict == "inconclusive"
    assert [mode.runs for mode in found.modes] == [12, 12]
    for mode in found.modes:
        assert mode.place_spread == pytest.approx(0.1, rel=0.6)
    assert compare_samples(runs[:2]).modes[0].place_spread is None


@pytest.mark.long
@pytest.mark.parametrize("single", [False, True])
def test_many_kinds_of_calls_make_no_more_false_alarms_than_one(single):
    rng = np.random.default_rng(92 + single)
    trials, alarms = 12, 0
    for _ in range(trials):
        if single:
            kinds = [Kind([[run_of_phases(rng, 30)] for _ in range(2)]) for _ in range(5)]
        else:
            kinds = [Kind(groups_of(rng, calls=300)) for _ in range(5)]
        alarms += any(one.verdict == "different" for one in compare_kinds(kinds))
    assert alarms <= binom.ppf(0.995, trials, 0.05)


def test_one_kind_of_many_that_differs_is_found_in_four_and_four_runs():
    rng = np.random.default_rng(94)
    kinds = [
        Kind(groups_of(rng, runs=4, factors=(f, f)), op=op)
        for op, f in (("write", 1.0), ("read", 1.5), ("open", 1.0))
    ]
    found = {one.op: one.verdict for one in compare_kinds(kinds)}
    assert found["read"] == "different"
    assert [found["write"], found["open"]].count("different") == 0


def test_runs_that_only_scatter_more_are_seldom_called_different():
    rng = np.random.default_rng(95)
    trials = 30
    verdicts = [
        compare_samples(
            [
                [run_of_modes(rng, between_runs=0.02, calls=300) for _ in range(8)],
                [run_of_modes(rng, between_runs=0.2, calls=300) for _ in range(4)],
            ]
        ).verdict
        for _ in range(trials)
    ]
    assert verdicts.count("different") <= binom.ppf(0.995, trials, 0.05)


def test_groups_that_have_no_call_in_common_are_different():
    rng = np.random.default_rng(96)
    groups = [
        [run_of_modes(rng, ((median_s, 1.0, 0.1),), calls=100) for _ in range(4)] for median_s in (1e-6, 1e-3)
    ]
    found = compare_samples(groups)
    assert found.verdict == "different"
    assert moved(found) == {("all", None)}
    assert found.moved[0].effect.value == pytest.approx(1000, rel=0.1)
