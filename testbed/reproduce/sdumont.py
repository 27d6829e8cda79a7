"""BT-IO, IOR, OLAM and the microbenchmark of "Collective I/O Performance on the Santos Dumont Supercomputer".

Its numbers of the faster MPI implementations are compared, with the implementation in the name of the row; no
model describes the slower ones.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ensembles.run.requests import requests_of_run
from testbed.reproduce.figure import Figure, near
from testbed.reproduce.runs import Runs

CASE = "SDumont"
TASKS = 240
SEGMENTS = {1024: 6554, 1312: 5116, 58_864: 116, 65_536: 104}
"""Table II: requests of a task by their size."""
OLAM_FILES = 49
FREQUENT = {1308: 94_521, 1312: 55_713, 1316: 44_394, 59_040: 43_904}
"""Table I: collective writes by their size, with BullxMPI."""
INPUT_SCALE = 100
"""The input is read in so many times fewer requests; its time is not used."""


def figures(runs: Runs) -> Iterator[Figure]:
    """Yield sizes and counts of requests, rates of IOR, and the five steps."""
    writes = runs.simulate("btio", "sdumont", "--set", "sizes=paper", "--set", "writes=5")
    requests = writes.run.select(op="write", layer="mpiio").moved
    yield near(CASE, "bytes that BT-IO writes", "by construction", 132.6, requests.sum() * 10 / 1e9, "GB")
    yield near(CASE, "requests of BT-IO", "by construction", 18, float(np.median(requests)) / 1e6, "MB")
    yield from _ior(runs)
    yield from _olam(runs)
    yield from _steps(runs)


def _ior(runs: Runs) -> Iterator[Figure]:
    rates: dict[tuple[str, int], float] = {}
    for size, segments in SEGMENTS.items():
        # A sixteenth of the small requests is enough: their rate does not depend on their number.
        shrink = 16 if segments > 1000 else 1
        options = (
            "--sizes",
            "paper",
            "--set",
            f"only={size}",
            "--set",
            f"segments_{size}={segments // shrink}",
        )
        made = runs.simulate("ior-sdumont", "sdumont", *options, "--mode", "profile")
        for way in ("write", "read"):
            (time_s,) = made.phase_times_s(f"{way}-{size}")
            rates[way, size] = size * TASKS * (segments // shrink) / time_s / 1e6
    small, large = 1024, 65_536
    # The model is of Intel MPI; of reads, the paper gives the rate of the fastest implementation only.
    for what, kind, theirs, ours in (
        ("collective writes of 65,536 bytes (Intel MPI)", "fitted", 1014, rates["write", large]),
        ("collective writes of 1,024 bytes (Intel MPI)", "predicted", 90, rates["write", small]),
        ("collective reads of 65,536 bytes (Open MPI 2.0, ROMIO)", "predicted", 1402, rates["read", large]),
    ):
        yield near(CASE, what, kind, theirs, ours, "MB/s")
    file_MB = SEGMENTS[small] * small * TASKS / 1e6
    less_s = file_MB / rates["read", small] - file_MB / rates["read", large]
    what = "decrease of the time of reads by larger requests (Intel MPI)"
    yield near(CASE, what, "predicted", 30.5, less_s)
    # No price of misalignment is published, and the model has none.
    for way in ("write", "read"):
        for size, aligned in ((1312, small), (58_864, large)):
            ratio = rates[way, size] / rates[way, aligned]
            what = f"misaligned {way}s of {size:,} bytes, relative to {aligned:,} (not slower by ROMIO)"
            yield Figure(CASE, what, "by construction", np.nan, ratio, 0.9, 1.5, "")


def _olam(runs: Runs) -> Iterator[Figure]:
    reads = {"reads_8192": 35_772, "reads_8190": 28_274, "reads_512": 526}
    options = [f"{name}={count // INPUT_SCALE}" for name, count in reads.items()] + [
        "outputs=2",
        "compute_ms=1",
    ]
    words = [word for option in options for word in ("--set", option)]
    made = runs.simulate("olam", "sdumont", "--set", "sizes=paper", *words)
    (collective,) = (
        found for found in requests_of_run(made.run, most=20) if (found.layer, found.op) == ("mpiio", "write")
    )
    counted = {size.low_bytes: size.count for size in collective.sizes}
    for size, count in FREQUENT.items():
        what = f"collective writes of OLAM of {size:,} bytes (BullxMPI)"
        ours = counted.get(size, 0) * OLAM_FILES / 2
        yield near(CASE, what, "by construction", count, ours, "", 0.01)


def _steps(runs: Runs) -> Iterator[Figure]:
    steps = runs.simulate("twophase", "sdumont", "--set", "sizes=paper")
    names = ("1-ranges", "2-counts", "3-offsets", "4-data")
    times_s = {name: sum(steps.phase_times_s(name)) for name in names}
    # Step 5 of table III is MPI_File_write_at; the microbenchmark times the sync after it separately.
    writes = steps.run.select(call="MPI_File_write_at")
    times_s["5-write"] = float(writes.duration.max()) / 1e9
    share = times_s["5-write"] / sum(times_s.values())
    what = "share of the write in the five steps (not most of the time)"
    yield Figure(CASE, what, "predicted", np.nan, share, 0, 0.5, "")
    # That a task handles messages one after the other was put into the model for this row.
    what = "step 3 of the five, relative to step 4 (longer)"
    yield Figure(CASE, what, "fitted", np.nan, times_s["3-offsets"] / times_s["4-data"], 1.05, np.inf, "")
