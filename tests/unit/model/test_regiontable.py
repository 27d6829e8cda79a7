"""Regions among the events of spools, and spans of time."""

import numpy as np
import pytest
from spool_writer import POSIX_CALLS, SpoolContent, write_spool

import ensembles as en
from ensembles.model.c_layout import CONSTANTS, EVENT
from ensembles.model.events import Call
from ensembles.model.regions import RegionTable, Spans

CALLS = POSIX_CALLS | {
    240: Call("phase", "program", "meta"),
    241: Call("region", "program", "meta"),
    242: Call("region_begin", "program", "meta"),
}


def test_spans_hold_what_a_plain_search_finds():
    random = np.random.default_rng(5)
    rank, start = random.integers(0, 7, 300), random.integers(0, 10_000, 300)
    end = start + random.integers(0, 260, 300)
    asked_rank, asked = random.integers(0, 9, 5000), random.integers(-10, 10_100, 5000)
    expected = [
        bool(((rank == of) & (start <= moment) & (moment < end)).any())
        for of, moment in zip(asked_rank, asked, strict=True)
    ]
    spans = Spans(rank, start, end)
    assert 0.1 < np.mean(expected) < 0.9
    assert spans.hold(asked_rank, asked).tolist() == expected
    order = np.argsort(asked_rank, kind="stable")
    assert spans.hold(asked_rank[order], asked[order]).tolist() == np.array(expected)[order].tolist()
    assert not Spans(rank[:0], start[:0], end[:0]).hold(asked_rank, asked).any()


def test_spans_of_a_chunk_in_no_order_of_ranks():
    random = np.random.default_rng(6)
    rank = random.integers(0, 3, 20_000)
    spans = Spans(np.array([1]), np.array([100]), np.array([200]))
    time = random.integers(0, 300, 20_000)
    assert (spans.hold(rank, time) == ((rank == 1) & (time >= 100) & (time < 200))).all()


def rows(*events, thread=0):
    array = np.zeros(len(events), EVENT.dtype)
    for row, (call, name, start, duration) in zip(array, events, strict=True):
        row["call"], row["offset"], row["start"], row["duration"] = call, name, 1000 + start, duration
        row["requested"] = thread
    return array


@pytest.fixture
def marked(tmp_path):
    """Writes a spool of some threads with the names a (1) and b (2); gives it as a run."""

    def write(marks, *calls, **more):
        clock = {"first_ticks": 1000, "last_ticks": 2000, "first_monotonic_ns": 1000}
        head = clock | {"last_monotonic_ns": 2000, "rank": 0, "tasks": 1} | more
        content = SpoolContent(
            calls, {1: "/data"}, CALLS, {"host": "h"}, head, region_names={1: "a", 2: "b"}, marks=marks
        )
        write_spool(tmp_path / "0.spool", content)
        return en.open(tmp_path / "0.spool")

    return write


def listed(table):
    columns = (table.kind, table.name, table.thread, table.start, table.duration, table.ended)
    return [tuple(int(value) for value in row) for row in zip(*columns, strict=True)]


def test_occurrences_come_from_their_marks(marked):
    first = rows((240, 1, 10, 0), (242, 1, 20, 0), (242, 2, 30, 0), (241, 2, 30, 10), (241, 1, 20, 30))
    other = rows((242, 2, 40, 0), (240, 2, 500, 0), thread=1)
    run = marked(np.concatenate([first, other]), rows((4, -1, 25, 5)))
    assert listed(run.regions) == [
        (0, 0, 0, 10, 490, 1),
        (1, 0, 0, 20, 30, 1),
        (1, 1, 0, 30, 10, 1),
        (1, 1, 1, 40, 960, 0),
        (0, 1, 1, 500, 500, 1),
    ]
    assert run.regions.names == ("a", "b")
    assert len(run.events) == 1
    assert run.notes == []
    assert [call.name for call in run.calls if call.layer == "program"] == []


def test_an_event_after_the_last_reading_of_the_clock_is_known_of_a_killed_process(marked):
    running = CONSTANTS["ENSIO_STATE_RUNNING"]
    run = marked(rows((240, 1, 10, 0), (242, 2, 20, 0)), rows((4, -1, 3000, 500)), state=running)
    assert listed(run.regions) == [(0, 0, 0, 10, 3490, 0), (1, 1, 0, 20, 3480, 0)]


def test_marks_with_impossible_times_and_unknown_names_do_no_harm(marked):
    run = marked(rows((241, 1, 1 << 60, 5), (241, 77, 5, 5), (241, 2, 5, 1 << 61)))
    assert listed(run.regions) == [(1, 0, 0, 5, 5, 1)]
    assert run.regions.names == ("",)


def test_marks_in_a_block_of_zeros_are_counted(marked):
    made = rows((240, 1, 10, 0), (241, 1, 20, 5), (241, 1, 30, 5), (241, 2, 40, 5))
    made[1:3] = np.zeros(2, EVENT.dtype)
    run = marked(made)
    assert listed(run.regions) == [(0, 0, 0, 10, 990, 1), (1, 1, 0, 40, 5, 1)]
    assert run.notes == ["0.spool: 2 phase or region marks left out as damaged or incomplete"]


def test_runs_without_regions_have_an_empty_table(tmp_path):
    write_spool(tmp_path / "0.spool", SpoolContent([rows((4, -1, 25, 5))], {}, CALLS, {}, {"rank": 0}))
    run = en.open(tmp_path / "0.spool")
    assert len(run.regions) == 0
    assert run.regions.columns.keys() == RegionTable.empty().columns.keys()
    with pytest.raises(en.EnsioError, match="named none"):
        run.select(region="a")


def test_table_as_a_data_frame(marked):
    frame = marked(rows((240, 1, 10, 0), (241, 2, 30, 10))).regions.to_pandas()
    assert frame["kind"].tolist() == ["phase", "region"]
    assert frame["name"].tolist() == ["a", "b"]
    assert frame["ended"].tolist() == [True, True]
