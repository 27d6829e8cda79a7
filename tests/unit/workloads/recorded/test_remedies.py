"""Remedies change the calls of a run, and leave the bytes that it writes where they were."""

from dataclasses import replace

import numpy as np
import pytest

from ensembles.model.calls import OPS
from ensembles.model.errors import EnsioError
from ensembles.workloads.recorded.accesses import Accesses, running_maximum
from ensembles.workloads.recorded.costs import costs_of, gain_s, time_s, without_waits
from ensembles.workloads.recorded.files_before import files_before
from ensembles.workloads.recorded.plan_of_run import PlanOfRun
from ensembles.workloads.recorded.remedies import remedy_named, written

NAMES = ("posix.open", "posix.close", "posix.write", "posix.read", "posix.lseek", "posix.fsync", "posix.stat")
NAMES += ("posix.ftruncate",)
KINDS = ("open", "close", "write", "read", "seek", "sync", "meta", "meta")
FILES = ("", "/data/a", "/data/b")
GAP_NS, CALL_NS = 1000, 300


def made(*calls, tasks=1):
    """Accesses of (task, name, file, offset, bytes), a microsecond apart."""
    rows = [(task, NAMES.index(f"posix.{name}"), file, *at) for task, name, file, *at in calls]
    task, call, file, offset, size = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    count = len(rows)
    return Accesses(
        names=NAMES,
        ops=tuple(OPS.index(kind) for kind in KINDS),
        files=FILES,
        tasks=tasks,
        task=task,
        call=call,
        file=file,
        offset=offset,
        bytes=size,
        moved=size.copy(),
        start=np.arange(count) * GAP_NS,
        duration=np.full(count, CALL_NS),
        gap=np.full(count, GAP_NS),
        access=np.where(call == 0, 32, 0),
        slot=np.zeros(count, np.int64),
    )


def of(found, name):
    """Offsets and bytes of the calls of a name."""
    which = found.is_call(f"posix.{name}")
    return list(zip(found.offset[which].tolist(), found.bytes[which].tolist(), strict=True))


def writes(count, size, begin=0, task=0, file=1):
    return [(task, "write", file, begin + size * i, size) for i in range(count)]


OPEN, CLOSE, SYNC = (0, "open", 1, -1, 0), (0, "close", 1, -1, 0), (0, "fsync", 1, -1, 0)


class TestJoin:
    def test_transfers_of_a_stream_are_joined_until_it_seeks(self):
        turns = [(0, "write", 1, -1, 10), (0, "read", 2, -1, 5)] * 4
        found = made(OPEN, *turns, (0, "lseek", 1, -1, 0), *turns)
        streams = replace(found, names=tuple(name.replace("posix", "stdio") for name in NAMES))
        assert of(replace(remedy_named("join=1MiB").apply(streams), names=NAMES), "write") == [(-1, 40)] * 2
        with pytest.raises(EnsioError):  # where a descriptor is, is not known
            remedy_named("join=1MiB").apply(found)

    def test_adjacent_writes_become_one_up_to_the_size(self):
        found = remedy_named("join=400").apply(made(OPEN, *writes(10, 100), CLOSE))
        assert of(found, "write") == [(0, 400), (400, 400), (800, 200)]

    def test_a_hole_and_a_sync_end_a_call(self):
        calls = [OPEN, *writes(2, 100), SYNC, *writes(2, 100, 200), *writes(2, 100, 1000), CLOSE]
        assert of(remedy_named("join=1MiB").apply(made(*calls)), "write") == [
            (0, 200),
            (200, 200),
            (1000, 200),
        ]

    def test_calls_of_other_files_in_between_do_not(self):
        calls = [
            each for i in range(3) for each in ((0, "write", 1, i * 10, 10), (0, "write", 2, i * 10, 10))
        ]
        assert of(remedy_named("join=1MiB").apply(made(*calls)), "write") == [(0, 30), (0, 30)]

    def test_tasks_stay_apart(self):
        calls = [*writes(3, 10), *writes(3, 10, begin=30, task=1)]
        assert of(remedy_named("join=1MiB").apply(made(*calls, tasks=2)), "write") == [(0, 30), (30, 30)]

    def test_seeks_to_where_the_data_end_go_too(self):
        calls = [each for i in range(4) for each in ((0, "lseek", 1, i * 10, 0), (0, "read", 1, i * 10, 10))]
        found = remedy_named("join=20").apply(made(*calls))
        assert of(found, "read") == [(0, 20), (20, 20)]
        assert of(found, "lseek") == [(0, 0), (20, 0)]

    def test_time_between_calls_stays(self):
        before = made(OPEN, *writes(1000, 100), CLOSE)
        assert remedy_named("join=1MiB").apply(before).gap.sum() == before.gap.sum()


