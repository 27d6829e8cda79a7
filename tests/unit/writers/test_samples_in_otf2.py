"""The samples of the kernel's counters are metrics of an OTF2 archive, and are read again."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from made_spools import made_events, spool
from project import ROOT

import ensembles as en
from ensembles.model.c_layout import CONSTANTS, SURROUNDINGS
from ensembles.model.surroundings import COLUMNS, COUNTERS
from ensembles.writers.exchange.otf2 import write_otf2

BIN = ROOT / "build" / "bin"
if not (BIN / "ensio-otf2").exists():
    pytest.skip("ensio-otf2 is not built", allow_module_level=True)


@pytest.fixture(autouse=True)
def program_of_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{BIN}:{os.environ['PATH']}")


@pytest.fixture
def run(tmp_path: Path) -> en.Run:
    """Three tasks with samples of several kinds; one of them begins before the calls do."""
    kinds = [value for name, value in CONSTANTS.items() if name.startswith("ENSIO_READ_")]
    for rank in range(3):
        rows = np.zeros(4, SURROUNDINGS.dtype)
        for number, name in enumerate(COUNTERS):
            rows[name] = (rank + 1) * 1000 * number + np.arange(4)
        rows["ticks"] = [900, 2000, 500_000_000, 900_000_000 + rank]
        rows["cost_ns"] = 7000 + np.arange(4)
        rows["read"] = [sum(kinds), kinds[rank], kinds[0], sum(kinds[:3])]
        spool(
            tmp_path / "run" / f"{rank}.spool",
            [made_events(5, rank)],
            rank=rank,
            tasks=3,
            pid=100 + rank,
            surroundings=rows,
        )
    return en.open(tmp_path / "run")


@pytest.mark.parametrize("ranks_per_location", [1, 2])
def test_samples_are_read_again(run: en.Run, tmp_path: Path, ranks_per_location: int) -> None:
    expected = run.surroundings()
    assert len(expected) == 12
    write_otf2(run, str(tmp_path / "archive"), ranks_per_location)
    again = en.open(tmp_path / "archive")
    found = again.surroundings()
    for name in COLUMNS:
        assert found.columns[name].tolist() == expected.columns[name].tolist(), name
    assert (again.tasks, again.info.threads, len(again.events)) == (3, run.info.threads, len(run.events))
    assert again.notes == run.notes


@pytest.mark.skipif(shutil.which("otf2-print") is None, reason="otf2-print (Debian: otf2-tools) is missing")
def test_metrics_are_those_that_otf2_print_shows(run: en.Run, tmp_path: Path) -> None:
    written = write_otf2(run, str(tmp_path / "archive"))
    done = subprocess.run(["otf2-print", written.anchor], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    shown = re.findall(r"^METRIC +\d+ +\d+ .*Value: \(\"written_by_calls\".*?; (-?\d+)\)", done.stdout, re.M)
    table = run.surroundings().known("written_by_calls")
    by_time = table.written_by_calls[np.argsort(table.time, kind="stable")]
    assert [int(number) for number in shown] == by_time.tolist(), done.stdout[:3000]


def test_without_samples_there_is_no_location_for_them(tmp_path: Path) -> None:
    spool(tmp_path / "run" / "0.spool", [made_events(5)], rank=0)
    write_otf2(en.open(tmp_path / "run"), str(tmp_path / "archive"))
    assert len(list((tmp_path / "archive" / "traces").glob("*.evt"))) == 1
    assert len(en.open(tmp_path / "archive").surroundings()) == 0
