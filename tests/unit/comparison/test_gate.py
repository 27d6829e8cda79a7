"""The gate ``--fail-on slower``: times a run decide, of the shapes that users met."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from ensembles.answers.compare import ShownComparison, answer_comparisons
from ensembles.comparison.compare import ReadRun, compare_read_runs
from ensembles.comparison.report import Comparison, gate
from ensembles.comparison.times import ComparedSums, runs_that_decide, time_changes
from ensembles.comparison.units import ComparedCalls, Key
from ensembles.faces.words import cell, sentence
from ensembles.statistics.samples.counted_durations import CountedDurations

BASE = {("posix", "sync"): (48, 15e-3), ("posix", "open"): (104, 2e-3), ("posix", "write"): (1152, 50e-6)}
"""Calls a run, and their typical duration."""
SYNCED = BASE | {("posix", "sync"): (1536, 6e-3)}
SMALL = BASE | {("posix", "write"): (30_000, 50e-6)}


def runs_of(
    rng: np.random.Generator,
    number: int,
    kinds: dict[Key, tuple[int, float]],
    spread: float = 0.05,
    bytes_written: int = 1 << 27,
) -> list[ReadRun]:
    """Runs of 8 tasks that vary by a common factor and by one of each kind of calls, without files."""
    made = []
    for at in range(number):
        common = np.exp(spread * rng.standard_normal())
        samples, times_s, moved = {}, {}, {}
        for key, (calls, typical_s) in kinds.items():
            factor = common * np.exp(spread * rng.standard_normal())
            durations_s = factor * typical_s * rng.lognormal(0, 0.3, calls)
            samples[key] = CountedDurations.from_durations(durations_s)
            times_s[key] = float(durations_s.sum())
            if key[1] == "write":
                moved[key] = (calls, bytes_written)
        io_s = sum(times_s.values())
        totals = {
            "tasks": 8.0,
            "bytes_read": 0.0,
            "bytes_written": float(bytes_written),
            "io_time_s": io_s,
            "span_s": 2 + io_s / 8,
            "critical_path_s": io_s / 8 * np.exp(spread * rng.standard_normal()),
        }
        made.append(ReadRun(f"run{at}", ComparedCalls(times_s, samples), ComparedSums(totals, moved), []))
    return made


def compared(*groups: Sequence[ReadRun]) -> list[Comparison]:
    return compare_read_runs(groups, names=["a", "b", "c"][: len(groups)])


def mean_span_s(runs: Sequence[ReadRun]) -> float:
    return float(np.mean([run.sums.totals["span_s"] for run in runs]))


def of_kind(found: Sequence[Comparison], op: str) -> Comparison:
    return next(each for each in found if each.op == op)


@pytest.mark.parametrize("sizes", [(4, 4), (3, 3), (4, 1), (2, 1), (1, 1)])
@pytest.mark.parametrize(("kinds", "op"), [(SYNCED, "sync"), (SMALL, "write")])
def test_much_more_time_in_a_kind_of_calls_fails_and_its_repair_does_not(sizes, kinds, op):
    """Shorter syncs, but 32 times as many; and small writes, as many times as long in all."""
    rng = np.random.default_rng(7)
    before, after = runs_of(rng, sizes[0], BASE), runs_of(rng, sizes[1], kinds)
    found = compared(before, after)
    kind = of_kind(found, op)
    assert (kind.verdict, kind.direction) == ("different", "slower")
    assert kind.slowdown == pytest.approx(
        np.mean([run.calls.time_s["posix", op] for run in after])
        / np.mean([run.calls.time_s["posix", op] for run in before])
    )
    for factor in (1.0, 1.1):
        failed = [cell(each, "") for each in gate(found, factor).failed]
        assert failed[0].startswith("I/O of critical path ")
        assert f"; each task: posix {op} +" in failed[0]  # the entry with most of the loss comes first
    if op == "sync":
        assert re.search(
            r"single calls are shorter \(× 0\.[345]\d* in the mean\), but there are more", kind.reason
        )
    assert any("single runs" in each for each in failed) == (sizes == (1, 1))
    assert bool(re.search(r" if runs vary by 2\d %\)", " ".join(failed))) == (sizes in ((1, 1), (2, 1)))
    assert len(failed) == 1 + (sizes == (1, 1))
    (one,) = found[0].differences
    assert sum(each.loss_s for each in one.losses) == pytest.approx(mean_span_s(after) - mean_span_s(before))
    assert one.losses[0].is_of_other_calls
    back = compared(after, before)
    assert gate(back, 1.0) == gate(back, 1.1)
    assert gate(back, 1.0).failed == gate(back, 1.0).undecided == []
    assert of_kind(back, op).direction == "faster"
    assert of_kind(back, op).slowdown == 1


@pytest.mark.parametrize("times_more", [1, 4])
def test_one_run_each_of_longer_calls_is_decided_if_they_are_others(times_more):
    """Calls of the same sizes may vary from run to run by as much."""
    rng, write = np.random.default_rng(1), ("posix", "write")
    before = runs_of(rng, 1, {write: (60, 0.2)})
    after = runs_of(rng, 1, {write: (60, 0.8)}, bytes_written=times_more << 27)
    judged = gate(compared(before, after), 1.1)
    assert (bool(judged.failed), bool(judged.undecided)) == (times_more > 1, times_more == 1)


def test_runs_that_vary_much_ask_for_more_runs():
    """Deviation 1.15 octaves, difference 1, power 80 %: by theory 2 (1.15 · (1.96 + 0.84))² = 21 a group."""
    (change,) = time_changes({"io": [[1, 4, 1, 4], [2, 8, 2, 8]]}, ["a", "b"], ["io"], True)["io"]
    assert 21 <= (runs_that_decide(change, 0.05) or 0) <= 30


def test_what_moved_relative_to_its_mode_is_not_slower():
    """Needless opens, each of a few µs: four times as many in the same time, beside the slow ones."""
    rng = np.random.default_rng(3)
    found = []
    for extra in (0, 384):
        group = runs_of(rng, 4, BASE)
        for run in group:
            opens_s = np.append(2e-3 * rng.lognormal(0, 0.3, 104), 5e-6 * rng.lognormal(0, 0.3, extra))
            run.calls.samples["posix", "open"] = CountedDurations.from_durations(opens_s)
            run.calls.time_s["posix", "open"] = float(opens_s.sum())
        found.append(group)
    for pair in (found, found[::-1]):
        both = compared(*pair)
        assert of_kind(both, "open").verdict == "different"
        assert of_kind(both, "open").slowdown == 1
        assert not any("open" in cell(each, "") for each in gate(both, 1.0).failed)


def test_one_run_each_that_is_not_decided_is_said():
    rng = np.random.default_rng(5)
    before, after = runs_of(rng, 1, BASE, spread=0.0), runs_of(rng, 1, BASE, spread=0.0)
    for name in ("critical_path_s", "io_time_s"):
        after[0].sums.totals[name] = 1.4 * before[0].sums.totals[name]
    judged = gate(compared(before, after), 1.1)
    assert judged.failed == []
    said = cell(*judged.undecided, "")
    assert "I/O of critical path: " in said
    assert "× 1.4, which variation from run to run may explain (p 0.73 if runs vary by 100 %): " in said
    assert said.endswith(" runs per group to know")
    said = answer_comparisons(compared(before, after), judged, "slower=10%").statements[0]
    assert sentence(said) == "passes --fail-on slower=10%, which these runs do not decide"
    assert gate(compared(before, after), 1.5).undecided == []


def test_more_bytes_are_said_with_the_time_that_they_take():
    rng = np.random.default_rng(6)
    before, after = runs_of(rng, 3, BASE), runs_of(rng, 3, SYNCED, bytes_written=1 << 29)
    assert cell(gate(compared(before, after), 1.1).failed[0], "").count("; they move × 4 the bytes; ") == 1


@pytest.mark.long
def test_healthy_runs_seldom_fail():
    """At a level of 5 % for whole runs and for kinds of calls each; a kind alone needs longer runs, too."""
    rng = np.random.default_rng(11)
    fails = 0
    sets = [(sizes, spread) for sizes in ((4, 4), (4, 1), (2, 2), (1, 1)) for spread in (0.05, 0.2)] * 5
    for sizes, spread in sets:
        groups = [runs_of(rng, number, BASE, spread) for number in sizes]
        fails += bool(gate(compared(*groups), 1.0).failed)
    assert fails <= 6  # of 40; with a rate of 5 %, more than 6 have a probability of 0.3 %


def test_four_and_four_runs_can_be_significant_on_the_critical_path():
    rng = np.random.default_rng(1)
    found = compared(runs_of(rng, 4, BASE), runs_of(rng, 4, SYNCED))
    tests = {test.what: test for test in found[0].run_tests if test.scope == "run"}
    assert tests["critical_path_s"].holm_p == tests["critical_path_s"].p == pytest.approx(2 / 70)
    assert tests["io_time_s"].holm_p == pytest.approx(4 / 70)
    words = " ".join(str(answer_comparisons(found)).split())
    first = words[: words.index("a run, mean")]
    assert first.startswith("In I/O, whole runs are slower: I/O of critical path ")
    assert "; each task: posix sync +" in first
    assert words.index(", 1,536 calls instead of 48)") < words.index("a run, mean")


def test_sentences_and_table_are_of_one_decomposition_into_modes():
    """Modes that a group lacks are matched by group; the table is then left out."""
    rng = np.random.default_rng(2)
    found = of_kind(compared(runs_of(rng, 4, BASE), runs_of(rng, 4, SYNCED)), "sync")
    text = str(ShownComparison(**vars(found)))
    listed = {(part.what, part.t_s) for part in found.parts}
    is_same = all(move.t_s is None or (move.what, move.t_s) in listed for move in found.moved)
    assert ("mode 1 place" in text) == is_same
    assert ("matched in order" in text) != is_same


def test_the_first_time_of_whole_runs_decides_whether_others_count():
    times_s = {
        "critical_path_s": [[1.0, 1.1, 0.9], [1.0, 1.1, 0.9]],
        "io_time_s": [[1.0, 1.1, 0.9], [9.0, 9.1, 9.2]],
    }
    found = time_changes(times_s, ["a", "b"], list(times_s), of_whole_runs=True)
    assert found["critical_path_s"][0].adjusted_p == found["io_time_s"][0].adjusted_p == 1
    assert found["io_time_s"][0].p < 0.001
    kinds = time_changes(times_s, ["a", "b"], list(times_s))
    assert kinds["io_time_s"][0].adjusted_p == pytest.approx(2 * kinds["io_time_s"][0].p)


def test_a_time_from_nothing_is_not_tested():
    (change,) = time_changes({"posix sync": [[0.0, 0.0], [1.0, 1.1]]}, ["a", "b"], ["posix sync"])[
        "posix sync"
    ]
    assert (change.ratio, change.p, change.adjusted_p) == (None, None, None)
    assert not change.is_longer(0.05)


def test_few_runs_that_are_close_by_accident_do_not_show_how_much_runs_vary():
    """A stranger's healthy runs: two of them 0.25 % apart, the third a sixth longer."""
    (change,) = time_changes(
        {"io_time_s": [[0.371, 0.372], [0.433]]}, ["a", "b"], ["io_time_s"], of_whole_runs=True
    )["io_time_s"]
    assert change.p is not None
    assert change.p > 0.3
    (much,) = time_changes(
        {"io_time_s": [[0.371, 0.372], [1.2]]}, ["a", "b"], ["io_time_s"], of_whole_runs=True
    )["io_time_s"]
    assert much.is_longer(0.05, 1.1)


