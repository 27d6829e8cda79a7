"""Measure what a small run costs: processor time of whole processes.

With ``--beside TREE`` (another checkout, after its ``./dev setup``) both trees take turns, and the
ratio of medians is printed.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import tempfile
from pathlib import Path

from tabulate import tabulate

from ensembles.workloads.synthetic import synthetic_run

TREE = Path(__file__).resolve().parents[1]
TASKS, CALLS = 4, 10
REPEATS = 7


def commands(folder: Path) -> dict[str, list[str]]:
    """Return the command lines that are measured, by the name of their row."""
    run = str(folder / "run")
    return {
        "--help": ["--help"],
        "info": ["info", run],
        "info --json": ["info", run, "--json"],
        "modes": ["modes", run],
        "report": ["report", run, "-o", str(folder / "report.html")],
    }


def processor_s(tree: Path, arguments: list[str]) -> float:
    """Run a command of a tree and return the seconds of processor time of its process."""
    # A module is compiled once, as in an installation.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [str(tree / ".venv" / "bin" / "ensio"), *arguments]
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--beside", type=Path, metavar="TREE", help="another checkout, measured in turns")
    other = parser.parse_args().beside
    trees = [TREE] if other is None else [TREE, other.resolve()]
    rows = []
    with tempfile.TemporaryDirectory(prefix="ensio-bench-") as name:
        folder = Path(name)
        synthetic_run(folder / "run", TASKS, CALLS)
        for label, arguments in commands(folder).items():
            for tree in trees:  # compiles modules, fills the cache of the file system
                processor_s(tree, arguments)
            turns = [[processor_s(tree, arguments) for tree in trees] for _ in range(REPEATS)]
            medians = [statistics.median(column) for column in zip(*turns, strict=True)]
            rows.append([label, *(f"{seconds:.3f}" for seconds in medians)])
            if other is not None:
                rows[-1].append(f"{medians[0] / medians[1]:.2f}")
    headers = ["command", "here", *(["beside", "ratio"] if other is not None else [])]
    print(f"\nA run of {TASKS * CALLS} calls: processor time of whole processes in s, medians of {REPEATS}\n")
    print(tabulate(rows, headers, disable_numparse=True))


if __name__ == "__main__":
    main()
