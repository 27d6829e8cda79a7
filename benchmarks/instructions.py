"""Count the instructions of a recorded call with callgrind, independently of the load of the machine."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile

import bench

CALLS = ("write", "pwrite", "cyclic", "lseek", "fwrite", "open", "open-here", "stat", "stat-here")
FEW, MANY = 2_000, 12_000
CALLGRIND = ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null")
WAYS = {
    "untraced": ("program", {}),
    "relinked": ("relinked", {}),
    "preloaded": ("program", {"LD_PRELOAD": str(bench.PRELOAD)}),
}


def instructions(way: str, call: str, calls: int, **more: str) -> int:
    """Count the instructions of a run outside the kernel."""
    binary, extra = WAYS[way]
    with tempfile.TemporaryDirectory(prefix="ensio-bench-", dir=bench.BUILD) as folder:
        done = subprocess.run(
            [*CALLGRIND, bench.program(binary), call, str(calls)],
            env=bench.environment(folder) | extra | more,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=True,
        )
    return int(re.search(r"Collected : (\d+)", done.stderr)[1])


def per_call(way: str, call: str, **more: str) -> float:
    """Return the instructions of an additional call."""
    return (instructions(way, call, MANY, **more) - instructions(way, call, FEW, **more)) / (MANY - FEW)


def main() -> None:
    """Print the table."""
    if not shutil.which("valgrind"):
        sys.exit("instructions.py: valgrind is not installed; ./dev bench installs it")
    rows = []
    for call in CALLS:
        untraced = per_call("untraced", call)
        for mode in bench.MODES:
            added = [per_call(way, call, ENSIO_MODE=mode) - untraced for way in ("relinked", "preloaded")]
            rows.append([mode, call, f"{untraced:.1f}", *(f"{number:.1f}" for number in added)])
    bench.table(
        "instructions per call outside the kernel, counted by callgrind",
        ["mode", "call", "untraced", "relinked adds", "preloaded adds"],
        rows,
        "The kernel (including first touches of pages) is not counted. cyclic: offsets repeat cyclically;\n"
        "open: with a close; here: by a relative path.",
    )


if __name__ == "__main__":
    main()
