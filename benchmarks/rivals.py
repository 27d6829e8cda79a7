"""Compare the cost of a recorded call with other tracers, measured or from earlier measurements."""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

import bench

CALLS = 50_000
PAIRS = 9

# Added ns for a write of 8 bytes to /dev/null (untraced 207 ns), measured earlier on a similar machine.
STATED_NS = {
    "IPM, counters": 49,
    "Darshan, counters": 166,
    "Darshan with DXT": 207,
    "Score-P writing OTF2": 274,
    "Recorder": 605,
    "DFTracer": 1185,
}

# The wheel also contains a debug build, libdftracer_preload_dbg.so, which takes 15 times as long.
FIND_DFTRACER = """
import importlib.util, pathlib
found = importlib.util.find_spec("dftracer")
roots = found.submodule_search_locations if found else []
libraries = [path for root in roots for path in pathlib.Path(root).rglob("libdftracer_preload.so")]
print(libraries[0] if libraries else "")
"""


def write_ns(environment: dict[str, str]) -> float:
    """Return the thread CPU time of a write to /dev/null, ns."""
    done = subprocess.run(
        [bench.program("program"), "write", str(CALLS)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout.split()[0])


def added_ns(environment: dict[str, str]) -> float:
    """Return the ns that an environment adds to a call, the median of pairs with the untraced program."""
    plain = bench.environment("/nonexistent")
    return statistics.median(write_ns(environment) - write_ns(plain) for _ in range(PAIRS))


def dftracer(python: str | None, folder: Path) -> tuple[dict[str, str] | None, str]:
    """Return the environment in which DFTracer records, or None and the reason."""
    if not python:
        return None, "name a PYTHON that imports dftracer (from PyPI) with --dftracer-python"
    found = subprocess.run([python, "-c", FIND_DFTRACER], capture_output=True, text=True)
    library = found.stdout.strip()
    if not library:
        return None, f"{python} does not have dftracer with a preload library"
    return bench.environment(folder) | {
        "LD_PRELOAD": library,
        "DFTRACER_ENABLE": "1",
        "DFTRACER_INIT": "PRELOAD",
        "DFTRACER_DATA_DIR": "all",  # a folder would exclude /dev/null
    }, ""


def dftracer_rows(environment: dict[str, str], folder: Path) -> list[list[str]]:
    """Measure DFTracer without and with sizes and offsets; raise RuntimeError if it records nothing."""
    rows = []
    for name, metadata in (("DFTracer, preloaded", "0"), ("DFTracer, preloaded, with sizes", "1")):
        log = folder / f"dftracer-{metadata}"
        cost = added_ns(environment | {"DFTRACER_INC_METADATA": metadata, "DFTRACER_LOG_FILE": str(log)})
        traces = list(folder.glob(f"{log.name}*"))
        if len(traces) < PAIRS or any(path.stat().st_size < CALLS for path in traces):
            raise RuntimeError("it did not record the calls")
        rows.append([name, f"{cost:.0f}", "now"])
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--dftracer-python",
        default=os.environ.get("DFTRACER_PYTHON"),
        metavar="PYTHON",
        help="interpreter of a virtual environment with DFTracer (default: $DFTRACER_PYTHON)",
    )
    options = parser.parse_args()
    rows, notes = [], []
    with tempfile.TemporaryDirectory(prefix="ensio-bench-", dir=bench.BUILD) as folder:
        ours = bench.environment(folder) | {"LD_PRELOAD": str(bench.PRELOAD)}
        for mode in bench.MODES:
            rows.append([f"ensio, {mode}, preloaded", f"{added_ns(ours | {'ENSIO_MODE': mode}):.0f}", "now"])
        environment, why_not = dftracer(options.dftracer_python, Path(folder))
        if environment:
            try:
                rows += dftracer_rows(environment, Path(folder))
            except (RuntimeError, subprocess.CalledProcessError) as error:
                why_not = str(error)
        if why_not:
            notes.append(f"DFTracer was not measured: {why_not}.")
    rows += [[name, str(cost), "earlier"] for name, cost in STATED_NS.items()]
    notes.append("earlier: measured on a similar machine on another day; the untraced call took 207 ns.")
    bench.table(
        "a write of 8 bytes to /dev/null under tracers: ns added (thread CPU time, median of pairs)",
        ["tracer", "ns added", "measured"],
        rows,
        "\n".join(notes),
    )


if __name__ == "__main__":
    main()
