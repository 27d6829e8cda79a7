"""ensio history: what it prints, and its exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "history"))

from night import night


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nights")
    for number in range(6):
        night(folder / f"n{number}", number)
    night(folder / "slow", 20, slower=2.0)
    return folder


def history(folder: Path, *words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "ensembles.cli.main", "history", *words],
        cwd=folder,
        env=os.environ | {"ENSIO_HISTORY": "runs.db"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    return done


def test_from_the_first_night_to_a_regression(nights: Path) -> None:
    said = history(
        nights, "add", *(f"n{k}" for k in range(6)), "--experiment", "io test", "--label", "fs=a\x1b[2J"
    )
    assert said.stdout.count("added to io test") == 6
    assert "is already in io test" in history(nights, "add", "n0", "--experiment", "io test").stdout
    assert "io test" in history(nights, "list").stdout
    runs = history(nights, "list", "--experiment", "io test").stdout
    assert r"fs=a\x1b[2J" in runs
    assert "\x1b" not in runs
    assert ": ok: run 6" in history(nights, "check").stdout
    history(nights, "add", "slow", "--experiment", "io test")
    found = history(nights, "check", "--json", status=1)
    answer = json.loads(found.stdout)
    assert answer["verdict"] == "regression"
    assert [(change["op"], change["direction"]) for change in answer["changes"]] == [("write", "slower")]
    assert "posix write: slower" in history(nights, "check", "--against", "last:5", status=1).stdout
    shown = json.loads(history(nights, "show", "7", "--json").stdout)
    assert {kind["op"]: kind["calls"] for kind in shown["kinds"]} == {"write": 800, "sync": 16}
    assert "800" in history(nights, "show", "7").stdout
    lines = history(nights, "export", "--last", "2").stdout.splitlines()
    assert [json.loads(line)["id"] for line in lines] == [6, 7]
    assert history(nights, "merge", "runs.db").stdout == "0 runs added, 7 were there already\n"
    assert history(nights, "remove", "7").stdout == "1 runs removed\n"
    assert ": ok: run 6" in history(nights, "check").stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["list", "--db", "none.db"], "there is no history none.db"),
        (["add", "n0", "--experiment", "e", "--label", "novalue"], '"novalue" is not a label'),
        (["check", "--db", "other.db", "--against", "week"], '"week" is not a baseline'),
        (["add", "nothing", "--experiment", "e", "--db", "other.db"], "nothing"),
        (["remove", "--db", "x.db"], "there is no history x.db"),
    ],
)
def test_bad_input_is_one_sentence(nights: Path, words: list[str], says: str) -> None:
    said = history(nights, *words, status=2).stderr
    assert says in said
    assert said.count("\n") == 1
    assert not (nights / "other.db").exists()
