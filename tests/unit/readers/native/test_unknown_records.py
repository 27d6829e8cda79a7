"""Records of kinds that only a later ensio knows are passed over, and `ensio info` says how many there were:
in spools, job files and ``trace.h5``. Those of other tools' formats have tests beside their readers."""

from pathlib import Path

import h5py
import numpy as np
import pytest
from made_job_files import collect_spools
from made_spools import made_events, spool

import ensembles
from ensembles.cli.main import main
from ensembles.model.c_layout import CONSTANTS, SPOOL, TEXT, WINDOW
from ensembles.run.collect import collect

EVENTS = 100


def info(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["info", str(path)]) == 0
    return " ".join(capsys.readouterr().out.split())


def kind_of_window(data: bytearray, number: int) -> int:
    """Where the kind of the window with this number is."""
    position = -1
    magic = CONSTANTS["ENSIO_WINDOW_MAGIC"].to_bytes(WINDOW.dtype["magic"].itemsize, "little")
    for _ in range(number + 1):
        position = data.index(magic, position + 1)
    return position + WINDOW.dtype.fields["kind"][1]


def with_unknown_text(path: Path) -> None:
    """Make the entry of a file's path one of an unknown kind."""
    data = bytearray(path.read_bytes())
    entry = data.index(b"/data/two") - TEXT.size
    assert TEXT.unpack(bytes(data), entry).kind == CONSTANTS["ENSIO_TEXT_FILE"]
    at = entry + TEXT.dtype.fields["kind"][1]
    data[at : at + TEXT.dtype["kind"].itemsize] = (99).to_bytes(TEXT.dtype["kind"].itemsize, "little")
    path.write_bytes(data)


def made_spool(folder: Path) -> Path:
    threads = [made_events(EVENTS, 1), made_events(EVENTS, 2)]
    return spool(folder / "s.spool", threads, files={1: "/data/one", 2: "/data/two"}, rank=0)


def test_in_a_spool(tmp_path, capsys):
    path = made_spool(tmp_path)
    with_unknown_text(path)
    data = bytearray(path.read_bytes())
    at = kind_of_window(data, 1)
    data[at : at + 4] = (77).to_bytes(4, "little")
    path.write_bytes(data)
    run = ensembles.open(path)
    np.testing.assert_array_equal(run.events.requested, made_events(EVENTS, 1)["requested"])
    assert "skipped 2 records of kinds that this ensio does not know" in info(path, capsys)


def test_in_a_job_file(tmp_path, coder, capsys):
    path = made_spool(tmp_path / "spools")
    with_unknown_text(path)
    job = collect_spools(coder, [path], tmp_path / "job.ensio")
    assert len(ensembles.open(job).events) == 2 * EVENTS
    assert "skipped 1 record of kinds that this ensio does not know" in info(job, capsys)


def test_in_a_trace_file(tmp_path, capsys):
    made_spool(tmp_path)
    collect(str(tmp_path))
    path = tmp_path / "trace.h5"
    assert "does not know" not in info(path, capsys)
    with h5py.File(path, "r+", libver="v110") as file:
        file["weather"] = np.arange(5)
        file["events/temperature"] = np.zeros(2 * EVENTS)
    assert len(ensembles.open(path).events) == 2 * EVENTS
    assert "skipped 2 parts of" in info(path, capsys)


def test_a_spool_of_this_version_has_none(tmp_path, capsys):
    path = made_spool(tmp_path)
    assert SPOOL.unpack(path.read_bytes()).version == CONSTANTS["ENSIO_SPOOL_VERSION"]
    assert "does not know" not in info(path, capsys)