@pytest.mark.parametrize(("other_s", "fails"), [(0.7, True), (0.4, False)])
def test_a_kind_of_calls_fails_only_where_the_whole_run_is_longer(other_s, fails):
    """Reads take 200 ms longer, and writes less: the sum is what a user waits for."""
    rng = np.random.default_rng(3)
    before = runs_of(rng, 4, {("posix", "read"): (400, 1e-3), ("posix", "write"): (700, 1e-3)}, 0.02)
    after = runs_of(
        rng, 4, {("posix", "read"): (400, 1.5e-3), ("posix", "write"): (700, other_s / 700)}, 0.02
    )
    for run in (*before, *after):  # one task: the critical path is not known
        del run.sums.totals["critical_path_s"]
    assert bool(gate(compared(before, after), 1.1).failed) is fails


def test_a_single_call_does_not_fail():
    rng = np.random.default_rng(4)
    kinds = {("posix", "write"): (400, 1e-3), ("posix", "meta"): (1, 2e-3)}
    for longer_s in (14e-3, 200e-3):
        before = runs_of(rng, 1, kinds, 0.02)
        after = runs_of(rng, 1, kinds | {("posix", "meta"): (1, longer_s)}, 0.02)
        found = compared(before, after)
        # Of 3 % of the time one call says nothing; one that is half of it does.
        assert (of_kind(found, "meta").verdict == "different") == (longer_s > 0.1)
        assert bool(gate(found, 1.1).failed) == (longer_s > 0.1)


