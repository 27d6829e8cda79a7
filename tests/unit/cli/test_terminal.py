"""What a terminal gets: colours, a progress bar, whole words in messages; and completion in a real bash."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from synthetic_runs import synthetic_run

from ensembles.cli import terminal

ESCAPE = "\x1b["
PYTHON = [sys.executable, "-c"]
AT_ONCE = (
    "import sys; import ensembles.cli.terminal as terminal; terminal._QUIET_S = -1.0; "
    "from ensembles.cli.main import main; sys.exit(main(sys.argv[1:]))"
)


def on_terminal(*arguments: object, program: str = AT_ONCE, **environment: str) -> tuple[int, str]:
    """Exit status of ensio on a new terminal, and what the terminal got."""
    main, other = pty.openpty()
    settings = {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "COLUMNS": "80"} | environment
    process = subprocess.Popen(
        [*PYTHON, program, *map(str, arguments)], stdin=other, stdout=other, stderr=other, env=settings
    )
    os.close(other)
    got = b""
    while True:
        try:
            part = os.read(main, 65536)
        except OSError:  # the terminal was closed by its last user
            break
        if not part:
            break
        got += part
    os.close(main)
    return process.wait(timeout=600), got.decode()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("terminal") / "run"
    synthetic_run(path, 4, 5000)
    return path


def test_severities_have_colours_on_a_terminal_only() -> None:
    text = "critical: small-requests\nnote: not-io\nposix write: different"
    program = f"from ensembles.cli.terminal import print_coloured; print_coloured({text!r})"
    _, coloured = on_terminal(program=program)
    marked = re.findall(r"\x1b\[[0-9;]+m(\w+)\x1b\[0m", coloured)
    assert marked == ["critical", "note", "different"]
    assert re.sub(r"\x1b\[[0-9;]*m|\r", "", coloured).strip() == text
    plain = subprocess.run([*PYTHON, program], capture_output=True, text=True, check=True)
    assert plain.stdout == f"{text}\n"
    for setting in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        _, coloured = on_terminal(program=program, **setting)
        assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", coloured)


def test_a_pass_shows_how_far_it_is(run: Path) -> None:
    _, text = on_terminal("modes", run, "--op", "write")
    assert "reading run" in text
    assert re.search(r"\b[\d,]+ of 21,828 events", text)
    _, text = on_terminal("modes", run, "--op", "write", TERM="dumb")
    assert "reading run" not in text
    short = "import sys; from ensembles.cli.main import main; sys.exit(main(sys.argv[1:]))"
    _, text = on_terminal("ranks", run, program=short)
    assert "reading run" not in text


def test_a_report_shows_what_it_does_after_the_pass(run: Path, tmp_path: Path) -> None:
    _, text = on_terminal("report", run, "-o", tmp_path / "report.html")
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    for work in ("reading run", "finding modes of run", "examining run", "drawing run", "writing report"):
        assert work in shown
    assert re.search(r"\d+ of \d+ causes", shown)
    assert re.search(r"\d+ of \d+ pictures", shown)


def test_work_inside_other_work_and_after_it_has_the_bar_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now)
    shown: list[str] = []

    class Shown:
        task_ids = (0,)

        def stop(self) -> None:
            shown.append("")

        def update(self, _: int, completed: int) -> None:
            shown[-1] = f"{shown[-1].partition(':')[0]}: {completed}"

    def made(_: object, work: terminal._Work) -> Shown:
        shown.append(work.what)
        return Shown()

    monkeypatch.setattr(terminal._Bar, "_made", made)
    bar = terminal._Bar()
    bar.begin("drawing", "a/run", 3, "pictures")
    bar.advance(1)
    assert shown == []  # less than a second
    now += 1.5
    bar.begin("reading", "a/run", 10, "events")
    bar.advance(1)
    assert shown == []
    now += 1.5
    bar.advance(1)
    assert shown == ["reading run: 2"]
    bar.end()
    bar.advance(1)
    assert shown == ["reading run: 2", "", "drawing run: 2"]
    bar.clear()
    assert shown[-1] == ""
    bar.advance(0)
    assert shown[-1] == "drawing run: 2"
    bar.end()
    bar.begin("writing", "report", 2, "pictures")
    assert shown[-2:] == ["", "writing report: 0"]
    bar.end()
    now += 60
    bar.begin("reading", "b", 2, "events")
    assert shown[-1] == ""


def test_messages_keep_words_whole_on_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "bad").write_text("no trace")
    status, text = on_terminal("info", tmp_path / "bad", COLUMNS="60")
    assert status == 2
    lines = text.replace("\r", "").strip().split("\n")
    assert len(lines) > 1
    assert all(len(line) <= 60 or " " not in line.removeprefix("ensio: ") for line in lines)


COMPLETED = [
    (["ensio", "mo"], "modes"),
    (["ensio", "modes", "--ran"], "--rank"),
    (["ensio", "history", "check", "--for"], "--format"),
    (["ensio", "diagnose", "--fail-on", "cr"], "critical"),
    (["ensio", "info", "a-ru"], "a-run"),
]
"""What is typed, and what a shell makes of it."""


def completion_for(shell: str) -> tuple[str, str]:
    """The program of a shell, and the script that ensio prints for it."""
    program = shutil.which(shell)
    if program is None:
        pytest.fail(f"{shell} is missing: ./dev setup test installs it")
    made = subprocess.run(
        [sys.executable, "-m", "ensembles.cli.main", "completion", shell],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return program, made


@pytest.mark.parametrize(("words", "expected"), COMPLETED)
def test_bash_completes(words: list[str], expected: str, tmp_path: Path) -> None:
    bash, made = completion_for("bash")
    (tmp_path / "a-run").touch()
    asked = " ".join(words)
    program = (
        f"{made}\nCOMP_WORDS=({asked}); COMP_CWORD={len(words) - 1}; COMP_LINE='{asked}'; "
        'COMP_POINT=${#COMP_LINE}; _shtab_ensio; echo "${COMPREPLY[*]}"'
    )
    done = subprocess.run([bash, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert expected in done.stdout.split()


def test_fish_completes(tmp_path: Path) -> None:
    fish, made = completion_for("fish")
    (tmp_path / "a-run").touch()
    (tmp_path / "ensio.fish").write_text(made)
    asked = "; ".join(f'complete -C "{" ".join(words)}"; echo end' for words, _ in COMPLETED)
    done = subprocess.run(
        [fish, "--no-config", "-c", f"source ensio.fish; {asked}"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env=os.environ | {"HOME": str(tmp_path)},
    )
    answers = [part.split("\n") for part in done.stdout.split("end\n")]
    for (words, expected), lines in zip(COMPLETED, answers, strict=False):
        assert expected in [line.split("\t")[0] for line in lines], words


def test_zsh_completes_what_is_typed(tmp_path: Path) -> None:
    """In an interactive shell, by the tabulator key: zsh's completion works in its line editor only."""
    zsh, made = completion_for("zsh")
    (tmp_path / "a-run").touch()
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "_ensio").write_text(made)
    main, other = pty.openpty()
    settings = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TERM": "dumb", "COLUMNS": "400"}
    shell = subprocess.Popen(
        [zsh, "-f", "-i"], stdin=other, stdout=other, stderr=other, cwd=tmp_path, env=settings
    )
    os.close(other)
    got = b""

    def wait_for(text: str) -> None:
        nonlocal got
        while text.encode() not in got:
            assert select.select([main], [], [], 120)[0], f"zsh does not answer with {text!r}: {got!r}"
            part = os.read(main, 65536)
            assert part, got
            got += part

    try:
        # The words are joined by zsh, so that its echo of the line is not taken for the answer.
        os.write(
            main, b'fpath=($PWD/functions $fpath); autoload -Uz compinit; compinit -u -D; print re""ady\n'
        )
        wait_for("ready")
        for words, expected in COMPLETED:
            typed = " ".join(words)
            got = b""
            os.write(main, f"{typed}\t".encode())
            wait_for(f"{typed.removesuffix(words[-1])}{expected}")
            os.write(main, b"\x15")  # empties the line
    finally:
        shell.kill()
        shell.wait()
        os.close(main)
