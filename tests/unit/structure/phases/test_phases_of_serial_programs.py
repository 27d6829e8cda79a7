"""Phases of serial programs: equal runs have equally many, whatever else the machine does."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import ensembles as en
from ensembles.structure.phases.gap_rule import infer_phases

SEEDS = 200
EXAMPLES = Path(str(importlib.util.find_spec("darshan").origin)).parent / "examples"  # type: ignore[union-attr]


def pauses(rng: np.random.Generator, kind: str, calls: int) -> np.ndarray:
    """Times between the calls of a loop, ns."""
    if kind == "log-normal":
        return 50_000 * rng.lognormal(0, 1, calls)
    if kind == "loop":
        return 20_000 * rng.lognormal(0, 0.05, calls)
    if kind == "pareto":
        return 10_000 * (1 + rng.pareto(1.2, calls))
    if kind == "two scales":  # a library that makes several calls for each of the program
        return np.where(rng.random(calls) < 0.1, 3_000_000.0, 2_000.0) * rng.lognormal(0, 0.3, calls)
    raise ValueError(kind)


def run_of(seed: int, kind: str, calls: int, bursts: int = 1, gap_ns: float = 0.0) -> tuple[np.ndarray, ...]:
    """Rank, start, end and group of the calls of a serial run, a few of them preempted."""
    rng = np.random.default_rng(seed)
    pause = pauses(rng, kind, calls)
    preempted = rng.random(calls) < 2 / calls
    pause[preempted] += 4_000_000 * rng.integers(1, 3, int(preempted.sum()))
    if bursts > 1:
        pause[calls // bursts - 1 : -1 : calls // bursts] += gap_ns * rng.lognormal(0, 0.2, bursts - 1)
    duration = 5_000 * rng.lognormal(0, 0.5, calls)
    start = np.cumsum(pause + duration).astype(np.int64)
    return np.zeros(calls, np.int64), start, start + duration.astype(np.int64), np.zeros(calls, np.int64)


@pytest.mark.parametrize("calls", [40, 600, 5_000])
@pytest.mark.parametrize("kind", ["loop", "log-normal", "two scales"])
def test_a_serial_program_without_phases_has_one(kind: str, calls: int) -> None:
    found = [len(infer_phases(*run_of(seed, kind, calls)).cuts_ns) for seed in range(SEEDS)]
    assert found == [0] * SEEDS


def test_far_outliers_alone_seldom_divide_a_serial_program() -> None:
    """The largest values of a power law stand out at random; the level is `LEVEL`."""
    found = [len(infer_phases(*run_of(seed, "pareto", 2_000)).cuts_ns) > 0 for seed in range(5 * SEEDS)]
    assert sum(found) <= 3


@pytest.mark.parametrize("bursts", [2, 5, 40])
@pytest.mark.parametrize("kind", ["loop", "log-normal"])
def test_bursts_far_apart_are_phases_in_every_equal_run(kind: str, bursts: int) -> None:
    found = [
        len(infer_phases(*run_of(seed, kind, 200 * bursts, bursts, 1e9)).cuts_ns) + 1 for seed in range(SEEDS)
    ]
    assert found == [bursts] * SEEDS


def test_a_traced_java_program_has_no_thousands_of_phases() -> None:
    phases = en.open(EXAMPLES / "example_logs" / "dxt.darshan").phases
    assert phases is not None
    assert (phases.rule, phases.count) == ("none", 1)


def test_two_processes_that_happen_to_make_equally_many_calls_are_not_in_lockstep():
    """As of tar and its gzip: the only cut was at 43 µs, while dozens of gaps were wider than 1 ms."""
    rank = np.array([0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0])
    gap_ns = np.full(len(rank), 2_000_000)
    gap_ns[5] = 43_000  # here both have made three calls
    start = np.concatenate([[0], np.cumsum(10_000 + gap_ns)[:-1]])
    found = infer_phases(rank, start, start + 10_000, np.zeros(len(rank), int))
    assert (found.rule, len(found.cuts_ns)) == ("none", 0)
    # Where the gap is as wide as the others, equal numbers of calls count.
    gap_ns[5] = 20_000_000
    start = np.concatenate([[0], np.cumsum(10_000 + gap_ns)[:-1]])
    assert infer_phases(rank, start, start + 10_000, np.zeros(len(rank), int)).rule == "steps"
