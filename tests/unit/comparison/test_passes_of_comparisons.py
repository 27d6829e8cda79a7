"""How often a comparison reads the events of a run for the sums over it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import ensembles as en
from ensembles.comparison.times import sums_of_run
from ensembles.run.headline import find_time_in_io
from ensembles.run.reading import RunReading

CORPUS = Path(__file__).resolve().parents[2] / "corpus" / "runs"


@pytest.mark.parametrize("name", ["replay-madbench", "shell"])
def test_sums_and_critical_path_are_of_one_pass(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENSIO_CACHE", "0")
    subprocess.run(["tar", "-xJf", CORPUS / f"{name}.tar.xz", "-C", tmp_path], check=True)
    run = en.open(tmp_path / name)
    assert run.phases is not None  # these and the meetings inside come first: the path goes through them
    passes = []
    whole = RunReading._pass
    monkeypatch.setattr(RunReading, "_pass", lambda *given: passes.append(sorted(given[1])) or whole(*given))
    found = sums_of_run(run).totals
    names = {"critical", "table", "totals"}
    assert [set(each) - {"ranks"} for each in passes if names & set(each)] == [names]
    alone = find_time_in_io(en.open(tmp_path / name))
    assert found.get("critical_path_s") == alone.critical_path_s
