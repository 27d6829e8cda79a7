"""What ``strided-readahead`` finds in a simulated program, and random programs without that fault."""

from __future__ import annotations

import numpy as np
from matrices import MIB, FileSystem, Matrices, run_matrices

from ensembles.diagnosis.rules.strided_readahead import StridedRuns, Verdict, judgeable, verdict
from ensembles.model.events import Events
from ensembles.structure.strides import StridedReads

TASKS = 16


def judged(events: Events) -> Verdict:
    found = StridedReads()
    found.add(events)
    rows = judgeable(found.rows_nearest_to_disk)
    mixed = rows["interleaved"]
    return verdict(StridedRuns.from_rows(rows[mixed]), StridedRuns.from_rows(rows[~mixed]))


def judged_run(shape: Matrices, system: FileSystem, tasks: int = TASKS, seed: int = 0) -> Verdict:
    return judged(run_matrices(shape, tasks, system, seed).events)


def random_healthy(seed: int) -> tuple[Matrices, FileSystem, int]:
    """A program and a file system without the fault, but with all else that slows reads."""
    rng = np.random.default_rng([seed, 11])
    shape = Matrices(
        count=int(rng.choice([5, 6, 8, 8, 12, 16, 32])),
        size_bytes=int(2 ** rng.uniform(20, 29)),
        gap_bytes=int(rng.choice([4096, 65536, MIB])),
        own_file=bool(rng.random() < 0.3),
        head_reads=int(rng.choice([0, 2])),
        phases=str(rng.choice(["wmr", "wm", "m", "wmmr", "mr", "wmrmr"])),
        barriers=bool(rng.random() < 0.7),
    )
    usual_s = shape.size_bytes / MIB * 0.03 * shape.count
    system = FileSystem(
        noise=float(rng.choice([0.05, 0.15, 0.4, 0.8])),
        shared_noise=float(rng.choice([0.02, 0.1, 0.3, 0.6])),
        node_noise=float(rng.choice([0, 0.1, 0.5])),
        heavy=float(rng.choice([0, 0, 0.02, 0.1])),
        pressure=float(rng.choice([1, 1, 1.5, 3, 6])),
        drift_per_s=float(rng.choice([0, 0, 0, 0.3, 1.0, 2.0])) / (usual_s * len(shape.phases)),
        cliff_bytes=float(rng.choice([np.inf, np.inf, rng.uniform(0, 2 * shape.count) * shape.size_bytes])),
        cliff_reads=float(rng.choice([1, 2, 5])),
    )
    for _ in range(int(rng.choice([0, 0, 1, 2, 4]))):
        begin = rng.uniform(0, usual_s * len(shape.phases))
        system.bursts.append((begin, begin + usual_s * rng.exponential(0.6), float(rng.choice([1.5, 3, 10]))))
    return shape, system, int(2 ** rng.uniform(1, 7))
