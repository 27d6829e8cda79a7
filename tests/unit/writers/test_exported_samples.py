"""The samples of the kernel's counters are in a second file of CSV and Parquet exports."""

from __future__ import annotations

import csv
import stat
from pathlib import Path

import numpy as np
import pytest
from made_spools import made_events, spool

import ensembles as en
from ensembles.cli.main import main
from ensembles.model.c_layout import CONSTANTS, SURROUNDINGS
from ensembles.model.surroundings import COLUMNS, UNKNOWN, SurroundingsTable

pytest.importorskip("pyarrow")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two tasks; the first also samples the memory of the node, in its last sample."""
    kinds = [
        CONSTANTS["ENSIO_READ_PROCESS"],
        CONSTANTS["ENSIO_READ_PROCESS"] | CONSTANTS["ENSIO_READ_MEMORY"],
    ]
    for rank in range(2):
        rows = np.zeros(2, SURROUNDINGS.dtype)
        rows["ticks"], rows["cost_ns"] = [1000, 500_000_000], [7000, 8000]
        rows["read"] = kinds if rank == 0 else kinds[:1] * 2
        rows["written_by_calls"], rows["dirty_bytes"] = [5, 1 << 40], 4096
        spool(
            tmp_path / "run" / f"{rank}.spool",
            [made_events(5)],
            rank=rank,
            tasks=2,
            pid=100 + rank,
            surroundings=rows,
        )
    return tmp_path / "run"


def read_csv(path: Path) -> SurroundingsTable:
    """The table that a CSV file holds."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    known = {name: [int(row[name] or UNKNOWN) for row in rows] for name in rows[0]}
    return SurroundingsTable({name: [UNKNOWN] * len(rows) for name in COLUMNS} | known)


def read_parquet(path: Path) -> SurroundingsTable:
    """The table that a Parquet file holds."""
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(path)
    known = {
        name: [UNKNOWN if number is None else number for number in table[name].to_pylist()]
        for name in table.column_names
    }
    assert table.schema.field("dirty_bytes").metadata[b"unit"] == b"bytes"
    assert table["dirty_bytes"].null_count == 3
    return SurroundingsTable({name: [UNKNOWN] * len(table) for name in COLUMNS} | known)


@pytest.mark.parametrize(("kind", "read"), [("csv", read_csv), ("parquet", read_parquet)])
def test_second_file_holds_the_samples(run, tmp_path, capsys, kind, read) -> None:
    path = tmp_path / f"out.{kind}"
    assert main(["export", str(run), "--to", kind, str(path)]) == 0
    second = tmp_path / f"out.surroundings.{kind}"
    assert f"4 samples of the kernel's counters in {second}" in capsys.readouterr().err
    expected = en.open(run).surroundings()
    assert len(expected) == 4
    found = read(second)
    for name in COLUMNS:
        assert found.columns[name].tolist() == expected.columns[name].tolist(), name
    assert stat.S_IMODE(second.stat().st_mode) == stat.S_IMODE(path.stat().st_mode)


def test_without_samples_there_is_one_file(tmp_path) -> None:
    spool(tmp_path / "run" / "0.spool", [made_events(5)], rank=0)
    assert main(["export", str(tmp_path / "run"), "--to", "csv", str(tmp_path / "out.csv")]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "run"]


def test_the_second_file_does_not_replace_a_directory(run, tmp_path, capsys) -> None:
    (tmp_path / "out.surroundings.csv").mkdir()
    assert main(["export", str(run), "--to", "csv", str(tmp_path / "out.csv")]) == 2
    assert "is a directory" in capsys.readouterr().err
