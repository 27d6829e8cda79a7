"""Flights of requests: sums from spools and job files, and the events that the rows belong to."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from ensembles.model.c_layout import FLIGHT
from ensembles.model.flights import Flights, flights_by_operation, sum_of_flights
from ensembles.readers.native.flights import (
    POSITION,
    PROPERTY,
    FlightReader,
    FlightRows,
    flights_of_sums,
    sums_in_job_file,
    sums_of_spool,
)
from ensembles.readers.native.spool_bytes import Contents

NUMBERS = (2, 100, 60, 10, 3, 1000, 1000, 0, 0, 0, 0, 0, 7)
CALL_NUMBERS = np.array([0, 11, 22, 33, 0])


def test_sums_of_spools_and_job_files_are_the_same() -> None:
    beginning = bytes(POSITION) + struct.pack("13Q", *NUMBERS)
    assert sums_of_spool(beginning) == NUMBERS
    assert sums_in_job_file({PROPERTY: " ".join(map(str, NUMBERS)).encode()}) == NUMBERS
    sums = flights_of_sums(NUMBERS, 0.5)
    assert sums["read"] == Flights(2, 50, 30, 5)
    assert sums["write"] == Flights(3, 500, 500, 0)
    assert flights_by_operation([sums, sums]) == {
        "read": Flights(4, 100, 60, 10),
        "write": Flights(6, 1000, 1000),
    }
    assert sum_of_flights(sums.values()).hidden_share == pytest.approx(530 / 550)


@pytest.mark.parametrize(
    "text", [b"", b"1 2 3", b"a b", b"1 -2 3", b"2 100 101 0 0 0 0 0 0 0 0 0 0", b"9" * 30, b"1 " * 14]
)
def test_damaged_sums_are_no_sums(text: bytes) -> None:
    assert sums_in_job_file({PROPERTY: text}) == ()
    assert flights_of_sums((), 1.0) == {}


def test_a_spool_that_is_cut_short_has_no_sums() -> None:
    assert sums_of_spool(bytes(POSITION + 8)) == ()


def reader(tmp_path: Path, rows: list[dict[str, int]]) -> tuple[FlightReader, int]:
    raw = np.zeros(len(rows) + 1, FLIGHT.dtype)  # the last one is incomplete
    for place, row in enumerate(rows):
        for name, value in row.items():
            raw[name][place] = value
    path = tmp_path / "a.spool"
    path.write_bytes(bytes(64) + raw.tobytes())
    flights = FlightRows(Contents(str(path)), [(64, len(raw))])
    return flights.reader(CALL_NUMBERS, 1000, 2.0, 50)


def test_rows_find_their_events_and_waits(tmp_path: Path) -> None:
    request = {"thread": 1, "call": 2, "start": 1010, "flight": 40}
    wait = {"wait_thread": 1, "wait_call": 3, "wait_start": 1030}
    rows = [
        request | wait | {"request": 5},
        request | wait | {"request": 4, "flight": 41},  # as it was stored later
        request | {"request": 6, "start": 1011, "flags": 1},
        request | {"request": 7, "thread": 2},
    ]
    found, lost = reader(tmp_path, rows)
    assert lost == 0
    columns = {
        "call": np.array([22, 22, 22, 33, 22, 33]),
        "start": np.array([70, 70, 72, 110, 71, 111]),
        "flight": np.full(6, -1),
        "request": np.zeros(6, int),
    }
    found.fill(1, columns, 0, 6)
    assert columns["request"].tolist() == [5, 4, 6, 4, 0, 0]
    assert columns["flight"].tolist() == [80, 82, -1, -1, -1, -1]


def test_rows_in_a_block_of_zeros_are_counted(tmp_path: Path) -> None:
    """Of the last one only the end is left."""
    whole = {"thread": 1, "call": 2, "start": 1010, "flight": 40, "request": 1}
    found, lost = reader(tmp_path, [whole, {}, {}, {"thread": 1, "call": 2}, whole | {"start": 1020}])
    assert lost == 3
    columns = {"call": np.full(2, 22), "start": np.array([70, 90])}
    columns |= {"flight": np.full(2, -1), "request": np.zeros(2, int)}
    found.fill(1, columns, 0, 2)
    assert columns["flight"].tolist() == [80, 80]
