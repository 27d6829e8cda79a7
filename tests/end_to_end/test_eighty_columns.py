"""Every command fits a terminal of 80 columns: a real run, a large simulated one, and a Darshan log."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import darshan
import pytest
from places import BUILD, PATIENCE_S

from ensembles.cli.main import COMMANDS, build_parser

WIDTH = 80
DRIVER = """
import shlex, sys
from ensembles.cli.main import main
for line in sys.argv[1:]:
    print(f"$ {line}", flush=True)
    try:
        main(shlex.split(line))
    except SystemExit:
        pass
    sys.stdout.flush()
"""
"""Runs one command after the other, so that Python starts once."""

OF_A_RUN = (
    "info RUN",
    "events RUN",
    "events RUN --slowest 20",
    "events RUN --op write --limit 3",
    "phases RUN",
    "ordinals RUN",
    "rate RUN",
    "files RUN",
    "ranks RUN",
    "requests RUN",
    "fingerprint RUN",
    "pattern RUN",
    "sites RUN",
    "modes RUN --op write",
    "modes RUN --op write --per-byte",
    "tail RUN --op write --tasks 64",
    "tail RUN --op write --tasks 4 --backtest",
    "split RUN --op write",
    "diagnose RUN",
    "diagnose RUN --verbose",
    "report RUN -o RUN.html",
    "export RUN --to csv RUN.csv",
    "history add RUN --db runs.db --experiment one",
)

ONCE = (
    "collect REAL -o real.h5",
    "anonymise REAL -o hidden.h5",
    "try REAL --with split=2 --time 1",
    "predict REAL --with split=2",
    "calibrate-fs calibrated --tasks 1 --set repetitions=1 --set most_bytes=4MiB -o calibration",
    "compare REAL SIMULATED",
    "scaling REAL SIMULATED",
    "history list --db runs.db",
    "history list --db runs.db --experiment one",
    "history show 1 --db runs.db",
    "history check --db runs.db",
    "simulate ior --tasks 4 --fs healthy -o again",
    "replay ior --tasks 2 --set block_bytes=64KiB -o replayed",
    "scenarios list",
    "scenarios run --scenario healthy-ior --tasks 4 -o planted",
    "pfs run --fs healthy -- true",
    "run -o recorded -- true",
    "inof REAL",
    "events REAL --call wrte",
)

NOT_TEXT = {"serve", "mcp", "docs", "link-flags", "completion"}
"""Two that go on until they are interrupted, one for a browser, one for a compiler and one for a shell."""


def on_terminal(folder: Path, lines, **environment: str) -> str:
    """What a terminal of 80 columns gets."""
    main, other = pty.openpty()
    settings = {name: text for name, text in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
    settings |= {"TERM": "xterm-256color", "COLUMNS": str(WIDTH)} | environment
    settings["PATH"] = f"{BUILD / 'bin'}:{settings['PATH']}"
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER, *lines],
        stdin=subprocess.DEVNULL,
        stdout=other,
        stderr=other,
        cwd=folder,
        env=settings,
    )
    os.close(other)
    got = b""
    while True:
        try:
            part = os.read(main, 65536)
        except OSError:
            break
        if not part:
            break
        got += part
    os.close(main)
    assert process.wait(timeout=PATIENCE_S) == 0
    return got.decode().replace("\r\n", "\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder with the three runs."""
    folder = tmp_path_factory.mktemp("eighty")
    if not (BUILD / "bin" / "ensio-replay").exists():
        pytest.fail(f"ensio-replay is not built in {BUILD}; run ./dev setup")
    log = Path(darshan.__file__).parent / "examples" / "example_logs" / "dxt.darshan"
    (folder / "log.darshan").symlink_to(log)
    on_terminal(
        folder,
        [
            "replay ior --tasks 4 --set block_bytes=256KiB -o real",
            "simulate ior --tasks 64 --fs franklin --seed 1 -o simulated",
        ],
    )
    return folder


def pieces(text: str) -> dict[str, list[str]]:
    """The lines of each command, without colours and bars of progress."""
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    parts = re.split(r"^\$ (.*)\n", plain, flags=re.M)[1:]
    return {
        line: [row.split("\r")[-1] for row in out.split("\n")]
        for line, out in zip(parts[::2], parts[1::2], strict=True)
    }


def too_wide(lines: list[str]) -> list[str]:
    """Lines of more than 80 columns, but for those that are as long by their paths, which are not broken."""
    path = re.compile(r"\S*/(?!s\b)\S+")  # MiB/s is none
    wide = [line.rstrip() for line in lines if len(line.rstrip()) > WIDTH]
    return [line for line in wide if not path.search(line) or len(path.sub("", line)) > WIDTH]


def without_spaces(lines: list[str]) -> list[str]:
    """Lists of ranges without spaces, other than as a filter."""
    return [line for line in lines if re.search(r"(?<!--rank )(?<![\d,-])\d+-\d+,\d", line)]


def in_powers_of_ten(lines: list[str]) -> list[str]:
    """Times, bytes and ratios that are written as a computer does."""
    return [line for line in lines if re.search(r"\d\.?\d*e[+-]?\d+ (s|B|[KMGT]iB)\b|× [\d.]+e[+]", line)]


@pytest.mark.parametrize(
    "run", ["simulated", *(pytest.param(name, marks=pytest.mark.long) for name in ("real", "log.darshan"))]
)
def test_commands_on_a_run_fit(folder, run):
    lines = [line.replace("RUN", run) for line in OF_A_RUN]
    found = pieces(on_terminal(folder, lines))
    assert list(found) == lines
    for line, out in found.items():
        assert any(out), line
        assert not too_wide(out), line
        assert not without_spaces(out), line
        assert not in_powers_of_ten(out), line


def test_other_commands_fit(folder):
    lines = [line.replace("REAL", "real").replace("SIMULATED", "simulated") for line in ONCE]
    lines.insert(0, "history add real --db runs.db --experiment one")
    found = pieces(on_terminal(folder, lines))
    assert list(found) == lines
    for line, out in found.items():
        assert not too_wide(out), line
        assert not in_powers_of_ten(out), line
    tried = {line.split()[0] for line in (*OF_A_RUN, *ONCE)} | NOT_TEXT
    assert set(COMMANDS) <= tried


def parsers(parser, prog=("ensio",)):
    """Every command and subcommand."""
    yield prog
    for action in parser._actions:
        if isinstance(getattr(action, "choices", None), dict):
            for name, below in action.choices.items():
                yield from parsers(below, (*prog, name))


def test_every_help_fits(folder):
    commands = [" ".join([*words[1:], "--help"]) for words in parsers(build_parser())]
    assert len(commands) > 40
    for line, out in pieces(on_terminal(folder, commands)).items():
        assert out[0].startswith("usage: ensio"), line
        assert not [row for row in out if len(row.rstrip()) > WIDTH], line


def test_colours_are_for_terminals_without_no_color(folder):
    lines = ["compare real simulated"]
    assert re.search(r"\x1b\[[0-9;]*3[0-9]m", on_terminal(folder, lines))
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", on_terminal(folder, lines, NO_COLOR="1"))
    asked = [sys.executable, "-c", DRIVER, *lines]
    done = subprocess.run(asked, cwd=folder, capture_output=True, text=True, check=True)
    assert "\x1b" not in done.stdout + done.stderr
