"""The text of ``ensio files``."""

from __future__ import annotations

from pathlib import Path

import pytest
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
