"""The latest night against those before it."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import msgspec
import numpy as np
import pytest
from night import drawn_record, night_record, simulated

from ensembles.comparison.compare import compare_read_runs
from ensembles.comparison.report import gate
from ensembles.faces.words import cell
from ensembles.history.check import Change, check, control_false_alarms, judge
from ensembles.history.record import FindingRecord, PhaseRecord, RunRecord
from ensembles.history.store import History
from ensembles.model.errors import EnsioError


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> list[RunRecord]:
    folder = tmp_path_factory.mktemp("nights")
    return [night_record(folder / str(k), k) for k in range(8)]


def history_of(tmp_path: Path, nights: list[RunRecord]) -> History:
    history = History(str(tmp_path / "runs.db"), make=True)
    for number, record in enumerate(nights):
        history.add(record, "nightly", {"half": "first" if number < 4 else "second"})
    return history


def test_equal_nights_are_no_regression(tmp_path: Path, nights: list[RunRecord]) -> None:
    found = check(history_of(tmp_path, nights), "nightly")
    assert (found.verdict, found.changes, len(found.baseline)) == ("ok", [], 7)


def test_a_night_of_another_recorder_is_no_change(tmp_path: Path, nights: list[RunRecord]) -> None:
    """It sees other calls: it is judged by nights of the same recorder, and does not judge others."""
    other = [
        msgspec.structs.replace(night_record(tmp_path / f"n{k}", 50 + k, 3.0), recorder="Darshan")
        for k in range(4)
    ]
    mine = [msgspec.structs.replace(each, recorder="ensio") for each in nights]
    history = history_of(tmp_path, [*mine, other[0]])
    assert check(history, "nightly").verdict == "too-few-runs"
    own = night_record(tmp_path / "own", 60)
    history.add(msgspec.structs.replace(own, recorder="ensio"), "nightly")
    assert (check(history, "nightly").verdict, len(check(history, "nightly").baseline)) == ("ok", 8)
    for each in other[1:]:
        history.add(each, "nightly")
    assert check(history, "nightly").verdict == "ok"


@pytest.mark.parametrize(("slower", "verdict"), [(1.6, "regression"), (0.6, "improvement")])
def test_a_change_of_all_durations_counts_when_a_third_night_shows_it(
    tmp_path: Path, nights: list[RunRecord], slower: float, verdict: str
) -> None:
    one, two, three = (night_record(tmp_path / f"n{k}", 50 + k, slower=slower) for k in range(3))
    history = history_of(tmp_path, [*nights, one])
    alone = check(history, "nightly")
    assert (alone.verdict, alone.changes) == ("ok", [])
    assert ("each task: posix write +" in alone.reason) == (slower > 1)
    assert check(history, "nightly", last=1).verdict == verdict
    history.add(two, "nightly")
    assert check(history, "nightly").verdict == "ok"
    history.add(three, "nightly")
    found = check(history, "nightly")
    assert (found.verdict, found.run.id) == (verdict, 11)
    assert [(change.part, change.what) for change in found.changes] == [("all durations", "durations")]
    assert found.changes[0].since_run == 9
    assert [one.op for one in found.comparisons if one.verdict == "different"] == ["write"]


def test_what_is_slower_and_what_is_not_is_said(tmp_path: Path, nights: list[RunRecord]) -> None:
    """Writes that are slower are not "all durations": the syncs of these nights are not."""
    changed = [night_record(tmp_path / f"n{number}", 60 + number, slower=4.0) for number in range(3)]
    history = history_of(tmp_path, [*nights, *changed])
    found = check(history, "nightly")
    assert re.search(
        r"^I/O of critical path \S+ ms → \S+ s, × 4\.\d+ \(p \S+\); span \S+ ms → \S+ s, × 4\.\d+; "
        r"each task: posix write \+\S+ s "
        r"\(× 4[.\d]*\), outside of these calls \+\S+ ms \(× 4\.\d+\), since run 9 of \S+ \(half=second\)$",
        found.reason,
    ), found.reason
    assert "sync" not in found.reason  # 0.6 % of the time in I/O
    assert found.difference is not None
    lengths_s = [[record.totals["span_s"] for record in group] for group in (nights, changed)]
    losses_s = sum(each.loss_s for each in found.difference.losses)
    assert losses_s == pytest.approx(np.mean(lengths_s[1]) - np.mean(lengths_s[0]))
    # A night like the one before it, which is in the baseline, is not passed over in silence.
    (tmp_path / "two").mkdir()
    last = check(history_of(tmp_path / "two", [*nights, *changed[:2]]), "nightly", last=1)
    assert (last.verdict, {change.what for change in last.changes}) == ("regression", {"time"})
    (tmp_path / "few").mkdir()
    history = history_of(tmp_path / "few", [*nights[:5], *changed[:2]])
    last = check(history, "nightly", last=1)
    assert last.verdict == "ok"
    assert " in the latest 2 runs, which is a regression with --last 2" in last.reason
    assert "--last 2" in last.reason
    assert check(history, "nightly", last=2).verdict == "regression"


@pytest.mark.parametrize(
    ("change", "part", "direction"),
    [
        ({"place": 1.4}, "mode 2 place", "slower"),
        ({"place": 0.7}, "mode 2 place", "faster"),
        ({"weight": 4.0}, "mode 2 weight", "slower"),
        ({"syncs": 2.0}, "calls", "more"),
        ({"first": 1.4}, "mode 1 place", "slower"),
    ],
)
def test_what_changes_alone_is_found_on_the_first_night_and_dated(
    change: dict[str, float], part: str, direction: str
) -> None:
    rng = np.random.default_rng(5)
    common = np.exp(0.1 * rng.standard_normal(27))
    found = judge([simulated(rng, factor) for factor in common[:-1]] + [simulated(rng, common[-1], **change)])
    assert (found.changes[0].part, found.changes[0].direction) == (part, direction)
    assert (found.first, found.changes[0].runs) == (26, 1)


def test_one_slow_night_does_not_hide_what_lasts_nor_is_it_the_begin() -> None:
    rng = np.random.default_rng(7)
    common = np.exp(0.01 * rng.standard_normal(12)) * [1, 1, 1, 1, 3, 1, 1, 1, *[1.45] * 4]
    nights = [simulated(rng, factor) for factor in common]
    assert [judge(nights[:last]).verdict for last in (8, 9, 10)] == ["ok", "ok", "ok"]
    for last in (11, 12):
        found = judge(nights[:last])
        assert (found.verdict, found.first) == ("regression", 8)
    # Slow nights that come often are how the experiment varies.
    often = [simulated(rng, factor) for factor in np.exp(0.01 * rng.standard_normal(12)) * ([1, 3] * 6)]
    assert judge(often).verdict == "ok"


def test_nights_of_few_calls_are_not_told_apart_by_single_slow_ones() -> None:
    """With 12 calls a night, one slow call after nights without any was a regression with p = 1e-20."""
    rng = np.random.default_rng(12)

    def night() -> RunRecord:
        slow = np.where(rng.random(12) < 0.04, 5.0, 1.0)
        return drawn_record({"write": 9e-5 * slow * rng.lognormal(0, 0.25, 12)})

    verdicts = [judge([night() for _ in range(6)]).verdict for _ in range(100)]
    # Of nights alike less than 1 % give an alarm: three of a hundred come in one of 50 test runs.
    assert verdicts.count("ok") >= 98
    # Half of the calls are slow in three nights.
    slow = np.repeat([1.0, 8.0], 6)
    late = [drawn_record({"write": 9e-5 * slow * rng.lognormal(0, 0.25, 12)}) for _ in range(3)]
    found = judge([*(night() for _ in range(12)), *late])
    assert found.verdict == "regression"
    assert "write" in found.reason


def test_a_small_change_is_found_after_a_week_and_dated() -> None:
    rng = np.random.default_rng(6)
    records = [simulated(rng, np.exp(0.05 * rng.standard_normal())) for _ in range(20)]
    records += [simulated(rng, np.exp(0.05 * rng.standard_normal()), place=1.1) for _ in range(7)]
    found = judge(records)
    assert found.verdict == "regression"
    assert found.changes[0].part == "mode 2 place"
    assert abs(found.first - 20) <= 1
    assert judge(records[:20]).verdict == "ok"


def test_false_alarms_are_controlled_over_experiments(tmp_path: Path, nights: list[RunRecord]) -> None:
    base = check(history_of(tmp_path, nights), "nightly")
    seen = dataclasses.replace(
        base, verdict="regression", changes=[Change("write", "posix", "durations", "slower", "", p=0.004)]
    )
    sure = dataclasses.replace(seen, changes=[Change("write", "posix", "durations", "slower", "", p=1e-6)])
    assert control_false_alarms([seen])[0].verdict == "regression"
    among = control_false_alarms([seen, sure, *[base] * 38])
    assert [one.verdict for one in among[:2]] == ["ok", "regression"]
    assert "among 40 experiments" in among[0].reason


def test_a_known_change_begins_a_new_baseline(tmp_path: Path, nights: list[RunRecord]) -> None:
    slow = [night_record(tmp_path / f"s{k}", 60 + k, slower=2.0) for k in range(5)]
    history = history_of(tmp_path, [*nights, *slow])
    found = check(history, "nightly")
    assert found.verdict == "regression"
    first = next(run for run in history.runs("nightly") if run.id == found.changes[0].since_run)
    assert first.id == 9
    history.acknowledge("nightly", first, "the new file system")
    after = check(history, "nightly")
    assert (after.verdict, [run.id for run in after.baseline]) == ("ok", [9, 10, 11, 12])
    assert after.acknowledged is not None
    assert after.acknowledged.reason == "the new file system"
    copy = History(str(tmp_path / "copy.db"), make=True)
    copy.merge(history)
    assert copy.acknowledgements("nightly") == history.acknowledgements("nightly")


def test_more_calls_are_a_regression(tmp_path: Path, nights: list[RunRecord]) -> None:
    latest = night_record(tmp_path / "latest", 99, syncs=400)
    found = check(history_of(tmp_path, [*nights, latest]), "nightly")
    assert found.verdict == "regression"
    assert ("sync", "calls", "more") in [(one.op, one.what, one.direction) for one in found.changes]


def test_a_change_stays_found_while_it_lasts() -> None:
    rng = np.random.default_rng(3)
    nights = [simulated(rng, 1.0) for _ in range(7)]
    finding = FindingRecord("many-syncs", "warning", "syncs wait")
    noted = msgspec.structs.replace(finding, severity="note")
    for changed in range(1, 7):
        known = [finding if changed % 2 else noted]
        new = simulated(rng, 1.0, syncs=2.0)
        calls = judge([*nights, *[new] * changed])
        assert (calls.verdict, calls.first) == ("regression", 7)
        assert any(change.what == "calls" for change in calls.changes)
        nights_with = [msgspec.structs.replace(nights[0], findings=known)] * (changed - 1)
        first = msgspec.structs.replace(nights[0], findings=[finding])
        found = judge([*nights, first, *nights_with])
        assert (found.verdict, found.first) == ("regression", 7)


def test_a_new_finding_is_a_regression(tmp_path: Path, nights: list[RunRecord]) -> None:
    finding = FindingRecord("strided-readahead", "critical", "reads wait")
    latest = msgspec.structs.replace(nights[-1], findings=[finding])
    found = check(history_of(tmp_path, [*nights[:-1], latest]), "nightly")
    assert found.verdict == "regression"
    assert "; new finding strided-readahead: reads wait, since run 8 of " in found.reason
    known = [msgspec.structs.replace(record, findings=[finding]) for record in nights]
    (tmp_path / "known").mkdir()
    assert check(history_of(tmp_path / "known", known), "nightly").verdict == "ok"


def test_too_few_runs_say_so(tmp_path: Path, nights: list[RunRecord]) -> None:
    found = check(history_of(tmp_path, nights[:3]), "nightly")
    assert found.verdict == "too-few-runs"
    assert "add 1 or more" in found.reason


def test_the_baseline_is_chosen(tmp_path: Path, nights: list[RunRecord]) -> None:
    history = history_of(tmp_path, nights)
    found = check(history, "nightly", history.runs("nightly", {"half": "first"}))
    assert [run.id for run in found.baseline] == [1, 2, 3, 4]
    with pytest.raises(EnsioError, match="its experiments are nightly"):
        check(history, "nightli")


def writes_of_night(rng: np.random.Generator, slow: int = 0) -> RunRecord:
    """A night of 400 writes of 1 ms, of which some take 80 ms; nights vary by 3 %."""
    writes_s = 1e-3 * np.exp(0.03 * rng.standard_normal()) * rng.lognormal(0, 0.2, 400)
    writes_s[:slow] = 80e-3
    return drawn_record({"write": writes_s})


def test_a_longer_time_of_the_run_is_said_and_counts_as_in_compare() -> None:
    """Three slow writes add 60 % to the time in I/O and move no mode: the gate of compare fails."""
    rng = np.random.default_rng(21)
    before = [writes_of_night(rng) for _ in range(8)]
    latest = writes_of_night(rng, slow=3)
    found = judge([*before, latest])
    assert (found.verdict, found.changes) == ("ok", [])
    assert "; time in I/O of all tasks " in found.reason
    assert found.reason.endswith(
        " in the latest run, which is a regression if the next two runs show it too, or with --last 1"
    )
    alone = judge([*before, latest], windows=(1,), confirm=False)
    assert alone.verdict == "regression"
    assert [(change.what, change.layer, change.op) for change in alone.changes] == [("time", None, None)]
    groups = [[record.as_read() for record in records] for records in (before, [latest])]
    judged = gate(compare_read_runs(groups, names=["before", "latest"]), 1.0)
    assert cell(judged.failed[0], "") in alone.reason
    lasting = judge([*before, *(writes_of_night(rng, slow=3) for _ in range(3))])
    assert lasting.verdict == "regression"


def test_one_run_alone_is_no_slower_than_compare_says() -> None:
    """By a fifth, after eight nights that vary by 3 %: one run may be the one that a busy machine slowed."""
    rng = np.random.default_rng(22)
    before = [writes_of_night(rng) for _ in range(8)]
    slower = {}
    for factor in (1.2, 1.6):
        writes_s = factor * 1e-3 * rng.lognormal(0, 0.2, 400)
        slower[factor] = judge([*before, drawn_record({"write": writes_s})], windows=(1,), confirm=False)
    assert {factor: found.verdict for factor, found in slower.items()} == {1.2: "ok", 1.6: "regression"}


def test_calls_that_take_longer_are_no_regression_of_a_shorter_run() -> None:
    rng = np.random.default_rng(23)

    def night(read: float = 1.0, sync: float = 1.0) -> RunRecord:
        common_s = 1e-3 * np.exp(0.03 * rng.standard_normal())
        return drawn_record(
            {
                "write": common_s * rng.lognormal(0, 0.2, 600),
                "read": read * common_s * rng.lognormal(0, 0.2, 300),
                "sync": sync * 5 * common_s * rng.lognormal(0, 0.2, 300),
            }
        )

    before = [night() for _ in range(8)]
    assert judge([*before, *(night(read=1.5) for _ in range(3))]).verdict == "regression"
    found = judge([*before, *(night(read=1.5, sync=0.2) for _ in range(3))])
    assert found.verdict == "improvement"
    assert ("read", "slower") in {(change.op, change.direction) for change in found.changes}
    assert found.reason.startswith("time in I/O of all tasks ")
    assert ", although posix read, slower: mode 1 " in found.reason


def test_durations_and_rates_of_other_sizes_are_not_compared() -> None:
    """Twice the bytes a call in twice the time."""
    rng = np.random.default_rng(24)

    def night(size: int, factor: float) -> RunRecord:
        writes_s = factor * np.exp(0.03 * rng.standard_normal()) * 1e-3 * rng.lognormal(0, 0.2, 400)
        record = drawn_record({"write": writes_s, "sync": 5e-3 * rng.lognormal(0, 0.2, 400)})
        write, sync = record.kinds
        moved = msgspec.structs.replace(write, bytes=400 * size)
        return msgspec.structs.replace(record, kinds=[moved, sync])

    before = [night(1 << 16, 1.0) for _ in range(8)]
    found = judge([*before, night(1 << 17, 2.0)])
    assert (found.verdict, found.changes) == ("ok", [])
    assert found.reason.endswith(
        "durations of other sizes are not compared: posix write (128 KiB a call instead of 64.0 KiB)"
    )
    assert not {part.name for part in found.series.parts if part.op == "write"} - {"calls"}


def test_a_run_that_ended_early_is_incomplete_and_no_baseline(tmp_path: Path) -> None:
    rng = np.random.default_rng(25)

    def night(number: int, part: float = 1.0) -> RunRecord:
        writes_s = 1e-3 * np.exp(0.03 * rng.standard_normal()) * rng.lognormal(0, 0.2, round(400 * part))
        record = drawn_record({"write": writes_s}, number)
        more = {"bytes_read": 0.0, "bytes_written": part * 400e6, "phases": 8 * part, "files": 1.0}
        return msgspec.structs.replace(record, totals=record.totals | more)

    history = History(str(tmp_path / "runs.db"), make=True)
    for number in range(6):
        history.add(night(number), "nightly")
    history.add(night(6, part=0.5), "nightly", {"commit": "c6"})
    found = check(history, "nightly")
    assert (found.verdict, found.fails, len(found.baseline)) == ("incomplete", True, 6)
    assert found.reason.startswith(
        "200 calls instead of 400, 191 MiB instead of 381 MiB, 4 phases instead of 8"
    )
    assert found.reason.endswith("since run 7 of 2023-11-20 (commit=c6)")
    history.add(night(7), "nightly")
    found = check(history, "nightly")
    assert (found.verdict, [run.id for run in found.baseline]) == ("ok", [1, 2, 3, 4, 5, 6])
    # Fewer and larger calls with the same bytes are another program, and a complete run.
    fewer = night(8, part=0.5)
    history.add(msgspec.structs.replace(fewer, totals=fewer.totals | {"bytes_written": 400e6}), "nightly")
    assert check(history, "nightly").verdict != "incomplete"


def test_a_killed_run_with_as_many_phases_is_incomplete(tmp_path: Path) -> None:
    rng = np.random.default_rng(27)
    history = History(str(tmp_path / "runs.db"), make=True)
    for number, writes, unended in [
        (0, 400, 1),
        (1, 400, 0),
        (2, 400, 1),
        (3, 400, 0),
        (4, 200, 0),
        (5, 200, 2),
    ]:
        record = drawn_record({"write": 1e-3 * rng.lognormal(0, 0.2, writes)}, number)
        more = {"bytes_written": 1e6 * writes, "phases": 1.0, "unended": float(unended)}
        history.add(msgspec.structs.replace(record, totals=record.totals | more), "nightly")
        verdict = check(history, "nightly").verdict
        assert number < 3 or verdict == {3: "ok", 4: "improvement", 5: "incomplete"}[number]


@pytest.mark.parametrize("kind", ["write", ""])
def test_phases_of_one_kind_are_one_line_and_the_sentence_stays(kind: str) -> None:
    """One slow target: each night says the same, first by how much runs are longer."""
    rng = np.random.default_rng(26)
    records = []
    for number in range(16):
        factor = (5.0 if number >= 12 else 1.0) * np.exp(0.02 * rng.standard_normal())
        record = drawn_record({"write": factor * 1e-2 * rng.lognormal(0, 0.1, 400)}, number)
        phases = [PhaseRecord(at, kind or None, 0.0, factor**1.3, 50, 0, 0) for at in range(1, 9)]
        records.append(msgspec.structs.replace(record, phases=phases))
    said = []
    for last in (13, 14, 15, 16):
        found = judge(records[:last])
        assert found.verdict == "regression"
        assert found.first == 12
        assert sum("phase" in change.sentence for change in found.changes) == 1
        times, _, entries = found.reason.partition(" (p ")
        assert re.fullmatch(r"time in I/O of all tasks \S+ s → \S+ s, × [45]\S*", times)
        said.append(re.findall(r"posix \w+|waiting|outside", entries))
    assert said == [["posix write"]] * 4
