"""Measure the CPU time of a call in the model of a parallel file system: begin, advance, take."""

from __future__ import annotations

import subprocess

import bench


def main() -> None:
    """Print the table."""
    done = subprocess.run([bench.program("pfsmodel")], stdout=subprocess.PIPE, text=True, check=True)
    rows = []
    for line in done.stdout.splitlines():
        kind, tasks, ns = line.split()
        rows.append([kind.replace("_", " "), tasks, f"{float(ns):.0f}", f"{1e3 / float(ns):.2f}"])
    bench.table(
        "a call in the model of a parallel file system, thread CPU time, minimum of 3 rounds",
        ["call", "tasks", "ns", "M calls/s"],
        rows,
        "A task makes its next call when the previous one is complete. 64 MiB are striped over 48 targets.",
    )


if __name__ == "__main__":
    main()
