"""The shared evidence: tables are sums over the calls, in whatever parts they come."""

from __future__ import annotations

import numpy as np
import pytest
from made_patterns import OPEN, model, operation, pattern, simulated, stage

import ensembles as en
from ensembles.diagnosis.case import Case, p_of_largest
from ensembles.diagnosis.evidence import Evidence, size_classes
from ensembles.summaries.keyed_sums import KeyedSums

RECORDS = "(repetition * tasks + rank) * 2 * MiB + call * MiB"
PATTERN = pattern(
    OPEN,
    stage("write", operation("write_at", times=2, offset=RECORDS, size="MiB"), repetitions=3),
    stage("read", operation("read_at", times=4, offset="call * MiB", size="MiB")),
    tasks=4,
    tasks_per_node=2,
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> en.Run:
    machine = model(stripe_count=1, cache_MiB=0)
    return simulated(tmp_path_factory.mktemp("evidence") / "run", PATTERN, machine)


def test_tables_hold_every_call_once(run):
    evidence = run.summarize(Evidence.for_run)
    calls = evidence.calls.columns()
    io = run.events[run.events.depth == 0]
    io = io[np.array([not call.waits_for_tasks for call in run.calls])[io.call]]
    assert calls["n"].sum() == len(io) == 4 * (1 + 6 + 4)
    assert calls["bytes"].sum() == 4 * 10 << 20
    assert calls["time_ns"].sum() == io.duration.sum()
    assert evidence.durations.columns()["n"].sum() == len(io)
    # Each record is one stripe of a file on one target, and aligned.
    assert evidence.targets.columns()["n"].sum() == 40
    assert set(evidence.ends.columns()["ragged"].tolist()) == {0}
    # The first read of a task on a file does not jump, and the others continue it.
    assert not evidence.order.columns()["jumps"].any()


def test_parts_merged_are_the_whole(run):
    whole = run.summarize(Evidence.for_run).to_arrays()
    parts = Evidence.for_run(run), Evidence.for_run(run)
    for part, chosen in zip(parts, (run.events.rank < 2, run.events.rank >= 2), strict=True):
        part.add(run.events[chosen])
    parts[0].merge(parts[1])
    merged = parts[0].to_arrays()
    assert whole.keys() == merged.keys()
    for name, column in whole.items():
        np.testing.assert_allclose(merged[name], column, rtol=1e-12, err_msg=name)


def test_a_gain_is_by_how_much_the_last_arrivals_are_earlier(run):
    case = Case(run, run.summarize(Evidence.for_run))
    assert case.gain_s(np.zeros(len(case))) == 0
    everything = case.gain_s(case.rows["time_ns"].astype(float))
    assert 0 < everything <= case.span_s
    # What the others save does not gain: the slowest task of each phase remains.
    arrival = case.by_cell(case.rows["time_ns"])
    slowest = np.argmax(np.where(case.present, case.model._arrival, -1), axis=1)
    others = case.task != slowest[case._window]
    assert case.gain_s(np.where(others, case.rows["time_ns"], 0.0)) == 0
    assert arrival.sum() == pytest.approx(case.rows["time_ns"].sum())


def test_size_classes_are_octaves():
    assert size_classes(np.array([0, 1, 2, 1 << 20, (1 << 20) + 1, (1 << 21) - 1], np.uint64)).tolist() == [
        0,
        1,
        2,
        21,
        21,
        21,
    ]


def test_keys_that_do_not_fit_into_one_number_are_grouped_too():
    rng = np.random.default_rng(1)
    keys = rng.integers(0, 1 << 40, 50)[rng.integers(0, 50, 400)], rng.integers(0, 2, 400) << 40
    table = KeyedSums(("a", "b"), ("n",))
    for part in np.array_split(np.arange(400), 7):
        table.add({"a": keys[0][part], "b": keys[1][part], "n": np.ones(len(part), np.int64)})
    expected: dict[tuple[int, int], int] = {}
    for pair in zip(*map(np.ndarray.tolist, keys), strict=True):
        expected[pair] = expected.get(pair, 0) + 1
    columns = table.columns()
    pairs = zip(columns["a"].tolist(), columns["b"].tolist(), strict=True)
    assert dict(zip(pairs, columns["n"].tolist(), strict=True)) == expected
    assert list(expected) != sorted(expected)
    assert columns["n"].sum() == 400


def test_the_permutation_test_keeps_its_level_and_finds_a_task_that_is_always_slow():
    rng = np.random.default_rng(2)
    found = [p_of_largest(rng.standard_normal((8, 16)), np.ones((8, 16), bool), draws=99) for _ in range(100)]
    # Under the null hypothesis, p <= 0.1 in a tenth; more than 22 of 100 has probability 2e-4.
    assert sum(p <= 0.1 for p in found) <= 22
    slow = rng.standard_normal((8, 16))
    slow[:, 3] += 3
    assert p_of_largest(slow, np.ones((8, 16), bool)) <= 0.01
