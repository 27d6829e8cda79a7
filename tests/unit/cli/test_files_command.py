"""The text of ``ensio files``."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_runs import run_of
from made_spools import made_events, spool

from ensembles.cli.main import main


def test_calls_without_a_file_are_a_row_and_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = made_events(6)
    events["file"] = [1, 1, 2, 2, 0, 0]
    spool(tmp_path / "run" / "0.spool", [events], files={1: "/data/a", 2: "/data/b"}, rank=0)
    assert main(["files", str(tmp_path / "run")]) == 0
    text = capsys.readouterr().out
    assert text.startswith("2 files · 6 calls")
    assert "(no file)" in text


def test_tables_of_long_paths_and_many_calls_fit_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Numbers of usual length, and a path that is longer than what is left for it."""
    tasks = [[("pwrite", 0.001 * n, 0.0007, 1_050_000) for n in range(300)] for _ in range(4)]
    tasks[0] += [("pread", 0.9, 0.05, 1_050_000)] * 4
    run_of(tmp_path / "run", tasks, path="/scratch/a/long/way/to/the/file/that/is/written/checkpoint.0001.h5")
    assert main(["files", str(tmp_path / "run")]) == 0
    text = capsys.readouterr().out
    assert "checkpoint.0001.h5  " in text
    assert max(map(len, text.split("\n"))) <= 80


def test_requests_of_an_api_without_collective_calls_fit_a_terminal() -> None:
    from ensembles.answers.requests import request_parts
    from ensembles.faces.text import answer_text
    from ensembles.run.requests import RequestTotals

    row = RequestTotals("posix", "write", 4746, 0, 12_478_054, 0.0189, None, 4746, 2412, 1803, (), 0, {})
    table = answer_text(request_parts([row], 5)).split("\n\n")[0]
    assert max(map(len, table.split("\n"))) <= 80
    assert "2,412 (50.8 %)  1,803 (38 %)" in table