@pytest.mark.parametrize(
    ("sizes", "factor", "fails"), [((4, 1), 1.3, False), ((4, 1), 1.5, True), ((1, 1), 2.0, True)]
)
def test_one_new_run_is_judged_by_what_runs_vary_at_least(sizes, factor, fails):
    """Four baselines within 1 %: by their t test alone a run that a busy machine slowed by 8 % would fail."""
    times_s = [[1.0, 1.01, 0.99, 1.005][: sizes[0]], [factor] * sizes[1]]
    (change,) = time_changes({"io_time_s": times_s}, ["a", "b"], ["io_time_s"], True)["io_time_s"]
    assert change.is_longer(0.05) is fails
    assert change.low is not None
    assert (change.low > 1) is fails
    assert change.evidence.endswith(f" if runs vary by {15 if sizes[0] > 1 else 25} %")
    (repeated,) = time_changes(
        {"io_time_s": [*times_s[:1], [factor, factor * 1.01]]}, ["a", "b"], ["io_time_s"], True
    )["io_time_s"]
    assert repeated.is_longer(0.05)


def test_durations_of_one_new_run_do_not_fail():
    """Three baselines happen to be alike, so that durations certainly moved; the time a run did not."""
    rng = np.random.default_rng(8)
    kinds = {("posix", "write"): (400, 1e-3)}
    before = runs_of(rng, 3, kinds, 0.001)
    after = runs_of(rng, 1, {("posix", "write"): (400, 1.25e-3)}, 0.001)
    found = compared(before, after)
    assert (found[0].verdict, found[0].direction) == ("different", "slower")
    judged = gate(found, 1.1)
    assert judged.failed == []
    assert "if runs vary by 25 %" in cell(judged.undecided[0], "")


