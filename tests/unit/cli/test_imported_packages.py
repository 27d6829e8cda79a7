"""Which heavy packages each command imports: answers about a small run should take the time of a start."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from synthetic_runs import synthetic_run

from ensembles.cli.main import COMMANDS

HEAVY = (
    "bokeh",
    "dask",
    "h5py",
    "jinja2",
    "matplotlib",
    "numpy",
    "numpy.ma",
    "pandas",
    "pyarrow",
    "scipy",
    "scipy.stats",
    "sqlalchemy",
    "tabulate",
)

PROGRAM = """
import contextlib, io, json, os, sys
from ensembles.cli.main import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    for words in json.loads(sys.argv[1]):
        try:
            code = main(words)
        except SystemExit as end:
            code = end.code or 0
        if code:
            break
heavy = sorted(set(json.loads(sys.argv[2])) & set(sys.modules))
print(json.dumps([code, heavy, os.environ.get("OPENBLAS_NUM_THREADS")]))
"""

READING = ["numpy"]
TESTING = ["numpy", "numpy.ma", "scipy"]


def imported_by(*arguments: object, **environment: str) -> tuple[int, list[str], str | None]:
    """Exit code of a command, the heavy packages it imported, and its setting of OpenBLAS."""
    return imported_by_all([[str(argument) for argument in arguments]], **environment)


def imported_by_all(lines: list[list[str]], **environment: str) -> tuple[int, list[str], str | None]:
    """The same of commands in one process, the first that fails the last."""
    kept = {"PATH": "/usr/bin:/bin"} | environment
    command = [sys.executable, "-c", PROGRAM, json.dumps(lines), json.dumps(HEAVY)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=kept)
    code, heavy, threads = json.loads(done.stdout)
    return code, heavy, threads


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("imports") / "run"
    synthetic_run(path, 4, 20)
    return path


def test_help_imports_no_heavy_package() -> None:
    lines = [["--help"], *([command, "--help"] for command in COMMANDS)]
    assert imported_by_all(lines)[:2] == (0, [])


@pytest.mark.parametrize(
    ("command", "packages"),
    [
        ("info", READING),
        ("diagnose", [*READING, "numpy.ma"]),
        ("files", READING),
        ("ranks", READING),
        ("phases", READING),
        ("rate", READING),
        ("modes", TESTING),
    ],
)
def test_a_command_imports_what_its_answer_needs(folder: Path, command: str, packages: list[str]) -> None:
    assert imported_by(command, folder)[:2] == (0, packages)


def test_a_comparison_needs_neither_tests_nor_distributions_of_scipy(folder: Path, tmp_path: Path) -> None:
    synthetic_run(tmp_path / "other", 4, 20, seed=2)
    assert imported_by("compare", folder, tmp_path / "other")[1] == TESTING


def test_json_needs_no_tables(folder: Path) -> None:
    assert imported_by("info", folder, "--json")[:2] == (0, ["numpy"])


def test_a_report_needs_neither_pandas_nor_hdf5(folder: Path, tmp_path: Path) -> None:
    packages = ["bokeh", "jinja2", *TESTING]
    assert imported_by("report", folder, "-o", tmp_path / "report.html")[:2] == (0, packages)


def test_analysis_starts_one_blas_thread_unless_the_user_says_otherwise(folder: Path) -> None:
    assert imported_by("info", folder)[2] == "1"
    assert imported_by("info", folder, OPENBLAS_NUM_THREADS="3")[2] == "3"
    assert imported_by("info", folder, OMP_NUM_THREADS="3")[2] is None


def test_a_program_that_is_traced_finds_the_environment_of_the_user(tmp_path: Path) -> None:
    assert imported_by("run", "-o", tmp_path / "run", "--", "true")[2] is None
