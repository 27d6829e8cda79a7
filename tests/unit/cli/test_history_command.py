"""ensio history: what it prints, and its exit status."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from commands_here import executed

sys.path.append(str(Path(__file__).parents[1] / "history"))

from night import night


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nights")
    for number in range(6):
        night(folder / f"n{number}", number)
    night(folder / "slow", 20, slower=2.0)
    return folder


def words(text: str) -> str:
    return " ".join(text.split())


def history(folder: Path, *words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ENSIO_HISTORY", "runs.db")
        done = executed("history", *words, folder=folder)
    assert done.returncode == status, done.stderr
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
    assert "regression if the next two runs show it too" in words(history(nights, "check").stdout)
    found = history(nights, "check", "--last", "1", "--json", status=1)
    answer = json.loads(found.stdout)
    assert answer["verdict"] == "regression"
    assert [(change["part"], change["direction"], change["since_run"]) for change in answer["changes"]] == [
        ("all durations", "slower", 7)
    ]
    again = words(history(nights, "check", "--last", "1", "--against", "last:5", status=1).stdout)
    assert "against 5 runs: I/O of critical path " in again
    assert "; each task: posix write +" in again
    assert "sync" not in again  # of less time than the gate of ensio compare looks at
    assert "since run 7" in again
    shown = json.loads(history(nights, "show", "7", "--json").stdout)
    assert {kind["op"]: kind["calls"] for kind in shown["kinds"]} == {"write": 800, "sync": 16}
    assert "800" in history(nights, "show", "7").stdout
    lines = history(nights, "export", "--last", "2").stdout.splitlines()
    assert [json.loads(line)["id"] for line in lines] == [6, 7]
    assert history(nights, "merge", "runs.db").stdout == "0 runs added, 7 were there already\n"
    assert history(nights, "remove", "7").stdout == "1 runs removed\n"
    assert ": ok: run 6" in history(nights, "check").stdout


def test_results_for_other_tools_and_a_known_change(nights: Path) -> None:
    db = ("--db", "tools.db")
    history(nights, "add", *(f"n{k}" for k in range(6)), "--experiment", "a|<b>", *db)
    history(nights, "add", "slow", "--experiment", "a|<b>", *db)
    said = history(
        nights, "check", "--last", "1", "--format", "markdown", "-o", "out.xml", *db, status=1
    ).stdout
    (found,) = json.loads(history(nights, "check", "--last", "1", "--json", *db, status=1).stdout)[
        "experiments"
    ]
    assert found["reason"].startswith("I/O of critical path ")
    assert "; each task: posix write +" in found["reason"]
    text = words(history(nights, "check", "--last", "1", *db, status=1).stdout)
    assert f"against 6 runs: {found['reason']} " in text
    plain = re.sub(r"\\(.)", r"\1", said.splitlines()[2])
    assert plain.startswith(f"| a|<b> | **regression** | 7 | {found['reason']}<br>")
    suite = ElementTree.parse(nights / "out.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite[0].get("name")) == ("1", "1", "a|<b>")
    assert suite[0][0].get("message") == found["reason"]
    assert "all durations × " in (suite[0][0].text or "")
    history(nights, "acknowledge", "--experiment", "a|<b>", "--since", "7", "--reason", "new disks", *db)
    # These nights start at the same time: all of them are runs since the change.
    after = history(nights, "check", *db).stdout
    assert "baseline since" in after
    assert "new disks" in after
    assert (
        "has no run 99"
        in history(
            nights, "acknowledge", "--experiment", "a|<b>", "--since", "99", "--reason", "x", *db, status=2
        ).stderr
    )


def test_one_run_in_context(nights: Path) -> None:
    db = ("--db", "context.db")
    history(nights, "add", "n0", "--experiment", "one", "--label", "fs=scratch", *db)
    first = json.loads(history(nights, "context", "1", "--json", *db).stdout)
    assert first["others"] == 0
    history(nights, "add", "n1", "n2", "--experiment", "two", "--label", "fs=scratch", *db)
    history(nights, "add", "slow", "--experiment", "one", "--label", "fs=scratch", *db)
    placed = json.loads(history(nights, "context", "4", "--label", "fs=scratch", "--json", *db).stdout)
    assert placed["others"] == 3
    values = {one["name"]: (one["lower"], one["others"]) for one in placed["values"]}
    assert values["posix write median"] == (3, 3)
    assert values["time in I/O"] == (3, 3)
    assert "3 of 3" in history(nights, "context", "4", "--label", "fs=scratch", *db).stdout
    assert "has no run 9" in history(nights, "context", "9", *db, status=2).stderr


def test_names_of_any_bytes_are_printed_alike_and_do_not_reach_the_terminal(nights: Path) -> None:
    name = os.fsdecode(b"n\xff\x1b[2J")
    os.symlink("n0", nights / name)
    db = ("--db", "names.db")
    for words in (
        ("add", name, "--experiment", name, "--label", f"fs={name}"),
        ("list",),
        ("list", "--experiment", name),
        ("show", "1"),
        ("check",),
        ("context", "1"),
        ("context", "1", "--label", f"fs={name}"),
    ):
        said = history(nights, *words, *db).stdout
        assert r"n\xff\x1b[2J" in said, words
        assert "\x1b" not in said


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