def test_the_headline_never_says_slower_with_a_factor_below_one():
    """A few slow calls decide the time a run; the median, a little less, is not said."""
    rng = np.random.default_rng(9)
    kinds = {("posix", "write"): (400, 1e-3), ("posix", "open"): (1, 1e-5), ("posix", "close"): (1, 1e-5)}
    before, after = runs_of(rng, 4, kinds, 0.01), runs_of(rng, 4, kinds, 0.01)
    for run in after:
        slow_s = np.append(0.94e-3 * rng.lognormal(0, 0.3, 380), 40e-3 * rng.lognormal(0, 0.1, 20))
        run.calls.samples["posix", "write"] = CountedDurations.from_durations(slow_s)
        run.sums.totals["io_time_s"] += float(slow_s.sum()) - run.calls.time_s["posix", "write"]
        run.calls.time_s["posix", "write"] = float(slow_s.sum())
    found = compared(before, after)
    text = str(answer_comparisons(found))
    head = " ".join(text.split("\n\n")[0].split())
    assert re.search(r"each task: posix write \+\S+ ms \(× 2\.\d+\)", head)
    assert "median" not in head
    # Single calls and what takes next to nothing are one line.
    minor = "posix open, posix close: single calls or little time, "
    assert minor in text.replace("posix close, posix open", "posix open, posix close")
    assert not re.search(r"^posix (open|close)  ", text, re.M)


