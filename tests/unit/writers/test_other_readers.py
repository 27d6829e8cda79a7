"""What ensio exports, read by programs independent of ensio: every column is that of the run."""

from __future__ import annotations

import csv
import errno
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from made_spools import made_events, spool

import ensembles as en
from ensembles.cli.main import main
from ensembles.model.events import COLUMNS, OPS
from ensembles.readers.native.records import open_run_directory

NUMBERS = [name for name in COLUMNS if name not in ("call", "file", "site")]
KEYS = ("rank", "start", "thread", "depth")
"""These identify the calls of the run below."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> en.Run:
    """Failed calls, offsets that are not known, odd paths, three ranks of which one has two threads."""
    folder = tmp_path_factory.mktemp("other") / "run"
    for rank in range(3):
        events = made_events(200, rank)
        events["moved"][::7], events["file"][::3] = -28, 2
        files = {1: '/data/straße, "and"\nmore', 2: "/data/two"}
        threads = [events, made_events(20, 9)][: 2 - rank % 2]
        spool(folder / f"{rank}.spool", threads, rank=rank, tasks=3, pid=rank + 1, files=files)
    return en.Run(str(folder), open_run_directory(str(folder)))


def exported(run: en.Run, to: str, path: Path) -> Path:
    assert main(["export", run.path, "--to", to, str(path)]) == 0
    return path


def expected(run: en.Run) -> dict[str, list]:
    """The columns, with names in place of numbers, in the order of `KEYS`."""
    events = run.events
    events = events[np.lexsort([getattr(events, name) for name in reversed(KEYS)])]
    columns = {name: getattr(events, name).tolist() for name in NUMBERS}
    calls = [events.calls[number] for number in events.call]
    columns |= {"call": [call.name for call in calls], "layer": [call.layer for call in calls]}
    return columns | {
        "op": [OPS[number] for number in events.op],
        "file": [events.files[number] for number in events.file],
        "site": [events.sites[number] for number in events.site],
        "error_name": [errno.errorcode[error] if error else "" for error in columns["error"]],
    }


def in_order(columns: dict[str, list]) -> dict[str, list]:
    order = np.lexsort([columns[name] for name in reversed(KEYS)])
    return {name: [column[place] for place in order] for name, column in columns.items()}


def test_csv_by_pandas(run: en.Run, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    read = pandas.read_csv(exported(run, "csv", tmp_path / "out.csv"), keep_default_na=False)
    assert in_order({name: read[name].tolist() for name in read}) == expected(run)


def test_csv_by_pythons_own_reader(run: en.Run, tmp_path: Path) -> None:
    with exported(run, "csv", tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    columns |= {name: list(map(int, columns[name])) for name in NUMBERS}
    assert in_order(columns) == expected(run)


def test_parquet_by_arrow(run: en.Run, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    table = parquet.read_table(exported(run, "parquet", tmp_path / "out.parquet"))
    assert in_order(table.to_pydict()) == expected(run)


def test_hdf5_by_h5dump(run: en.Run, tmp_path: Path) -> None:
    if shutil.which("h5dump") is None:
        pytest.skip("h5dump (hdf5-tools) is not installed")
    path = exported(run, "hdf5", tmp_path / "out.h5")

    def dumped(name: str) -> list[str]:
        command = ["h5dump", "-y", "-w", "1", "-d", name, str(path)]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return [
            line.strip(" ,") for line in printed.split("DATA {")[1].split("}")[0].split("\n") if line.strip()
        ]

    columns = {name: list(map(int, dumped(f"/events/{name}"))) for name in COLUMNS}
    for part, name in (("name", "call"), ("layer", "layer"), ("op", "op")):
        texts = [text.strip('"') for text in dumped(f"/calls/{part}")]
        columns[f"{name} text"] = [texts[number] for number in columns["call"]]
    found, wanted = in_order(columns), expected(run)
    for name in NUMBERS:
        assert found[name] == wanted[name], name
    for name in ("call", "layer", "op"):
        assert found[f"{name} text"] == wanted[name], name
