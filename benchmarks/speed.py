"""Measure what people do most often: processor time over start-up, beside another version of ensio.

``./dev bench speed`` prints the table. ``--against ENSIO`` names the command of another version, which
is measured in turns with this one; it reads files that it has written itself. ``--write`` writes the
table into docs/reference/scaling.md. Start-up is ``ensio info`` of a run of forty calls, by the same version.
Files have been read before, so that they are in the page cache. Nothing is kept but what ``ensio collect``
keeps in its file: the folder of the cache cannot be made.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import re
import statistics
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench import Used, use
from tabulate import tabulate

TREE = Path(__file__).resolve().parents[1]
PAGE = TREE / "docs" / "reference" / "scaling.md"
OURS = TREE / ".venv" / "bin" / "ensio"
BEGIN, END = "<!-- Written by ./dev bench speed --write. -->", "<!-- End of that table. -->"
TASKS = 640


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    label: str
    run: str  # Name of the run
    # Arguments of ``ensio``; ``{run}``, ``{page}`` and ``{window}`` stand for paths and a time range. For a
    # script, its arguments.
    command: str
    goal_s: float
    whole: bool = False  # Measure the whole process, start-up included
    script: str = ""  # Run these lines of Python in place of ``ensio``. Start-up is then `IMPORTS`.


IMPORTS = "import ensembles; from ensembles import viz; viz.trace_diagram"
ZOOM = """
import sys, ensembles; from ensembles import viz
low, high = map(float, sys.argv[2].split(".."))
viz.trace_diagram(ensembles.open(sys.argv[1]), window_s=(low, high))
"""
DIAGRAM = """
import sys, ensembles; from ensembles import viz
viz.trace_diagram(ensembles.open(sys.argv[1]))
"""

ROWS = (
    Row("`info`, collected", "large.h5", "info {run}", 0.1),
    Row("`info`, spools", "large", "info {run}", 3.0),
    Row("`modes --rank 5`, collected", "large.h5", "modes {run} --rank 5 --op write", 0.15),
    Row("`rate --time` (1 %), collected", "large.h5", "rate {run} --time {window}", 0.5),
    Row("`events --time` (1 %), collected", "large.h5", "events {run} --time {window} --limit 10", 0.5),
    Row("`events --limit 10`, spools", "large", "events {run} --limit 10", 0.1),
    Row("`viz.trace_diagram`, collected", "large.h5", "{run}", 0.15, script=DIAGRAM),
    Row("`viz.trace_diagram`, zoom of 1 %", "large.h5", "{run} {window}", 0.15, script=ZOOM),
    Row("`report`, collected", "large.h5", "report {run} -o {page}", 4.0),
    Row("`report`, spools", "large", "report {run} -o {page}", 8.0),
    Row("`phases`, collected", "large.h5", "phases {run}", 6.0),
    Row("`ordinals`, collected", "large.h5", "ordinals {run} --op write", 6.0),
    Row("`diagnose`, collected", "large.h5", "diagnose {run}", 15.0),
    Row("`report`, DXT log of 2.5 M segments", "dxt.darshan", "report {run} -o {page}", 2.0),
    Row("`info`, 10,240 spools", "many", "info {run}", 0.6),
    Row("`info`, 40 calls, whole process", "small", "info {run}", 0.25, whole=True),
    Row("`modes`, 40 calls, whole process", "small", "modes {run}", 0.5, whole=True),
    Row("`report`, 40 calls, whole process", "small", "report {run} -o {page}", 1.0, whole=True),
)


def run(ensio: Path, arguments: list[str], script: str = "") -> Used:
    """Run a command or a script, and return its processor time, time by the clock and peak memory."""
    program = [ensio.parent / "python", "-c", script] if script else [ensio]
    # ./dev bench sets ENSIO_CACHE=0, with which ensio collect keeps nothing either.
    unset = ("PYTHONDONTWRITEBYTECODE", "ENSIO_CACHE")
    environment = {key: value for key, value in os.environ.items() if key not in unset}
    return use([*program, *arguments], environment | {"XDG_CACHE_HOME": os.devnull}, may_fail=True)


def make_runs(folder: Path, calls: int) -> None:
    """Make the runs in a folder.

    This happens in another process: the peak memory of a child counts that of its parent when it began.
    """
    from darshan_logs import make_log
    from synthetic_runs import synthetic_run

    synthetic_run(folder / "small", 4, 10)
    synthetic_run(folder / "large", TASKS, max(calls // TASKS, 1), seed=3, phases=20)
    synthetic_run(folder / "many", 10_240, 100, seed=4)
    make_log(folder / "dxt.darshan", 128, 19_532)


def collect(folder: Path, versions: dict[str, Path]) -> dict[str, float]:
    """Collect the large run by each version, for itself; returns seconds of processor time."""
    taken = {}
    for version, ensio in versions.items():
        target = folder / version / "large.h5"
        target.parent.mkdir()
        taken[version] = run(ensio, ["collect", str(folder / "large"), "-o", str(target)]).processor_s
    return taken


def path_of(folder: Path, version: str, name: str) -> Path:
    """Return the path of a run, which each version has collected for itself."""
    return folder / version / name if name == "large.h5" else folder / name


def measure(folder: Path, calls: int, repeats: int, versions: dict[str, Path]) -> list[list[str]]:
    """Measure all rows, versions in turns."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as other:
        other.submit(make_runs, folder, calls).result()
        collected = collect(folder, versions)
        end_s = other.submit(end_of, folder / "ours" / "large.h5").result()
    window = f"{0.5 * end_s:.3f}..{0.51 * end_s:.3f}"
    starts: dict[str, list[float]] = {version: [] for version in versions}
    imports: dict[str, list[float]] = {version: [] for version in versions}
    found: dict[tuple[str, str], list[Used]] = {}
    for _ in range(repeats):
        for version, ensio in versions.items():
            starts[version].append(run(ensio, ["info", str(folder / "small")]).processor_s)
            imports[version].append(run(ensio, [], IMPORTS).processor_s)
    for row in ROWS:
        for _ in range(repeats):
            for version, ensio in versions.items():
                names = {
                    "run": path_of(folder, version, row.run),
                    "page": folder / "r.html",
                    "window": window,
                }
                words = [word.format(**names) for word in row.command.split()]
                found.setdefault((row.label, version), []).append(run(ensio, words, row.script))
        print(row.label, [round(used.processor_s, 2) for used in found[row.label, "ours"]], file=sys.stderr)
    start = {version: statistics.median(taken) for version, taken in starts.items()}
    imported = {version: statistics.median(taken) for version, taken in imports.items()}
    lines = []
    for row in ROWS:
        line = [row.label]
        for version in versions:
            before_s = imported[version] if row.script else start[version]
            line += _figures(found[row.label, version], 0.0 if row.whole else before_s)
        lines.append([*line, f"{row.goal_s:g} s"])
    rate = [f"{calls / taken / 1e6:.1f} M events/s" for taken in collected.values()]
    empty = [cell for text in rate for cell in (text, "")]
    lines.append(["`collect`, a core", *empty, "10 M events/s"])
    lines.append(["report, two workers : one, by the clock", *_workers(folder, versions, repeats), "1.8"])
    return lines