def test_advice_on_more_runs_is_for_what_takes_time():
    rng = np.random.default_rng(10)
    kinds = {("posix", "write"): (400, 1e-3), ("posix", "open"): (40, 1e-5)}
    found = compared(runs_of(rng, 3, kinds, 0.2), runs_of(rng, 3, kinds, 0.2))
    assert "runs per group" in of_kind(found, "write").reason
    assert "runs per group" not in of_kind(found, "open").reason
    assert of_kind(found, "open").verdict == "inconclusive"


def test_no_statement_rests_on_one_call():
    """One open of seventeen takes 10 ms instead of 20 µs: the others are as fast."""
    rng = np.random.default_rng(13)
    kinds = {("posix", "write"): (400, 1e-5), ("posix", "open"): (17, 2e-5)}
    before, after = runs_of(rng, 1, kinds, 0.02), runs_of(rng, 1, kinds, 0.02)
    for slow_calls, certain in ((1, False), (6, True)):
        opens_s = 2e-5 * rng.lognormal(0, 0.3, 17)
        opens_s[:slow_calls] = 1e-2
        after[0].calls.samples["posix", "open"] = CountedDurations.from_durations(opens_s)
        after[0].calls.time_s["posix", "open"] = float(opens_s.sum())
        (change,) = of_kind(compared(before, after), "open").times
        assert change.is_certain(0.05) is certain


def test_the_account_of_tasks_that_live_one_after_the_other_is_that_of_the_run():
    runs = runs_of(np.random.default_rng(1), 2, BASE)
    for run, span_s in zip(runs, (20.0, 24.0), strict=True):
        run.sums.totals.update(span_s=span_s, tasks=150.0, tasks_at_once=1.0)
    (one,) = compared(runs[:1], runs[1:])[0].differences
    assert sum(each.after_s for each in one.losses) == pytest.approx(24.0)
    assert sum(runs[1].calls.time_s.values()) == pytest.approx(
        sum(each.after_s for each in one.losses if each.change is not None)
    )
    assert "each task" not in one.sentence()


def test_the_doubt_about_whole_runs_rises_evenly_with_what_is_in_doubt():
    times_s = {"io_time_s": [[1.0], [4.0]]}
    of = [time_changes(times_s, ["a", "b"], [*times_s], True, {"io_time_s": at / 20}) for at in range(21)]
    p = np.array([each["io_time_s"][0].p for each in of])
    assert (np.diff(p) > 0).all()
    assert np.diff(p).max() < 0.1


def test_layers_that_one_recorder_does_not_see_are_left_out():
    stream = BASE | {("stdio", "write"): (300, 1e-5)}
    one, other = runs_of(np.random.default_rng(1), 1, stream), runs_of(np.random.default_rng(2), 1, BASE)
    assert "stdio" in [each.layer for each in compared(one, other)]
    mine, theirs = ([replace(run, recorder=name)] for (run,), name in ((one, "ensio"), (other, "strace")))
    found = compared(mine, theirs)
    assert "stdio" not in [each.layer for each in found]
    assert any("stdio" in note and "strace" in note for note in found[0].notes)
    assert "calls" not in [total.what for total in found[0].run_totals]
    theirs = [replace(run, layers=frozenset({"stdio"})) for run in theirs]
    assert "stdio" in [each.layer for each in compared(mine, theirs)]
