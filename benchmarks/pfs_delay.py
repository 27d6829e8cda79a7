"""Measure the error of libensio-pfs: the excess of the duration of calls over that of the model.

The model has no noise and no shared queue, so that all calls have the same duration in it. If permitted, the
benchmark runs with a real-time priority, to exclude the load of the machine.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from pathlib import Path

import bench
import numpy as np

from ensembles.workloads.simulation.live_model import environment_for, held_back, shared_model

OPERATION_S = 0.001
READ_BYTES = 65_536
READ_S = 0.001
SETTINGS = f"""
targets 1
stripe_count 1
target_MB_per_s {READ_BYTES / 1e6 / READ_S}
stream_MB_per_s 1e6
link_MB_per_s 1e6
absorb_MB_per_s 1e6
link_latency_us 0
request_ms 0
commit_ms 0
mds_threads 1024
mds_op_ms {1e3 * OPERATION_S}
request_noise 0
call_noise 0
mds_noise 0
cache_MiB 0
page_cache_MiB 0
readahead_KiB 0
"""
GOAL_US = 100
PRIORITY = 10


def set_real_time_priority() -> bool:
    """Set a real-time priority, which children inherit; return whether it is permitted."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    except PermissionError:
        return False
    return True


def measure(call: str, tasks: int, calls: int) -> list[str]:
    """Return a row of the table."""
    with tempfile.TemporaryDirectory(prefix="ensio-bench-", dir=bench.BUILD) as name:
        file = Path(name) / "file"
        file.write_bytes(bytes(READ_BYTES))
        command = [bench.program("pfs_delay"), call, str(file), str(calls), str(READ_BYTES)]
        with shared_model(SETTINGS, 1) as model:
            environment = environment_for(model, [Path(name)], dict(os.environ))
            running = [
                subprocess.Popen(
                    command, env=environment | {"PMI_RANK": str(rank)}, stdout=subprocess.PIPE, text=True
                )
                for rank in range(tasks)
            ]
            said = [process.communicate()[0] for process in running]
            counted = held_back(model)
    if any(process.returncode for process in running) or counted.calls != tasks * (calls + 1):
        raise SystemExit(f"{call}: the program failed or was not under the model")
    took_s = np.array([line for text in said for line in text.split()], dtype=float) / 1e9
    late_us = 1e6 * (took_s - (READ_S if call == "pread" else OPERATION_S))
    quantiles = np.quantile(late_us, [0.0, 0.5, 0.9, 0.99])
    return [call, str(tasks), *(f"{value:.1f}" for value in quantiles), f"{1e6 * counted.late_median_s:.1f}"]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=1000, help="calls of each task (default: %(default)s)")
    chosen = parser.parse_args()
    real_time = set_real_time_priority()
    rows = [measure("stat", tasks, chosen.calls) for tasks in (1, 2, 8, 32)]
    rows.append(measure("pread", 1, chosen.calls))
    bench.table(
        f"excess of the duration of a call over the {1e3 * OPERATION_S:g} ms of the model, us",
        ["call", "tasks", "minimum", "median", "p90", "p99", "after the end in the model (median)"],
        rows,
        f"goal: at most {GOAL_US} at the median. With"
        + (
            " a real-time priority."
            if real_time
            else "out real-time priority: includes the load of the machine."
        ),
    )


if __name__ == "__main__":
    main()
