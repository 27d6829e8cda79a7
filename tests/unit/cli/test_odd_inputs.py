"""Odd names, odd numbers, odd streams: one sentence or the right output, and never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from commands_here import executed
from project import BUILD
from synthetic_runs import synthetic_run

from ensembles.model.sanitize_text import sanitize_text

pytestmark = pytest.mark.slow

ENSIO = Path(sys.executable).with_name("ensio")
MANY_DIGITS = "9" * 5000
ODD = "tab\there\x1b[31mred\nline\udcffend é 漢 \u202e"
PLAIN = r"tab\there\x1b[31mred\nline\xffend é 漢 \u202e"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    synthetic_run(folder, 2, 12)
    return folder


@pytest.fixture(scope="module")
def odd_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose file, program and arguments have odd names: recorded from a real program."""
    folder = tmp_path_factory.mktemp("odd")
    library = BUILD / "lib" / "libensio-preload.so"
    if not library.exists():
        pytest.fail(f"{library} is not built; run ./dev setup")
    program = folder / f"program {ODD}"
    program.symlink_to("/bin/cat")
    (folder / ODD).write_text("some")
    subprocess.run(
        [ENSIO, "run", "-o", folder / "run", "--", program, folder / ODD],
        env={**os.environ, "ENSIO_PRELOAD": str(library), "SLURM_JOB_ID": "7\x1b[31m"},
        check=True,
        capture_output=True,
        timeout=600,
    )
    return folder / "run"


def ensio(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run(
        [ENSIO, *arguments], capture_output=True, timeout=600, env={**os.environ, **environment}
    )
    assert b"Traceback" not in done.stderr
    return done


def refused(*arguments: str | Path) -> str:
    """The sentence with which a command refuses its arguments."""
    done = executed(*arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
    assert done.stderr.startswith("ensio: ")
    assert len(done.stderr) < 507
    return done.stderr[7:-1]


def test_printable_keeps_letters_and_escapes_the_rest() -> None:
    assert sanitize_text(ODD) == PLAIN
    assert sanitize_text("Größe 漢字 🙂 e\u0301") == "Größe 漢字 🙂 e\u0301"
    assert sanitize_text(sanitize_text(ODD)) == sanitize_text(ODD)


@pytest.mark.parametrize("option", ["--rank", "--size", "--limit"])
def test_number_of_thousands_of_digits(run: Path, option: str) -> None:
    assert "5000 digits" in refused("events", run, option, MANY_DIGITS)


@pytest.mark.parametrize("times", [f"{MANY_DIGITS}..", f"..{MANY_DIGITS}", f"0..0.{MANY_DIGITS}"])
def test_time_of_thousands_of_digits(run: Path, times: str) -> None:
    assert "at most 40 make sense" in refused("events", run, "--time", times)


@pytest.mark.parametrize("limit", ["²", "٣", "-1", "1.5", "many", ""])
def test_limit_that_is_no_number(run: Path, limit: str) -> None:
    assert "is not a number of events" in refused("events", run, f"--limit={limit}")


@pytest.mark.parametrize(
    ("option", "text", "problem"),
    [
        ("--tasks", "x", '"x" is not a number of tasks'),
        ("--tasks", "0", "0 is below 1"),
        ("--set", "calls=²", '"²": is not an expression'),
        ("--tasks", MANY_DIGITS, "a number with 5000 digits is too large"),
    ],
)
def test_count_of_a_replay_that_is_none(option: str, text: str, problem: str) -> None:
    told = refused("replay", "ior", option, text)
    assert problem in told
    assert "_" not in told


@pytest.mark.parametrize(
    ("toml", "problem"),
    [
        ("x = " + "[" * 20_000, "brackets are nested more than 32 times"),
        ("x = " + "[" * 20_000 + "]" * 20_000, "brackets are nested more than 32 times"),
        (f"x = {MANY_DIGITS}", "holds a number with too many digits"),
    ],
    ids=["open brackets", "brackets", "digits"],
)
def test_pattern_that_overtaxes_the_parser(
    tmp_path: Path, toml: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{BUILD / 'bin'}:{os.environ['PATH']}")
    (tmp_path / "deep.toml").write_text(toml)
    assert problem in refused("replay", tmp_path / "deep.toml")


@pytest.mark.parametrize(
    "arguments",
    [
        ["info", ""],
        ["events", ""],
        ["report", ""],
        ["collect", ""],
        ["run", "-o", "", "--", "true"],
        ["replay", ""],
        ["replay", "ior", "--directory", ""],
    ],
    ids=" ".join,
)
def test_empty_path_is_not_the_current_folder(arguments: list[str]) -> None:
    assert "has no name" in refused(*arguments)


@pytest.mark.parametrize("command", ["info", "events", "report", "collect"])
def test_messages_stay_in_one_line_and_hold_no_control_characters(tmp_path: Path, command: str) -> None:
    assert PLAIN in refused(command, tmp_path / ODD)


def test_unknown_command_with_control_characters() -> None:
    assert "\x1b" not in refused("in\x1b[31mfo\n")


@pytest.mark.parametrize("command", ["info", "events"])
def test_text_for_people_holds_no_control_characters(odd_run: Path, command: str) -> None:
    done = ensio(command, odd_run)
    assert done.returncode == 0
    text = done.stdout.decode()
    assert all(line.isprintable() for line in text.split("\n"))
    assert r"\x1b[31mred\nline\xffend é 漢 \u202e" in text


@pytest.mark.each_once
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8", "utf-8:strict"])
@pytest.mark.parametrize(
    "arguments",
    [["info"], ["info", "--json"], *(["events", "--format", kind] for kind in ("table", "csv", "jsonl"))],
    ids=" ".join,
)
def test_every_name_can_be_written_in_every_encoding(
    odd_run: Path, arguments: list[str], encoding: str
) -> None:
    done = ensio(arguments[0], odd_run, *arguments[1:], PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, b"")
    if arguments == ["info", "--json"]:
        assert json.loads(done.stdout.decode("ascii"))["command"][1].endswith(ODD)
    if arguments[-1] == "jsonl":
        files = {json.loads(line)["file"] for line in done.stdout.decode("ascii").splitlines()}
        assert any(file.endswith(ODD) for file in files)
    if arguments[-1] == "csv" and encoding.startswith("utf-8"):
        assert os.fsencode(ODD) in done.stdout


@pytest.mark.parametrize("arguments", ["info RUN", "info RUN --json", "events RUN", "--help", "info --help"])
def test_closed_standard_output(run: Path, arguments: str) -> None:
    script = f'exec "$0" {arguments.replace("RUN", str(run))} >&-'
    done = subprocess.run(["sh", "-c", script, ENSIO], capture_output=True, text=True, timeout=600)
    assert done.returncode == 2
    assert done.stderr == (
        "ensio: standard output is closed, so the result cannot be written: redirect it to a file\n"
    )


@pytest.mark.parametrize("arguments", [["info"], ["info", "--json"], ["events"]])
def test_full_standard_output(run: Path, arguments: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [ENSIO, arguments[0], run, *arguments[1:]],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=600,
        )
    assert (done.returncode, done.stderr) == (2, "ensio: No space left on device\n")


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
def test_status_of_a_refusal_stays_when_it_cannot_be_told(redirection: str) -> None:
    for arguments in ("info not-there", "info", "no-such-command"):
        script = f'exec "$0" {arguments} {redirection}'
        done = subprocess.run(["sh", "-c", script, ENSIO], capture_output=True, timeout=600)
        assert (done.returncode, done.stdout) == (2, b"")
