"""Common parts of the benchmarks of the recorder: paths of its programs, runs and tables."""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
from pathlib import Path

from tabulate import tabulate

BUILD = Path(os.environ.get("ENSIO_BUILD", Path(__file__).resolve().parents[1] / "build"))
PRELOAD = BUILD / "lib" / "libensio-preload.so"

# Measured modes of recording, in the order of the rows.
MODES = ("trace", "profile", "tail")


def program(name: str) -> str:
    """Return the path of a benchmark program."""
    return str(BUILD / "bin" / f"ensio-bench-{name}")


def environment(folder: str | Path, **more: str) -> dict[str, str]:
    """Return an environment in which all calls are recorded into a folder, also those on /dev/null."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("ENSIO_", "LD_PRELOAD"))}
    return clean | {"ENSIO_DIR": str(folder), "ENSIO_EXCLUDE": ""} | more


def run(*command: object, **more: str) -> str:
    """Run a program, recorded into a temporary folder, and return its output."""
    with tempfile.TemporaryDirectory(prefix="ensio-bench-", dir=BUILD) as folder:
        words = [str(word) for word in command]
        done = subprocess.run(
            words, env=environment(folder, **more), stdout=subprocess.PIPE, text=True, check=True
        )
        return done.stdout


def numbers(printed: str) -> dict[str, float]:
    """Parse the numbers of a line "name number name number ..."."""
    words = printed.split()
    return {name: float(number) for name, number in zip(words[::2], words[1::2], strict=True)}


def median_of(rows: list[dict[str, float]]) -> dict[str, float]:
    """Return the median over rows of each number."""
    return {name: statistics.median(row[name] for row in rows) for name in rows[0]}


def table(title: str, headers: list[str], rows: list[list[object]], notes: str = "") -> None:
    """Print a table with a title and notes."""
    print(f"\n{title}\n")
    print(tabulate(rows, headers, floatfmt=".1f", disable_numparse=True))
    if notes:
        print(f"\n{notes}")
