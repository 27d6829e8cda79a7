"""The numbers of the TAPIOCA paper, and what the model has for them.

Two numbers of Theta are fitted, to the rates at 1:1 and 1:8 of table I, and a rule to its other rows: windows
of a round lie side by side in the file. Gains and shares of the peak are predicted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from testbed.tapioca.described import Layout, Writes, hacc, side_by_side
from testbed.tapioca.machine_files import MIB, read_machine
from testbed.tapioca.placement import STRATEGIES
from testbed.tapioca.simulate import Machine, Outcome, mpi_io, simulate, tapioca

BUFFER_STRIPE_GB_PER_S = {
    (1, 8): 0.36,
    (1, 4): 0.64,
    (1, 2): 0.91,
    (1, 1): 1.57,
    (2, 1): 1.08,
    (4, 1): 1.14,
}
"""Table I: rate by the ratio of buffer and stripe."""
FITTED_RATIOS = ((1, 8), (1, 1))
"""Rows of table I to which the numbers of Theta are fitted. The order of windows is fitted to the others."""
BUFFERS_MIB = (4, 8, 16)
"""Buffers of table I; its rates are averages over them."""
PARTICLES = (5_000, 10_000, 25_000, 50_000, 100_000)
PSET_NODES = 128
STRIPED: dict[str, Any] = {"domains": "cyclic", "align": True}
"""MPI-IO on Lustre: stripes go to the aggregators in turn."""
PARTS: dict[str, Any] = {"align": True}
"""MPI-IO of MPICH on GPFS (ad_gpfs): each aggregator has a part of the file that begins with a block, so that
no block is written by two. Of few blocks, some aggregators have none."""


def buffer_stripe(**settings: Any) -> Iterator[tuple[tuple[int, int], float, float]]:
    """Yield ratio, published and simulated rate (GB/s) of table I.

    512 nodes of Theta with 16 tasks write 1 MiB a task through 48 aggregators. The mean over the buffers of
    4, 8 and 16 MiB is taken, as in the paper.
    """
    machine = read_machine("theta")
    writes = side_by_side(512 * machine.tasks_per_node, MIB)
    for (buffer, stripe), paper in BUFFER_STRIPE_GB_PER_S.items():
        rates = [
            simulate(
                writes,
                machine.with_storage(stripe_bytes=size * MIB * stripe // buffer),
                tapioca(48, size * MIB, **settings),
            ).bytes_per_s
            for size in BUFFERS_MIB
        ]
        yield (buffer, stripe), paper, sum(rates) / len(rates) / 1e9


@dataclass(frozen=True)
class Case:
    """A run of the paper with TAPIOCA and with MPI-IO."""

    name: str
    machine: Machine
    writes: Writes  # Of one file
    files: int  # Files that are written at the same time, one for each Pset of Mira
    # aggregators, buffer_bytes: Of one file
    aggregators: int
    buffer_bytes: int
    gain: float | None = None  # Published rate of TAPIOCA relative to MPI-IO

    def run(self, library: Literal["tapioca", "mpi-io"], **settings: Any) -> Outcome:
        """Simulate one of the files, with other `Settings` than those of the library."""
        if library == "tapioca":
            chosen = tapioca(self.aggregators, self.buffer_bytes, **settings)
        else:
            driver = STRIPED if self.machine.storage.targets > 1 else PARTS
            chosen = mpi_io(self.aggregators, self.buffer_bytes, **(driver | settings))
        return simulate(self.writes, self.machine, chosen)

    def GB_per_s(self, outcome: Outcome) -> float:
        """Return the rate of all files."""
        return self.files * outcome.bytes_per_s / 1e9

    def share_of_peak(self, outcome: Outcome) -> float:
        """Return the rate relative to that of all targets."""
        return outcome.bytes_per_s / self.machine.storage.peak_bytes_per_s


def microbenchmark(machine: Literal["mira", "theta"], task_bytes: int = MIB) -> Case:
    """Return a case of figure 9 or 10: 1,024 nodes of Mira, or 512 of Theta."""
    made = read_machine(machine)
    if machine == "mira":
        tasks = PSET_NODES * made.tasks_per_node
        gain, files, aggregators, buffer_mib = 1.0, 8, 32, 32
    else:
        tasks = 512 * made.tasks_per_node
        gain, files, aggregators, buffer_mib = 2.0, 1, 48, 8
    name = f"microbenchmark, {machine}, {task_bytes / MIB:.2g} MiB a task"
    return Case(name, made, side_by_side(tasks, task_bytes), files, aggregators, buffer_mib * MIB, gain)


def hacc_io(
    machine: Literal["mira", "theta"], nodes: int, particles: int, layout: Layout, gain: float | None = None
) -> Case:
    """Return a case of figures 11 to 14: HACC-IO on 1,024 or more nodes.

    Mira has 16 aggregators a Pset and one file for each Pset. Theta has 192 aggregators on 1,024 nodes and
    384 on 2,048. Buffers have 16 MiB, and so have the stripes of Theta.
    """
    made = read_machine(machine)
    if machine == "mira":
        files, tasks, aggregators = nodes // PSET_NODES, PSET_NODES * made.tasks_per_node, 16
    else:
        made = made.with_storage(stripe_bytes=16 * MIB)
        files, tasks, aggregators = 1, nodes * made.tasks_per_node, 192 * nodes // 1024
    name = f"HACC-IO, {machine}, {nodes:,} nodes, {particles:,} particles, {layout.upper()}"
    return Case(name, made, hacc(tasks, particles, layout), files, aggregators, 16 * MIB, gain)


def gains() -> list[Case]:
    """Return the cases for which the paper has a factor over MPI-IO."""
    return [
        microbenchmark("mira"),
        microbenchmark("theta", int(3.6 * MIB)),
        hacc_io("mira", 1024, 25_000, "aos", 12),
        hacc_io("theta", 1024, 25_000, "aos", 7),
        hacc_io("theta", 1024, 25_000, "soa", 7),
        hacc_io("theta", 2048, 100_000, "aos", 4),
    ]


def sweep(machine: Literal["mira", "theta"], nodes: int = 1024) -> Iterator[tuple[int, Layout, Case]]:
    """Yield the cases of a figure: 5,000 to 100,000 particles in both layouts."""
    layouts: tuple[Layout, ...] = ("aos", "soa")
    for particles in PARTICLES:
        for layout in layouts:
            yield particles, layout, hacc_io(machine, nodes, particles, layout)


def placements(case: Case, random_seeds: int = 20) -> dict[str, float]:
    """Return the sum of C1 + C2 over the aggregators, seconds, by strategy.

    For random placement it is the mean over seeds.
    """
    found = {}
    for strategy in STRATEGIES:
        seeds = range(random_seeds if strategy == "random" else 1)
        costs = [case.run("tapioca", strategy=strategy, seed=seed).placements[0].cost_s for seed in seeds]
        found[strategy] = sum(costs) / len(costs)
    return found