def test_syncs_but_the_last_and_every_third_go():
    calls = [each for i in range(10) for each in (*writes(1, 10, i * 10), SYNC)]
    assert len(of(remedy_named("sync=end").apply(made(*calls)), "fsync")) == 1
    assert len(of(remedy_named("sync=every:3").apply(made(*calls)), "fsync")) == 4


def test_a_file_stays_open_unless_a_later_open_empties_it():
    calls = [each for i in range(5) for each in (OPEN, *writes(1, 10, i * 10), CLOSE)]
    found = remedy_named("keep-open").apply(made(*calls))
    assert [len(of(found, name)) for name in ("open", "write", "close")] == [1, 5, 1]
    again = [each for _ in range(5) for each in (OPEN, *writes(1, 10), CLOSE)]
    with pytest.raises(EnsioError, match="changes no call"):
        remedy_named("keep-open").apply(made(*again))


def test_paths_and_bytes_are_asked_for_once_until_the_file_changes():
    stat, read = (0, "stat", 1, -1, 0), (0, "read", 1, 0, 10)
    found = remedy_named("once").apply(made(stat, stat, read, read, *writes(1, 10), stat, read))
    assert (len(of(found, "stat")), len(of(found, "read"))) == (2, 2)


def test_split_calls_move_the_same_bytes():
    before = made(OPEN, *writes(3, 100), CLOSE)
    found = remedy_named("split=3").apply(before)
    assert of(found, "write")[:4] == [(0, 33), (33, 33), (66, 34), (100, 33)]
    assert (written(found) == written(before)).all()
    assert found.gap.sum() == before.gap.sum()


@pytest.mark.parametrize(
    "text", ["join", "join=0", "sync=every:0", "sync", "split=1", "none=1", "keep-open=2", "x"]
)
def test_what_is_no_remedy_is_refused(text):
    with pytest.raises(EnsioError):
        remedy_named(text)


def test_written_extents_are_joined_whatever_their_order():
    found = made(
        *writes(2, 10, 10), *writes(1, 10, 0), *writes(1, 4, 12), *writes(1, 10, 50), *writes(1, 5, file=2)
    )
    assert written(found).tolist() == [[1, 0, 30], [1, 50, 60], [2, 0, 5]]


def test_files_are_there_before_if_they_are_read_before_they_are_written():
    found = files_before(made(OPEN, *writes(2, 10), (0, "read", 1, 0, 20), (0, "read", 2, 5, 10)))
    assert found.sizes == {2: 15}
    assert found.ends == {1: 20, 2: 15}
    assert found.folders == ("/", "/data")


def test_plan_waits_as_long_as_the_run_did_between_its_calls():
    before = made(OPEN, *writes(100, 10), CLOSE)
    plan = PlanOfRun(before)
    rows = np.concatenate(list(plan.rows()))
    waits = rows[rows[:, 1] == len(NAMES)]
    assert plan.operations == len(rows) == len(before) + len(waits)
    assert before.gap.sum() - 20_000 < waits[:, 4].sum() <= before.gap.sum()
    assert len(np.concatenate(list(PlanOfRun(replace(before, gap=0 * before.gap)).rows()))) == len(before)


