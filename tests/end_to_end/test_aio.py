"""Asynchronous I/O: a request is one event, with the time of its submission and of its flight."""

import errno
import json
from collections import Counter

import numpy as np
import pytest

import ensembles

BUILDS = {
    "plain": (),
    "64-bit names": ("-D_FILE_OFFSET_BITS=64",),
}
CALLS = ("aio_read", "aio_write", "aio_fsync")
SLACK_NS = 1_000_000  # between the two clocks, and in reading them
PAUSE_NS = 30_000_000  # in the program, between seeing a request complete and asking for its result


def told(output: bytes) -> list[tuple]:
    """The program's lines: call, offset, requested, moved, error, and three moments, ns since 1970."""
    return [
        (name, *map(int, numbers))
        for name, *numbers in (line.split() for line in output.decode().splitlines())
    ]


def done(run, name="a.data"):
    """Events of requests, and what the program says of each."""
    events = run.select(file=f"*/{name}")
    events = events[[events.calls[call].name in CALLS for call in events.call]]
    columns = (events.offset, events.requested, events.moved, events.error)
    names = [events.calls[call].name for call in events.call]
    return events, list(zip(names, *(column.tolist() for column in columns), strict=True))


def check_requests(recorder, tmp_path, *options):
    program = recorder.build("aio_calls", *options)
    finished = recorder.execute(program, tmp_path, "ask")
    assert (finished.returncode, finished.stderr) == (4, b"")
    lines = told(finished.stdout)
    run = ensembles.open(recorder.run)
    events, rows = done(run)
    assert sorted(rows) == sorted(line[:5] for line in lines)
    assert len(lines) == 14
    assert run.notes == []
    columns = ((events.start + run.info.origin_unix_ns), events.duration, events.flight)
    times = sorted(zip(rows, *(column.tolist() for column in columns), strict=True))
    for (row, start, duration, flight), line in zip(times, sorted(lines), strict=True):
        assert row == line[:5]
        before, after, seen = line[5:]
        assert before - SLACK_NS <= start <= after + SLACK_NS
        assert start + duration <= after + SLACK_NS
        if row[3] == -1 and row[4] == errno.EINVAL:  # refused: it was never in flight
            assert flight == -1
        else:
            assert 0 <= duration <= flight
            assert 0 < flight <= seen - start + SLACK_NS
    counts = Counter(run.calls[call].name for call in run.select(file="*/a.data").call)
    waits = {"aio_suspend": 1, "lio_listio": 2}
    assert counts == waits | {"open": 2, "aio_write": 5, "aio_read": 8, "aio_fsync": 1}  # none under them
    numbers = events.request[events.flight >= 0].tolist()
    assert len(set(numbers)) == len(numbers) == np.count_nonzero(events.flight >= 0)
    for call in waits:  # the wait has the number of a request that it completed
        assert set(run.select(call=call).request.tolist()) <= {0, *numbers}


@pytest.mark.parametrize("options", BUILDS.values(), ids=BUILDS.keys())
def test_requests_are_recorded_once_from_submission_to_completion(recorder, tmp_path, options):
    check_requests(recorder, tmp_path, *options)


@pytest.mark.parametrize("options", BUILDS.values(), ids=BUILDS.keys())
def test_static_programs_record_the_same(relinked, tmp_path, options):
    check_requests(relinked, tmp_path, "-static", *options)


def test_requests_that_nobody_asks_for_are_counted_as_dropped(recorder, tmp_path):
    finished = recorder.execute(recorder.build("aio_calls"), tmp_path, "leave")
    assert finished.returncode == 4
    run = ensembles.open(recorder.run)
    _, rows = done(run)
    assert sorted(rows) == sorted(line[:5] for line in told(finished.stdout))
    assert len(rows) == 10
    assert sorted(process.dropped_events for process in run.info.processes) == [0, 100]


def test_requests_of_fio_are_those_that_it_counts(preload, tmp_path):
    job = ["--name=job", "--size=512k", "--bs=4k", "--rw=randrw", "--iodepth=8", "--fallocate=none"]
    command = ["fio", *job, "--ioengine=posixaio", f"--directory={tmp_path}", "--output-format=json"]
    told = json.loads(preload.execute(*command, check=True).stdout)["jobs"][0]
    run = ensembles.open(preload.run)
    for op in ("read", "write"):
        requests = run.select(call=f"aio_{op}", file=f"{tmp_path}/*")
        assert len(requests) == told[op]["total_ios"] > 0
        assert int(requests.moved.sum()) == told[op]["io_bytes"]
        assert sorted(set(requests.requested.tolist())) == [4096]
    offsets = run.select(call="aio_read").offset.tolist() + run.select(call="aio_write").offset.tolist()
    assert sorted(offsets) == list(range(0, 512 << 10, 4096))  # each block once
    assert run.info.dropped_events == 0
