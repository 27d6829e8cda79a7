"""Steps of collective calls, against a walk through every moment of every call."""

import numpy as np
import pytest

from ensembles.model.events import Call, Events
from ensembles.structure.collective_steps import NO_STORAGE, step_table
from ensembles.summaries.collective_steps import CollectiveSteps

CALLS = (
    Call("MPI_File_write_all", "mpiio", "write"),
    Call("MPI_File_read_all", "mpiio", "read"),
    Call("pwrite", "posix", "write"),
    Call("lseek", "posix", "seek"),
    Call("MPI_File_write_at", "mpiio", "write"),
    Call("ncmpi_put_vara_all", "pnetcdf", "write"),
)
NAMES = {call.name: number for number, call in enumerate(CALLS)}
FILES = ("", "/a", "/b")


class Rows:
    def __init__(self):
        self.rows = []

    def add(self, call, rank, start, end, file=1, depth=0, thread=0):
        self.rows.append((NAMES[call], file, rank, thread, depth, start, end - start, -1))

    def summary(self, parts=1, seed=0) -> CollectiveSteps:
        names = CollectiveSteps.columns
        columns = np.array(self.rows, np.int64).reshape(-1, len(names)).T
        part = np.random.default_rng(seed).integers(0, parts, columns.shape[1])
        summaries = []
        for number in range(parts):
            mine = dict(zip(names, columns[:, part == number], strict=True))
            summary = CollectiveSteps()
            summary.add(Events.partly(mine, CALLS, FILES))
            summaries.append(summary)
        for other in summaries[1:]:
            summaries[0].merge(other)
        return summaries[0]


def walked(instances):
    """Nanoseconds in communication, storage, entry, storage of others; a call is (start, end, spans)."""
    sums = np.zeros(4, np.int64)
    for calls in instances:
        last = max(start for start, _, _ in calls)
        waits = min(end for _, end, _ in calls) >= last
        for start, end, spans in calls:
            for now in range(start, end):
                own = any(low <= now < high for low, high in spans)
                others = any(
                    low <= now < high
                    for other_start, other_end, each in calls
                    for low, high in each
                    if other_start <= now < other_end
                )
                kind = 1 if own else 2 if waits and now < last else 3 if waits and others else 0
                sums[kind] += 1
    return sums.tolist()


@pytest.mark.parametrize("seed", range(20))
def test_steps_are_those_of_every_moment(seed):
    rng = np.random.default_rng(seed)
    rows, instances = Rows(), []
    ranks = int(rng.integers(1, 6))
    now = np.zeros(ranks, np.int64)
    for number in range(int(rng.integers(1, 8))):
        calls = []
        late = rng.integers(0, 30, ranks)
        for rank in range(ranks):
            start = int(now[rank] + late[rank])
            # Some calls return before others have entered.
            end = start + int(rng.integers(40, 80) if seed % 3 else rng.integers(1, 60))
            spans = []
            for _ in range(int(rng.integers(0, 4))):
                low = int(rng.integers(start, end + 1))
                high = low + int(rng.integers(0, 20))  # a request in flight may end after the call
                spans.append((low, min(high, end)))
                rows.add("pwrite", rank, low, high, depth=1)
            rows.add("lseek", rank, start, end, depth=1)
            rows.add("MPI_File_write_all", rank, start, end, file=1 + number % 2)
            now[rank] = end + int(rng.integers(0, 20)) + 20
            calls.append((start, end, spans))
        instances.append(calls)
        rows.add("pwrite", 0, int(now[0]) - 15, int(now[0]) - 10)  # the program's own
        rows.add("MPI_File_write_at", 0, int(now[0]) - 9, int(now[0]) - 5)
    summary = rows.summary(parts=3, seed=seed)
    table = step_table(summary)
    expected = walked(instances)
    if not any(spans for calls in instances for *_, spans in calls):
        assert table.refused == NO_STORAGE
        return
    (row,) = table.rows
    found = [row.communication_s, row.storage_s, row.entry_s, row.others_storage_s]
    assert found == pytest.approx([ns * 1e-9 for ns in expected], abs=1e-15)
    assert row.time_s == pytest.approx(sum(expected) * 1e-9)
    assert (row.collective_calls, row.calls, row.tasks) == (len(instances), ranks * len(instances), ranks)
    assert table.unmatched_calls == 0
    independent = sum(
        len(calls)
        for calls in instances
        if min(end for _, end, _ in calls) < max(start for start, *_ in calls)
    )
    assert row.independent_calls == independent


def test_functions_and_files_are_matched_apart_and_unequal_counts_are_not_matched():
    rows = Rows()
    for rank in (0, 1):
        rows.add("MPI_File_write_all", rank, 10 * rank, 40, file=1)
        rows.add("MPI_File_read_all", rank, 50 + rank, 60, file=1)
        rows.add("MPI_File_write_all", rank, 100, 110, file=2)
        rows.add("ncmpi_put_vara_all", rank, 100, 111, file=2)
    rows.add("pwrite", 0, 20, 30, depth=1)
    rows.add("MPI_File_write_all", 1, 120, 130, file=2)
    table = step_table(rows.summary())
    assert table.unmatched_calls == 3
    write, read = table.rows
    assert (write.call, write.collective_calls, write.calls) == ("MPI_File_write_all", 1, 2)
    nanoseconds = [1e9 * part for part in (write.communication_s, write.storage_s, write.entry_s)]
    assert nanoseconds == pytest.approx([40, 10, 10])
    assert write.others_storage_s == pytest.approx(10e-9)
    assert (read.storage_s, read.entry_s) == (0, pytest.approx(1e-9))


def test_threads_of_a_rank_have_their_own_storage():
    rows = Rows()
    rows.add("MPI_File_write_all", 0, 0, 100, thread=0)
    rows.add("pwrite", 0, 10, 30, depth=1, thread=1)
    rows.add("pwrite", 0, 40, 45, depth=1, thread=0)
    (row,) = step_table(rows.summary()).rows
    assert row.storage_s == pytest.approx(5e-9)


def test_what_is_not_known_is_refused():
    assert step_table(CollectiveSteps()) is None
    rows = Rows()
    rows.add("MPI_File_write_all", 0, 0, 100)
    assert step_table(rows.summary()).refused == NO_STORAGE
    assert step_table(rows.summary()).rows == ()


def test_clock_errors_do_not_make_calls_independent():
    rows = Rows()
    rows.add("MPI_File_write_all", 0, 0, 100)
    rows.add("MPI_File_write_all", 1, 104, 200)
    rows.add("pwrite", 1, 110, 120, depth=1)
    (apart,) = step_table(rows.summary()).rows
    (joined,) = step_table(rows.summary(), clock_error_ns=2).rows
    assert (apart.independent_calls, joined.independent_calls) == (2, 0)


def test_too_many_calls_are_refused(monkeypatch):
    monkeypatch.setattr("ensembles.summaries.held_calls.MOST_EXACT", 3)
    rows = Rows()
    for number in range(4):
        rows.add("MPI_File_write_all", 0, 10 * number, 10 * number + 5)
    table = step_table(rows.summary(parts=2))
    assert table.rows == ()
    assert table.refused.startswith("4 collective calls and 0 storage calls inside calls are too many")