def test_largest_so_far_is_that_of_the_group():
    assert running_maximum(np.array([0, 0, 0, 1, 1]), np.array([3, 5, 4, 1, 2])).tolist() == [3, 5, 5, 1, 2]


class TestPlacement:
    def test_records_begin_at_multiples_of_the_size_and_reads_go_along(self):
        calls = [*writes(3, 100, begin=50), (0, "read", 1, 150, 60)]
        found = remedy_named("align=128").apply(made(OPEN, *calls, CLOSE))
        assert of(found, "write") == [(128, 100), (256, 100), (384, 100)]
        assert of(found, "read") == [(256, 60)]
        assert found.source[1:4].tolist() == [50, 150, 250]

    def test_a_file_is_given_the_size_that_its_records_take(self):
        found = remedy_named("align=128").apply(
            made(OPEN, (0, "ftruncate", 1, -1, 300), *writes(3, 100), CLOSE)
        )
        assert of(found, "ftruncate") == [(-1, 356)]

    @pytest.mark.parametrize(
        "more", [(0, "write", 1, 120, 100), (0, "read", 1, 90, 100)], ids=["overlap", "across records"]
    )
    def test_what_is_no_record_is_refused(self, more):
        with pytest.raises(EnsioError, match="align"):
            remedy_named("align=128").apply(made(OPEN, *writes(3, 100), more, CLOSE))

    def shared(self, *counts):
        begins = np.cumsum((0, *counts)) * 100
        calls = [
            (task, *rest)
            for task, count in enumerate(counts)
            for _, *rest in (OPEN, *writes(count, 100, begin=int(begins[task])), CLOSE)
        ]
        return made(*calls, tasks=len(counts))

    def test_writers_make_the_writes_of_all(self):
        found = remedy_named("aggregate=2").apply(self.shared(3, 1, 2, 2))
        writes_of = [(task, *at) for task, *at in zip(found.task, found.offset, found.bytes, strict=True)]
        assert [row for row in writes_of if row[2]] == [(0, 0, 400), (2, 400, 400)]
        assert sum("writers" in note for note in found.notes) == 1

    def test_all_tasks_move_as_many_bytes(self):
        before = self.shared(6, 1, 1, 0)
        found = remedy_named("even").apply(before)
        assert np.bincount(found.task, found.moved).tolist() == [200] * 4
        assert found.gap.sum() <= before.gap.sum()

    def test_files_of_one_task_stay_with_it(self):
        with pytest.raises(EnsioError, match="all of its tasks open"):
            remedy_named("even").apply(made(OPEN, *writes(3, 100), CLOSE))


class TestTimes:
    def test_the_longest_task_between_barriers_counts(self):
        found = made(*writes(3, 10), *writes(1, 10, task=1), tasks=2)
        assert time_s(found, found.duration) == pytest.approx(3 * (GAP_NS + CALL_NS) * 1e-9)

    def test_waits_for_a_processor_are_taken_off_the_calls_that_had_them(self):
        found = made(*writes(2, 10), *writes(2, 10, task=1), tasks=2)
        waits = {1: np.array([[1, 200], [7, 99]])}
        assert without_waits(found, waits).tolist() == [300, 300, 300, 100]

    def test_costs_of_new_calls_are_those_of_a_calibration(self):
        before = made(OPEN, *writes(40, 100), CLOSE)
        after = remedy_named("join=400").apply(before)
        assert gain_s(before, after, costs_of(before), 0.1) == "posix.write"
        measured = made(*writes(40, 400))
        low, high, likely = gain_s(before, after, costs_of(measured), 0.1)
        assert low == pytest.approx(0.9 * 30 * CALL_NS * 1e-9, rel=0.05)
        assert low < 30 * CALL_NS * 1e-9 < high
        assert likely == pytest.approx(30 * CALL_NS * 1e-9, rel=0.05)