def _figures(taken: list[Used], start_s: float) -> list[str]:
    if any(used.status for used in taken):
        return ["refused", ""]
    seconds = statistics.median(used.processor_s for used in taken) - start_s
    return [f"{max(seconds, 0):.2f} s", f"{max(used.peak_mib for used in taken):,.0f} MiB"]


def _workers(folder: Path, versions: dict[str, Path], repeats: int) -> list[str]:
    cells = []
    for ensio in versions.values():
        clock: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(repeats):
            for count, taken in clock.items():
                words = [
                    "report",
                    str(folder / "large"),
                    "-o",
                    str(folder / "r.html"),
                    "--workers",
                    str(count),
                ]
                taken.append(run(ensio, words).clock_s)
        cells += [f"{statistics.median(clock[1]) / statistics.median(clock[2]):.2f}", ""]
    return cells


def end_of(path: Path) -> float:
    """Return the end of a run in seconds."""
    import ensembles

    return float(ensembles.open(path).summary.cells["end_ns"].max()) * 1e-9


def write_page(table: str, head: str) -> None:
    """Replace the table of the page."""
    text = PAGE.read_text()
    pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"{PAGE} has no place for the table ({BEGIN})")
    PAGE.write_text(pattern.sub(lambda _: f"{BEGIN}\n\n{head}\n\n{table}\n\n{END}", text))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=float, default=100e6, help="calls of the large run (default: 100e6)")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--against", type=Path, metavar="ENSIO", help="command of another version")
    parser.add_argument("--write", action="store_true", help="write the table into docs/reference/scaling.md")
    args = parser.parse_args()
    versions = {"ours": OURS} | ({"other": args.against.resolve()} if args.against else {})
    with tempfile.TemporaryDirectory(prefix="ensio-bench-") as name:
        lines = measure(Path(name), int(args.calls), args.repeats, versions)
    headers = ["what", "now", "peak"] + (["before", "peak"] if args.against else []) + ["goal"]
    table = tabulate(lines, headers, tablefmt="github", disable_numparse=True)
    load = os.getloadavg()[0]
    head = (
        f"{int(args.calls):,} calls of {TASKS} tasks, medians of {args.repeats}, "
        f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} processors ({platform.machine()}), load "
        f"{load:.1f} at the end."
    )
    print(f"{head}\n\n{table}")
    if args.write:
        write_page(table, head)


if __name__ == "__main__":
    main()
