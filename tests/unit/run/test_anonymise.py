"""A run without names has no name of a user's in it, and the same answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ensembles.cli.main import main
from ensembles.history.store import History

KEY = b"the secret of a site"


def answer(words: list[str], capsys: pytest.CaptureFixture[str]) -> dict:
    capsys.readouterr()
    assert main([*words, "--json"]) == 0
    found: dict = json.loads(capsys.readouterr().out)
    return found


def simulated(pattern: str, path: Path) -> None:
    assert (
        main(["simulate", pattern, "--tasks", "16", "--fs", "franklin", "--seed", "4", "-o", str(path)]) == 0
    )


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "key").write_bytes(KEY)
    return tmp_path


@pytest.mark.parametrize("pattern", ["ior", "madbench"])
def test_answers_stay(place: Path, pattern: str, capsys: pytest.CaptureFixture[str]) -> None:
    simulated(pattern, place / "run")
    out = str(place / "out.h5")
    assert main(["anonymise", str(place / "run"), "-o", out, "--key", str(place / "key")]) == 0
    before, after = (answer(["diagnose", run], capsys) for run in (str(place / "run"), out))
    assert [(f["id"], f["gain_s"], f["share_s"]) for f in after["findings"]] == [
        (f["id"], f["gain_s"], f["share_s"]) for f in before["findings"]
    ]
    assert after["account"]["run_s"] == before["account"]["run_s"]
    counted = (answer(["info", run], capsys) for run in (str(place / "run"), out))
    first, second = ({key: info[key] for key in ("calls", "layers", "events", "files")} for info in counted)
    assert first == second
    db = str(place / "runs.db")
    assert main(["history", "add", out, "--experiment", "x", "--db", db]) == 0
    assert len(History(db).runs("x")) == 1


def test_a_short_key_is_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    simulated("ior", place / "run")
    (place / "key").write_text("short\n")
    assert main(["anonymise", str(place / "run"), "-o", "out.h5", "--key", str(place / "key")]) == 2
    assert "has 5 bytes: a key has at least 16" in capsys.readouterr().err
