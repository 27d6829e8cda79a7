"""Locks of stripes that nodes take from each other, and writers that wait for the page cache."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from made_io import KIB, MIB, Made, found_ids, io_run, refusal

import ensembles as en
from ensembles.diagnosis.rules import stripes
from ensembles.diagnosis.rules.stripes import StripeWrites

TASKS, STEPS, RECORD = 32, 40, 192 * KIB


def striped() -> dict[int, dict[str, str]]:
    packed = struct.pack("<II16sIHH", 0x0BD10BD0, 1, bytes(16), MIB, 4, 0)
    return {1: {"lustre.lov": (packed + b"".join(struct.pack("<20xI", target) for target in range(4))).hex()}}


def interleaved(
    slow_after: str, factor: float = 2.0, per_node: int = 4, function: str = "pwrite"
) -> list[list[Made]]:
    """In each step, records of all tasks follow each other in the file and in time, in random order."""
    rng = np.random.default_rng(7)
    starts = np.zeros((TASKS, STEPS))
    rows: list[list[tuple[float, float, int]]] = [[] for _ in range(TASKS)]
    last: dict[int, int] = {}
    for step in range(STEPS):
        for slot, rank in enumerate(rng.permutation(TASKS).tolist()):
            start = step * 40_000 + slot * 1000
            offset = (step * TASKS + slot) * RECORD
            us = 400 * float(np.exp(0.15 * rng.standard_normal()))
            before = last.get(offset // MIB)
            other = before is not None and before != rank
            node = other and before // per_node != rank // per_node
            us *= factor if {"node": node, "task": other, "none": False}[slow_after] else 1.0
            last[offset // MIB] = last[(offset + RECORD - 1) // MIB] = rank
            rows[rank].append((start, us, offset))
            starts[rank, step] = start
    tasks = []
    for calls in rows:
        ends = [start for start, _, _ in calls[1:]] + [calls[-1][0] + 40_000]
        tasks.append(
            [
                Made(function, us, RECORD, offset, gap_us=end - start - us)
                for (start, us, offset), end in zip(calls, ends, strict=True)
            ]
        )
    return tasks


def run_of(folder, tasks, per_node: int = 4, facts=None) -> en.Run:
    first = [calls[0].offset // RECORD * 1000.0 for calls in tasks]
    return io_run(
        folder, tasks, facts=striped() if facts is None else facts, starts_us=first, tasks_per_node=per_node
    )


@pytest.mark.parametrize("function", ["pwrite", "MPI_File_write_at"])
def test_writes_after_another_nodes_write_in_the_same_stripe_are_slow(function, tmp_path):
    run = run_of(tmp_path / "a", interleaved("node", function=function))
    (found,) = (each for each in en.diagnose(run).findings if each.id == "lock-contention")
    assert found.evidence["slowdown"] == pytest.approx(2.0, rel=0.1)
    assert found.evidence["p"] < 0.01
    assert "lfs setstripe -S" in found.advice
    assert found.gain_s is not None


@pytest.mark.parametrize("cause", ["none", "task"])
def test_slow_writes_after_those_of_any_task_are_no_locks_of_nodes(cause, tmp_path):
    assert "lock-contention" not in found_ids(run_of(tmp_path / "a", interleaved(cause)))


def test_what_the_run_lacks_is_said(tmp_path):
    tasks = interleaved("node")
    assert "one node" in refusal(run_of(tmp_path / "a", tasks, per_node=TASKS), "lock-contention")
    assert "Lustre" in refusal(run_of(tmp_path / "b", tasks, facts={}), "lock-contention")
    alone = run_of(tmp_path / "c", interleaved("node", per_node=1), per_node=1)
    assert "several tasks on each node" in refusal(alone, "lock-contention")


def test_a_sample_of_stripes_holds_all_writes_of_each_whatever_the_parts(tmp_path, monkeypatch):
    run = run_of(tmp_path / "a", interleaved("none"))
    whole = run.summarize(StripeWrites.for_run).to_arrays()
    # Records of 192 KiB: some cross the end of a stripe of 1 MiB, and count there twice.
    first, last = run.events.offset // MIB, (run.events.offset + RECORD - 1) // MIB
    assert len(whole["start"]) == TASKS * STEPS + np.count_nonzero(first != last)
    monkeypatch.setattr(stripes, "MOST_ROWS", 300)
    parts = []
    for ranks in (run.events.rank < 10, run.events.rank >= 10):
        parts.append(StripeWrites.for_run(run))
        parts[-1].add(run.events[ranks])
    parts[0].merge(parts[1])
    some = parts[0].to_arrays()
    assert 30 < len(some["start"]) <= 300
    chosen = np.isin(whole["stripe"], some["stripe"])
    for name, column in some.items():
        np.testing.assert_array_equal(column, whole[name][chosen])


GIB = 1 << 30


def written(levels: list[float], slow: float, intervals: int = 20) -> tuple[list[Made], list[dict[str, int]]]:
    """A second of writes between samples; they are slower where the level is high."""
    rng = np.random.default_rng(3)
    calls, samples = [], [{"us": 0, "dirty_bytes": 0, "available_bytes": 20 * GIB}]
    for number in range(intervals):
        level = levels[number % len(levels)]
        us = 800 * (slow if level > 0.1 else 1.0)
        for call in range(100):
            each = us * float(np.exp(0.1 * rng.standard_normal()))
            calls.append(Made("pwrite", each, MIB, (number * 100 + call) * MIB, gap_us=10_000 - each))
        dirty = int(level * 20 * GIB)
        moment = {"us": (number + 1) * 1_000_000}
        samples.append(moment | {"dirty_bytes": dirty, "available_bytes": 20 * GIB - dirty})
    return calls, samples


RISING = [0.02, 0.03, 0.04, 0.16, 0.17, 0.17]


def test_writers_that_are_held_back_near_the_limit_of_dirty_pages_are_named(tmp_path):
    calls, samples = written(RISING, slow=4.0)
    run = io_run(tmp_path / "a", [calls], samples=samples)
    (found,) = (each for each in en.diagnose(run).findings if each.id == "write-back")
    assert found.evidence["dirty_share"] == pytest.approx(0.17, abs=0.01)
    assert 2.0 < found.evidence["slowdown"] < 5.0
    # The bytes have to reach the disk: nothing is promised.
    assert (found.gain_s[0], found.severity) == (0.0, "warning")
    assert "vm.dirty_background_bytes" in found.advice


@pytest.mark.parametrize(("levels", "slow"), [(RISING, 1.0), ([0.01, 0.02], 1.0), ([0.16, 0.17], 4.0)])
def test_dirty_pages_without_slow_writes_or_without_change_are_no_finding(levels, slow, tmp_path):
    calls, samples = written(levels, slow)
    assert "write-back" not in found_ids(io_run(tmp_path / "a", [calls], samples=samples))


def test_without_samples_or_with_few_it_says_what_to_record(tmp_path):
    calls, samples = written(RISING, slow=4.0, intervals=4)
    assert "longer run" in refusal(io_run(tmp_path / "a", [calls], samples=samples), "write-back")
    assert "ENSIO_SURROUNDINGS" in refusal(io_run(tmp_path / "b", [calls]), "write-back")
