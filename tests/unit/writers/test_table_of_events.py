"""The table of `ensio events`: at most 80 columns, all names of files, errors by name."""

from __future__ import annotations

import io

import numpy as np

from ensembles.model.events import COLUMNS, Call, Events
from ensembles.model.wrapped import WIDTH
from ensembles.writers.exchange.text import TableWriter

CALLS = (Call("write", "posix", "write"), Call("MPI_File_write_at_all", "mpiio", "write"))


def events(n: int, **columns: object) -> Events:
    """Events with the given columns, and zeros in the others."""
    made = {name: np.zeros(n, dtype) for name, dtype in COLUMNS.items()}
    made["offset"] -= 1
    made |= {name: np.asarray(values, COLUMNS[name]) for name, values in columns.items()}
    return Events(made, CALLS, ("", "/a/path " + "x" * 90, "/b"))


def written(*blocks: Events) -> str:
    stream = io.StringIO()
    writer = TableWriter(stream)
    for block in blocks:
        writer.write(block)
    writer.close()
    return stream.getvalue()


def test_a_row_has_units_and_the_number_of_its_file() -> None:
    text = written(
        events(
            2,
            rank=[0, 7],
            start=[1_500_000, 2_000_000_000],
            duration=[1500, 48_000_000],
            file=[2, 1],
            offset=[-1, 1 << 20],
            requested=[0, 4096],
            moved=[0, 4096],
        )
    )
    table, files = text.split("\n\n")
    assert table.split("\n") == [
        "rank  start (s)  duration  call   offset  requested  file",
        "----  ---------  --------  -----  ------  ---------  ----",
        "   0   0.001500   1.50 µs  write                        1",
        "   7   2.000000   48.0 ms  write   1 MiB      4 KiB     2",
    ]
    assert files.split("\n")[:2] == ["1  /b", "2  /a/path " + "x" * 90]


def test_short_transfers_and_errors_are_shown() -> None:
    """The last call failed, and its library has no errno."""
    text = written(events(4, requested=[4096] * 3 + [0], moved=[4096, 100, -1, -1], error=[0, 0, 28, 0]))
    assert [line.split()[-1] for line in text.split("\n")[2:6]] == ["KiB", "B", "ENOSPC", "unknown"]
    assert "moved" in text


def test_a_wide_call_has_two_lines() -> None:
    text = written(
        events(
            2,
            rank=[123456, 0],
            thread=[0, 300],
            start=[10**15, 0],
            duration=[10**13, 1],
            call=[1, 0],
            file=[2, 1],
            offset=[2**50 + 1, 0],
            requested=[2**40 + 1, 2**40 + 1],
            moved=[7, 8],
        )
    )
    table = text.split("\n\n")[0].split("\n")
    assert max(map(len, table)) <= WIDTH
    assert len(table) == 8
    assert table[4].split()[:2] == ["123456", "0"]
    assert table[5].split() == ["1,125,899,906,842,625", "B", "1,099,511,627,777", "B", "7", "B", "1"]


def test_a_wider_block_gets_its_own_heading() -> None:
    text = written(events(1), events(1, start=[10**15]), events(1))
    assert text.count("rank  ") == 2
    assert written(events(1), events(1)).count("rank  ") == 1
    assert written() == "rank  start (s)  duration  call\n"
