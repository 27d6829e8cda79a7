"""Tests on times of runs, against R 4.2.2 and scikit-posthocs 0.17.1 on the same numbers.

Dunn's test is also that of R's package dunn.test 1.3.7, ``dunn.test(groups, method="holm", altp=TRUE)``.
"""

from __future__ import annotations

import numpy as np
import pytest

from ensembles.comparison.hypothesis_tests import compute_run_tests, make_run_test, rank_statistic

TIED_S = [[12.1, 14.0, 13.3, 12.9, 13.3], [15.0, 14.0, 16.2, 15.5, 17.1], [12.9, 13.3, 12.0, 12.5, 14.1]]
"""Three groups of five, with ties within and between groups."""

UNEQUAL_S = [
    [41.2, 39.9, 44.0, 40.3, 43.1],
    [58.7, 61.0, 55.2, 57.9],
    [40.0, 42.2, 38.8, 47.5, 39.1, 45.0],
    [90.1, 88.0, 95.5],
]

NAMES = ["a", "b", "c", "d"]


def test_kruskal_wallis_with_ties_is_that_of_r():
    test = make_run_test("run", "io_time_s", TIED_S, NAMES[:3])
    assert test.method == "Kruskal-Wallis"
    assert test.statistic == pytest.approx(8.4353790613718, abs=1e-6)
    assert test.p == pytest.approx(0.0147326445349, abs=1e-6)
    assert test.epsilon_squared == pytest.approx(8.4353790613718 / 14, abs=1e-6)


def test_shapiro_wilk_is_that_of_r():
    test = make_run_test("run", "io_time_s", TIED_S, NAMES[:3])
    found = [(group.shapiro_w, group.shapiro_p) for group in test.groups]
    expected = [(0.958431430508, 0.797020374338), (0.998294372774, 0.999087653307)]
    expected.append((0.98917798179, 0.97673559931))
    assert np.array(found) == pytest.approx(np.array(expected), abs=1e-6)


def test_dunn_with_ties_is_that_of_dunn_test_and_scikit_posthocs():
    test = make_run_test("run", "io_time_s", TIED_S, NAMES[:3])
    assert [pair.groups for pair in test.pairs] == [["a", "b"], ["a", "c"], ["b", "c"]]
    z = [-2.381600650959, 0.248823948608, 2.630424599567]
    p = [0.01723757940719, 0.80349696529168, 0.00852782843378]
    holm_p = [0.0344751588144, 0.8034969652917, 0.0255834853013]
    assert [pair.z for pair in test.pairs] == pytest.approx(z, abs=1e-6)
    assert [pair.p for pair in test.pairs] == pytest.approx(p, abs=1e-6)
    assert [pair.holm_p for pair in test.pairs] == pytest.approx(holm_p, abs=1e-6)


def test_groups_of_unequal_size_are_those_of_r_dunn_test_and_scikit_posthocs():
    test = make_run_test("step", "phase 1", UNEQUAL_S, NAMES)
    assert test.statistic == pytest.approx(12.9076023391813, abs=1e-6)
    assert test.p == pytest.approx(0.00484074157885763, abs=1e-6)
    # dunn.test has the pairs in the order 1-2, 1-3, 2-3, 1-4, 2-4, 3-4.
    assert ["".join(pair.groups) for pair in test.pairs] == ["ab", "ac", "ad", "bc", "bd", "cd"]
    z = [-2.038422353686252, 0.113426174563120, -2.770141550629917]
    z += [2.224793833670703, -0.858395075278952, -2.958122264111931]
    p = [0.04150771264763586, 0.90969268931376579, 0.00560319359993425]
    p += [0.02609508154972463, 0.39067434602356788, 0.00309519331026009]
    holm_p = [0.1245231379429076, 0.9096926893137658, 0.0280159679996713]
    holm_p += [0.1043803261988985, 0.7813486920471358, 0.0185711598615605]
    assert [pair.z for pair in test.pairs] == pytest.approx(z, abs=1e-6)
    assert [pair.p for pair in test.pairs] == pytest.approx(p, abs=1e-6)
    assert [pair.holm_p for pair in test.pairs] == pytest.approx(holm_p, abs=1e-6)
    shapiro_p = [0.471688444104814, 0.945142993141942, 0.348259405139899, 0.524880741994614]
    assert [group.shapiro_p for group in test.groups] == pytest.approx(shapiro_p, abs=1e-6)


