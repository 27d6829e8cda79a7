"""Common parts of the benchmarks: programs of the recorder, steps in processes, runs and tables."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tabulate import tabulate

from ensembles.cli.replay_program import ANY_TASKS

# The benchmarks make runs as the tests do.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

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


class Used(NamedTuple):
    """What a process and its children took."""

    processor_s: float
    clock_s: float
    peak_mib: float
    status: int
    printed: str  # On standard output, if that is kept


def use(
    command: Sequence[object],
    environment: Mapping[str, str] | None = None,
    keep: bool = False,
    may_fail: bool = False,
) -> Used:
    """Run a command, and return what it took."""
    output = subprocess.PIPE if keep else subprocess.DEVNULL
    words = list(map(str, command))
    begin = time.perf_counter()
    child = subprocess.Popen(words, env=environment, stdout=output, stderr=subprocess.DEVNULL, text=True)
    printed = child.stdout.read() if child.stdout else ""
    _, status, usage = os.wait4(child.pid, 0)
    clock_s = time.perf_counter() - begin
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode and not may_fail:
        raise SystemExit(f"{words[0]} ended with status {child.returncode}")
    processor_s = usage.ru_utime + usage.ru_stime
    return Used(processor_s, clock_s, usage.ru_maxrss / 1024, child.returncode, printed)


def record_ranks(folder: Path, ranks: int, calls: int, mode: str, job_file: str = "1") -> tuple[Path, Path]:
    """Record ranks that make calls, and return the run directory and the folder of what each says it took."""
    run, data = folder / "run", folder / "data"
    data.mkdir()
    settings = {"ENSIO_DIR": str(run), "ENSIO_BANNER": "none", "ENSIO_EXCLUDE": f"!{data}/data.*:*"}
    settings |= {"ENSIO_MODE": mode, "ENSIO_JOBFILE": job_file}
    command = ["mpiexec", "-n", str(ranks), program("job"), str(data), str(calls)]
    subprocess.run(command, check=True, env=os.environ | ANY_TASKS | settings, timeout=600)
    return run, data


def table(title: str, headers: list[str], rows: list[list[object]], notes: str = "") -> None:
    """Print a table with a title and notes."""
    print(f"\n{title}\n")
    print(tabulate(rows, headers, floatfmt=".1f", disable_numparse=True))
    if notes:
        print(f"\n{notes}")


def processor_s() -> tuple[float, float]:
    """Return the processor time of this process and of its children."""
    return tuple(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


class Spent(NamedTuple):
    """What a step of Python takes in a separate process, which has its own peak memory, without imports."""

    processor_s: float  # Least of several, as the next
    clock_s: float
    peak_mib: float  # Most of several
    count: Any  # What the step assigned to this name


def in_process(step: str, imports: str, repeats: int, **names: Any) -> Spent:
    """Measure a step, to which `names` are known."""
    program = (
        f"import json, os, re, sys, time, {imports}\n"
        + "".join(f"{name} = {value!r}\n" for name, value in names.items())
        + "out, count = sys.stdout, 0\n"
        "begin, used = time.perf_counter(), time.process_time()\n"
        f"{step}\n"
        "times = time.process_time() - used, time.perf_counter() - begin\n"
        "peak_kib = int(re.search('VmHWM:\\\\s*([0-9]+)', open('/proc/self/status').read())[1])\n"
        "print('\\n' + json.dumps([*times, peak_kib / 1024, count]), file=out)\n"
    )
    results = []
    for _ in range(repeats):
        done = subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.PIPE, text=True)
        results.append(json.loads(done.stdout.splitlines()[-1]))
    processor_s, clock_s, peaks_mib, counts = zip(*results, strict=True)
    return Spent(min(processor_s), min(clock_s), max(peaks_mib), counts[0])
