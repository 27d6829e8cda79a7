"""Which libraries' time is known to be outside of the file system, and how it is said."""

from __future__ import annotations

import numpy as np
import pytest

from ensembles.model.events import Call, Events
from ensembles.structure.libraries import (
    library_rows,
    library_sentences,
    library_share_text,
)
from ensembles.summaries.layer_traffic import LayerTraffic
from ensembles.summaries.runtotals import LayerTimes

MIB = 1 << 20
CALLS = (
    Call("write", "posix", "write"),
    Call("MPI_File_write_at", "mpiio", "write"),
    Call("H5Dwrite", "hdf5", "write"),
    Call("nc_put_vara", "netcdf", "write"),
    Call("MPI_Barrier", "mpisync", "wait"),
    Call("H5Oopen", "hdf5", "open"),
    Call("H5Fflush", "hdf5", "sync"),
    Call("H5Dclose", "hdf5", "close"),
)
WRITE, MPI, H5, NC, BARRIER, OPEN, FLUSH, CLOSE = range(8)
Row = tuple[int, int, int, int, int]


def rows_of(rows: list[Row], recorder_s: float = 0.0) -> list[dict]:
    """Rows of libraries of a task with calls (call, depth, bytes, start, duration)."""
    call, depth, moved, start, duration = np.array(rows, np.int64).T
    columns = {"rank": 0 * call, "thread": 0 * call, "call": call, "depth": depth, "moved": moved}
    columns |= {"start": start, "duration": duration, "requested": moved, "error": 0 * call}
    columns |= {"file": 0 * call, "carried": 0 * call}
    events = Events.partly(columns, CALLS, [""])
    times, traffic = LayerTimes(), LayerTraffic()
    times.add(events)
    traffic.add(events)
    return library_rows(times, traffic, recorder_s)


def test_time_of_each_library_in_a_stack_is_without_the_layers_below() -> None:
    stack = [
        (WRITE, 3, MIB, 300, 100),
        (MPI, 2, MIB, 250, 200),
        (H5, 1, MIB, 200, 400),
        (NC, 0, MIB, 0, 1000),
    ]
    found = {row["layer"]: row for row in rows_of([*stack, (BARRIER, 0, 0, 2000, 9000)])}
    assert {name: round(row["time_s"] * 1e9) for name, row in found.items()} == {
        "netcdf": 600,
        "hdf5": 200,
        "mpiio": 100,
    }
    # A wait for other tasks is not I/O.
    assert {name: row["io_share"] for name, row in found.items()} == {
        "netcdf": 0.6,
        "hdf5": 0.2,
        "mpiio": 0.1,
    }
    assert library_share_text(found.values()) == (
        "60 % of the time in I/O calls inside netCDF and 20 % inside HDF5, not in the file system"
    )
    said = library_sentences(found.values(), without=("mpiio",))
    assert [text.split(", not")[0] for text in said] == [
        "600 ns of the 1.00 µs in I/O calls (60 %) passed inside netCDF",
        "200 ns of the 1.00 µs in I/O calls (20 %) passed inside HDF5",
    ]
    # While a task waits inside MPI-IO, another one may be in the file system.
    (mpi_io,) = library_sentences([row for row in found.values() if row["layer"] == "mpiio"])
    assert "passed inside MPI-IO, not in storage calls of the same task: exchange of data" in mpi_io
    assert "Most of it: 200 ns of 400 ns in H5Dwrite" in said[1]


def test_time_of_the_recorder_between_inner_calls_is_not_of_the_library() -> None:
    (plain,), (traced,) = (
        rows_of([(WRITE, 1, MIB, 300, 100), (H5, 0, MIB, 0, 1000)], recorder_s)
        for recorder_s in (0.0, 420e-9)
    )
    assert [round(1e9 * row["time_s"]) for row in (plain, traced)] == [900, 500]
    assert [round(1e9 * row["io_time_s"]) for row in (plain, traced)] == [1000, 1000]
    assert traced["recorder_s"] == pytest.approx(400e-9)
    assert "recorder" in library_sentences([traced])[0]
    assert "recorder" not in library_sentences([plain])[0]


def test_calls_of_a_library_whose_storage_calls_are_elsewhere_say_nothing() -> None:
    assert rows_of([(H5, 0, MIB, 0, 1000), (WRITE, 0, MIB, 2000, 10)]) == []
    # A few bytes of a header are not the data: no filter makes them as few.
    assert rows_of([(WRITE, 1, 96, 10, 10), (H5, 0, MIB, 0, 1000)]) == []
    # MPI-IO in a library of which no call was recorded, inside HDF5.
    assert rows_of([(MPI, 1, MIB, 10, 500), (H5, 0, MIB, 0, 1000)]) == []


def test_a_library_that_is_outermost_elsewhere_has_to_show_its_storage_calls_there() -> None:
    inside = [(WRITE, 2, MIB, 20, 100), (MPI, 1, MIB, 10, 500), (H5, 0, MIB, 0, 1000)]
    assert {row["layer"] for row in rows_of(inside)} == {"hdf5", "mpiio"}
    assert {row["layer"] for row in rows_of([*inside, (MPI, 0, MIB, 2000, 400)])} == {"hdf5"}


def test_work_on_objects_is_not_called_a_filter() -> None:
    data = [(WRITE, 1, MIB, 10, 100), (H5, 0, MIB, 0, 1000)]
    (row,) = rows_of([*data, (OPEN, 0, 0, 2000, 2000)])
    assert row["data_share"] == 900 / 2900
    assert "not in the file system: work on its objects (groups," in library_sentences([row])[0]
    (row,) = rows_of([*data, (OPEN, 0, 0, 2000, 500)])
    assert "not in the file system: filters such as compression" in library_sentences([row])[0]


@pytest.mark.parametrize("stored", [MIB // 100, MIB // 2, MIB, 2 * MIB])
@pytest.mark.parametrize("late", [FLUSH, CLOSE])
def test_flushes_and_closes_of_compressed_chunks_are_filters(late: int, stored: int) -> None:
    (row,) = rows_of([(H5, 0, MIB, 0, 300), (WRITE, 1, stored, 1010, 10), (late, 0, 0, 1000, 2000)])
    said = "filters such as compression" if stored < MIB else "work on its objects"
    assert f"not in the file system: {said}" in library_sentences([row])[0]
    (row,) = rows_of([(H5, 0, MIB, 0, 300), (WRITE, 1, stored, 1010, 10), (OPEN, 0, 0, 1000, 2000)])
    assert "work on its objects" in library_sentences([row])[0]


def test_below_a_tenth_nothing_is_said() -> None:
    rows = rows_of([(WRITE, 1, MIB, 10, 950), (H5, 0, MIB, 0, 1000)])
    assert [round(row["io_share"], 3) for row in rows] == [0.05]
    assert library_share_text(rows) == ""
    assert library_sentences(rows) == []
    assert library_share_text(None) == ""
    assert library_sentences(None) == []
