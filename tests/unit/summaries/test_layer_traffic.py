"""Bytes that libraries move by the calls of the layers below them, and the time of collective calls."""

from __future__ import annotations

import numpy as np
import pytest

from ensembles.model.events import Call, Events
from ensembles.structure.libraries import collective_sentence, traffic_rows, traffic_sentences
from ensembles.summaries.collective_steps import CollectiveTime
from ensembles.summaries.layer_traffic import LayerTraffic, Traffic

KIB, MIB = 1 << 10, 1 << 20
CALLS = (
    Call("read", "posix", "read"),
    Call("write", "posix", "write"),
    Call("nc_put_vara", "netcdf", "write"),
    Call("nc_get_vara", "netcdf", "read"),
    Call("nc_close", "netcdf", "close"),
    Call("MPI_File_write_at_all", "mpiio", "write"),
)
READ, WRITE, PUT, GET, CLOSE, ALL = range(6)


def events_of(rows: list[tuple[int, int, int, int, int]], flight: int = -1) -> Events:
    """Events of (rank, call, depth, bytes, start); each lasts 10 ns."""
    rank, call, depth, moved, start = np.array(rows, np.int64).T
    columns = {"rank": rank, "thread": 0 * rank, "call": call, "depth": depth, "moved": moved, "start": start}
    columns |= {"carried": 0 * rank, "duration": 0 * rank + 10, "flight": 0 * rank + flight}
    return Events.partly(columns, CALLS, [""])


def library_calls(ranks: int = 3) -> list[tuple[int, int, int, int, int]]:
    """Each put writes twice its bytes in pieces of 8 KiB and reads as many as it has; close writes more."""
    rows = []
    for rank in range(ranks):
        start = 0
        for _ in range(4):
            inner = [(rank, WRITE, 1, 8 * KIB, start + 1)] * 256 + [(rank, READ, 1, 8 * KIB, start + 1)] * 128
            rows += [*inner, (rank, PUT, 0, MIB, start)]
            start += 10
        rows += [(rank, READ, 1, MIB, start + 1), (rank, GET, 0, MIB, start)]
        rows += [(rank, WRITE, 1, 64 * KIB, start + 21), (rank, CLOSE, 0, 0, start + 20)]
        rows += [(rank, WRITE, 0, 3 * MIB, start + 40)]
    return rows


def whole(rows: list[tuple[int, int, int, int, int]], parts: int = 1) -> LayerTraffic:
    traffic = LayerTraffic()
    for some in np.array_split(np.arange(len(rows)), parts):
        traffic.add(events_of([rows[i] for i in some.tolist()]))
    return traffic


@pytest.mark.parametrize("parts", [1, 2, 7, 400])
def test_bytes_belong_to_the_outermost_call_wherever_chunks_end(parts: int) -> None:
    traffic = whole(library_calls(), parts)
    assert traffic.outer == {
        ("netcdf", "write"): Traffic(12, 12 * MIB),
        ("netcdf", "read"): Traffic(3, 3 * MIB),
        ("posix", "write"): Traffic(3, 9 * MIB),
    }
    assert traffic.inner == {
        ("netcdf", "write", "posix", "write"): Traffic(12 * 256, 24 * MIB),
        ("netcdf", "write", "posix", "read"): Traffic(12 * 128, 12 * MIB),
        ("netcdf", "read", "posix", "read"): Traffic(3, 3 * MIB),
        ("netcdf", "other", "posix", "write"): Traffic(3, 3 * 64 * KIB),
    }


def test_parts_of_a_run_merge_to_the_whole() -> None:
    rows = library_calls()
    merged = LayerTraffic()
    for rank in range(3):
        merged.merge(whole([row for row in rows if row[0] == rank], 5))
    assert (merged.outer, merged.inner) == (whole(rows).outer, whole(rows).inner)


def test_calls_before_a_call_that_began_later_are_not_inside_it() -> None:
    for parts in (1, 2):
        traffic = whole([(0, WRITE, 1, MIB, 5), (0, PUT, 0, MIB, 7)], parts)
        assert traffic.inner == {}


def test_amplification_and_small_pieces_are_said_in_a_sentence() -> None:
    write, read = traffic_rows(whole(library_calls()))
    assert (write["op"], write["by"], write["calls"], write["inner_calls"]) == (
        "write",
        "posix",
        12,
        12 * 256 + 3,
    )
    assert write["amplification"] == pytest.approx((24 + 3 / 16) / 12)
    assert write["read_in_writes_bytes"] == 12 * MIB
    assert (read["op"], read["amplification"]) == ("read", 1.0)
    (sentence,) = traffic_sentences([write, read])
    assert sentence.startswith("netcdf writes, 1 MiB each: 2.0 bytes by posix for each byte of the program")
    assert sentence.endswith("which also read 12.0 MiB (mean sizes)")
    pieces = [(0, READ, 1, 4 * KIB, 1)] * 256 + [(0, GET, 0, MIB, 0)]
    (sentence,) = traffic_sentences(traffic_rows(whole(pieces)))
    assert sentence == "netcdf reads, 1 MiB each: made by posix in pieces of 4 KiB (mean sizes)"


def test_a_library_that_passes_requests_on_is_not_named() -> None:
    rows = [(0, WRITE, 1, MIB, 1), (0, PUT, 0, MIB, 0), (0, WRITE, 1, KIB, 21), (0, CLOSE, 0, 0, 20)]
    assert traffic_sentences(traffic_rows(whole(rows))) == []


def test_collective_time_is_split_into_storage_and_the_rest() -> None:
    """Two tasks are in a collective call from 0 to 10 and 5 to 15 ns; one stores from 8 to 18 ns."""
    rows = [(0, ALL, 0, MIB, 0), (1, WRITE, 1, MIB, 8), (1, ALL, 0, MIB, 5), (0, WRITE, 0, MIB, 0)]
    for parts in (1, 2, 4):
        time = CollectiveTime()
        for some in np.array_split(np.arange(len(rows)), parts):
            one = CollectiveTime()
            one.add(events_of([rows[i] for i in some.tolist()]))
            time.merge(one)
        assert (time.collective.count, time.storage.count) == (2, 1)
        found = time.to_json()
        assert found == pytest.approx(
            {"time_s": 15e-9, "storage_s": 7e-9, "above_storage_s": 8e-9, "above_storage_share": 8 / 15}
        )
        assert "(53 %) no task was in a storage call" in collective_sentence(found)


def test_without_storage_calls_inside_nothing_is_said_of_collective_time() -> None:
    time = CollectiveTime()
    time.add(events_of([(0, ALL, 0, MIB, 0), (0, WRITE, 0, MIB, 0)]))
    assert time.to_json() is None
    assert collective_sentence(None) == ""


def test_a_posted_write_stores_until_it_completes() -> None:
    time = CollectiveTime()
    time.add(events_of([(0, ALL, 0, MIB, 0)]))
    time.add(events_of([(0, WRITE, 1, MIB, 2)], flight=6))
    time.add(events_of([(0, WRITE, 1, MIB, 2)], flight=100))
    found = time.to_json()
    assert found is not None
    assert found["storage_s"] == pytest.approx(8e-9)
