"""Failed calls are counted by function, errno and file, and told in a few sentences."""

import errno
from collections import Counter

from generated_events import CALLS, events
from hypothesis import given

from ensembles.model.events import Call, Events
from ensembles.run.failures import failed_calls_json, failure_sentences, lost_data_sentence
from ensembles.summaries.failed_calls import FailedCalls

FUNCTIONS = (
    Call("open", "posix", "open"),
    Call("write", "posix", "write"),
    Call("stat", "posix", "meta"),
    Call("MPI_File_open", "mpiio", "open"),
    Call("readlink", "posix", "meta"),
    Call("H5Dclose", "hdf5", "close"),
    Call("close", "posix", "close"),
)
FILES = ["", "/a/lib.so", "/b/lib.so", "/dev/full", "/scratch/in"]


def failed_of(rows: list[tuple[int, int, int, int, int]]) -> FailedCalls:
    """The summary of calls: rank, call, file, errno, start in ms; a call after each succeeds."""
    names = ("rank", "call", "file", "error", "start")
    columns = {name: [row[at] for row in rows for _ in (0, 1)] for at, name in enumerate(names)}
    columns["error"][1::2] = [0] * len(rows)
    columns["moved"] = [-1, 0] * len(rows)
    columns["start"] = [value * 10**6 for value in columns["start"]]
    others = {"thread": 0, "depth": 0, "carried": 0, "offset": -1, "requested": 0, "duration": 5}
    columns |= {name: [value] * (2 * len(rows)) for name, value in others.items()}
    summary = FailedCalls()
    summary.add(Events(columns, FUNCTIONS, FILES))
    return summary


@given(whole=events(least=1))
def test_kinds_are_what_plain_loops_count(whole: Events) -> None:
    summary = FailedCalls()
    summary.add(whole)
    rows = [
        (CALLS[call], error, file, rank, start)
        for call, error, file, rank, start, moved in zip(
            *(getattr(whole, name).tolist() for name in ("call", "error", "file", "rank", "start", "moved")),
            strict=True,
        )
        if moved < 0
    ]
    assert summary.count == len(rows)
    kinds = summary.kinds()
    assert {(kind.call, kind.error): kind.calls for kind in kinds} == Counter(row[:2] for row in rows)
    assert [kind.calls for kind in kinds] == sorted((kind.calls for kind in kinds), reverse=True)
    for kind in kinds:
        mine = [row for row in rows if row[:2] == (kind.call, kind.error)]
        of_file = Counter(row[2] for row in mine)
        assert kind.files == len(set(of_file) - {0})
        assert of_file[kind.file] == kind.file_count == max(of_file.values())
        assert kind.last_file in {row[2] for row in mine if row[4] == kind.last_ns}
        assert (kind.low_rank, kind.high_rank) == (min(row[3] for row in mine), max(row[3] for row in mine))
        assert (kind.first_ns, kind.last_ns) == (min(row[4] for row in mine), max(row[4] for row in mine))


def test_searches_do_not_hide_what_matters() -> None:
    searches = [(0, 0, 1 + number % 2, errno.ENOENT, number) for number in range(500)]
    others = [
        (0, 2, 2, errno.ENOENT, 500),
        (1, 4, 4, errno.EINVAL, 3),
        (2, 3, 4, errno.ENOENT, 7),
        *((3, 1, 3, errno.ENOSPC, 600 + number) for number in range(80)),
        (1, 0, 4, errno.EACCES, 9),
    ]
    rows = failed_calls_json(failed_of(searches + others), FILES)
    assert failure_sentences(rows, tasks=4) == [
        "write: 80 × ENOSPC on /dev/full, rank 3, from 600 ms to 679 ms",
        "MPI_File_open: 1 × ENOENT on /scratch/in, rank 2, at 7.00 ms",
        "open: 1 × EACCES on /scratch/in, rank 1, at 9.00 ms",
        "no such file or link: 500 × open, last on /b/lib.so; 1 × readlink, last on /scratch/in; "
        "1 × stat, last on /b/lib.so",
    ]
    assert [row["is_search"] for row in rows] == [False] * 3 + [True] * 3
    assert rows[3]["files"] == 2
    assert rows[3]["file_count"] == 250


def test_an_unknown_errno_is_not_named() -> None:
    rows = failed_calls_json(failed_of([(0, 1, 0, 0, 1), (0, 1, 0, 0, 2)]), FILES)
    assert (rows[0]["error"], rows[0]["file"], rows[0]["files"]) == (None, None, 0)
    assert failure_sentences(rows, tasks=1) == [
        "write: 2 × an error that the trace does not name, from 1.00 ms to 2.00 ms"
    ]
    assert failure_sentences([], tasks=1) == []


def test_a_close_of_what_was_not_open_loses_nothing() -> None:
    """A clean-up closes ids without a look: HDF5 gives no errno, and no object has a file."""
    rows = failed_calls_json(failed_of([(0, 5, 0, 0, 1), (0, 6, 0, errno.EBADF, 2)]), FILES)
    assert lost_data_sentence(rows, tasks=1) == ""
    assert failure_sentences(rows, tasks=1) == ["closed what was not open: 1 × H5Dclose; 1 × close"]
    for lost in ((0, 5, 4, 0, 1), (0, 6, 4, errno.EBADF, 1), (0, 6, 0, errno.EIO, 1), (0, 6, 0, 0, 1)):
        rows = failed_calls_json(failed_of([lost, (0, 5, 0, 0, 1)]), FILES)
        assert "files may lack data" in lost_data_sentence(rows, tasks=1)


def test_a_file_that_is_no_directory_exists() -> None:
    rows = failed_calls_json(failed_of([(0, 0, 4, errno.ENOTDIR, 1), (0, 0, 1, errno.ENOENT, 2)]), FILES)
    assert sorted(failure_sentences(rows, tasks=1)) == [
        "no such file or link: 1 × open, last on /a/lib.so",
        "not a directory: 1 × open, last on /scratch/in",
    ]