def test_wilcoxon_mann_whitney_is_exact_with_ties_too_and_without_them_that_of_r():
    tied = make_run_test("run", "span_s", TIED_S[:2], NAMES[:2])
    assert (tied.method, tied.statistic) == ("Wilcoxon-Mann-Whitney", 0.5)
    assert tied.p == pytest.approx(2 / 126)  # of the 126 divisions of nine values; R's approximation: 0.01565
    assert tied.pairs[0].difference_s == pytest.approx(2.2, abs=1e-3)
    exact = make_run_test("run", "span_s", [UNEQUAL_S[0], UNEQUAL_S[2]], NAMES[:2])
    assert (exact.statistic, exact.p) == (16.0, pytest.approx(0.930735930735931, abs=1e-6))
    assert exact.pairs[0].difference_s == pytest.approx(-0.55)
    more = [1.02, 1.11, 1.19, 1.31, 1.42, 1.55, 1.63, 1.74, 1.86, 1.97, 2.05, 2.13]
    than_eight = [1.33, 1.47, 1.58, 1.66, 1.79, 1.88, 1.99, 2.11, 2.24, 2.36]
    _, statistic, p = rank_statistic([np.array(more), np.array(than_eight)])
    assert (statistic, p) == (36.0, pytest.approx(0.122911144582971, abs=1e-6))


def test_effect_sizes_by_hand():
    # Of nine pairs, six are longer and two are shorter; the differences have the median 1.
    test = make_run_test("run", "span_s", [[1.0, 2.0, 5.0], [2.0, 3.0, 6.0]], NAMES[:2])
    assert test.pairs[0].cliffs_delta == pytest.approx((6 - 2) / 9)
    assert test.pairs[0].difference_s == 1.0
    assert (test.epsilon_squared, test.pairs[0].z) == (None, None)


def test_equal_times_are_no_difference():
    for groups in (2, 3):
        test = make_run_test("run", "span_s", [[3.0, 3.0]] * groups, NAMES[:groups])
        assert (test.p, test.pairs[0].cliffs_delta) == (1.0, 0.0)
        assert test.groups[0].shapiro_p is None


def test_each_scope_is_corrected_for_its_number():
    rng = np.random.default_rng(5)
    sums = [
        [
            {"io_time_s": 10 * g + rng.random(), "span_s": 10 * g + rng.random(), "wait_time_s": 0.0}
            for _ in range(5)
        ]
        for g in range(3)
    ]
    times_s = [[{("posix", "write"): 1.0 + rng.random()} for _ in range(5)] for g in range(3)]
    steps_s = [[[g + rng.random(), rng.random(), rng.random()] for _ in range(5)] for g in range(3)]
    tests = compute_run_tests(NAMES[:3], sums, times_s, steps_s)
    assert [(test.scope, test.what) for test in tests] == [
        ("run", "io_time_s"),
        ("run", "span_s"),
        ("calls", "posix write"),
        ("step", "phase 1"),
        ("step", "phase 2"),
        ("step", "phase 3"),
    ]
    by_what = {test.what: test for test in tests}
    assert by_what["io_time_s"].holm_p == by_what["io_time_s"].p  # tested first
    assert by_what["span_s"].holm_p == max(by_what["span_s"].p, by_what["io_time_s"].p)
    assert by_what["posix write"].holm_p == by_what["posix write"].p
    assert by_what["phase 1"].holm_p == pytest.approx(3 * by_what["phase 1"].p)


def test_a_group_of_one_run_has_no_test_and_unequal_steps_have_none():
    sums = [[{"span_s": 1.0}, {"span_s": 1.1}], [{"span_s": 2.0}, {"span_s": 2.1}]]
    times_s = [[{}, {}], [{}, {}]]
    assert compute_run_tests(NAMES[:2], [sums[0], sums[1][:1]], times_s, [[[], []], [[]]]) == []
    steps_s = [[[1.0, 2.0], [1.0, 2.0]], [[1.0, 2.0], [1.0]]]
    assert [test.scope for test in compute_run_tests(NAMES[:2], sums, times_s, steps_s)] == ["run"]


def test_a_kind_of_calls_that_a_run_lacks_took_no_time():
    sums = [[{}, {}], [{}, {}]]
    times_s = [[{}, {}], [{("posix", "sync"): 2.0}, {("posix", "sync"): 3.0}]]
    (test,) = compute_run_tests(NAMES[:2], sums, times_s, [[[], []], [[], []]])
    assert [(group.low_s, group.high_s) for group in test.groups] == [(0.0, 0.0), (2.0, 3.0)]
