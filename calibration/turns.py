"""How often nodes are said to be served one after the other, where they are and where they are not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibration.page import say, show
from calibration.workers import in_order
from ensembles.structure.turns import LEVEL, p_of_turns, turns_of

NODES = (8, 12, 32, 192)
PHASES = (1, 5, 44)
TASKS_PER_NODE = 4
STEP_NS = 60_000_000

Ends = Callable[[np.random.Generator, int], np.ndarray]
"""From the number of nodes to when each of them ends, in ns."""

APART: dict[str, Ends] = {
    "uniform": lambda rng, nodes: STEP_NS * nodes * rng.random(nodes),
    "exponential": lambda rng, nodes: STEP_NS * nodes / 4 * rng.standard_exponential(nodes),
    "log-normal, sd 1": lambda rng, nodes: STEP_NS * nodes / 4 * rng.lognormal(0, 1, nodes),
    "two modes": lambda rng, nodes: (
        STEP_NS * np.where(rng.random(nodes) < 0.4, nodes, nodes / 5) * rng.lognormal(0, 0.1, nodes)
    ),
}


def in_turns(jitter: float) -> Ends:
    """Return ends in turns, whose steps vary by this part of their mean (gamma distribution)."""

    def ends(rng: np.random.Generator, nodes: int) -> np.ndarray:
        steps = rng.gamma(1 / jitter**2, STEP_NS * jitter**2, nodes)
        found: np.ndarray = rng.permutation(np.cumsum(steps))
        return found

    return ends


TURNS = {f"steps that vary by {share:.0%}": in_turns(share) for share in (0.1, 0.3, 0.45, 0.6)}
CASES = {**APART, **TURNS}


def found_in(what: str, nodes: int, phases: int, times: int) -> float:
    """Return in which share of runs turns are significant."""
    rng = np.random.default_rng(40_000 + nodes + phases)
    unit = np.repeat(np.arange(nodes), TASKS_PER_NODE)
    size = np.full(len(unit), 1 << 16)
    significant = 0
    for _ in range(times):
        tested = []
        for _ in range(phases):
            start = rng.integers(0, STEP_NS // 10, len(unit))
            end = start + STEP_NS // 20 + CASES[what](rng, nodes)[unit].astype(np.int64)
            tested.append(turns_of(unit, start, end, size))
        known = [turns for turns in tested if turns is not None]
        significant += bool(known) and p_of_turns(known) <= LEVEL
    return significant / times


def main(quick: bool = False) -> None:
    """Print how often turns are found: without turns, and with steps that vary."""
    times = 50 if quick else 500
    say(
        f"Runs in which turns are significant (p ≤ {LEVEL}), {times} a cell, of nodes with {TASKS_PER_NODE} "
        "tasks that begin together. Without turns, the goal is 1 % at most."
    )
    headers = ("ends of nodes", "phases", *(f"{nodes} nodes" for nodes in NODES))
    for cases in (APART, TURNS):
        rows = [(what, phases) for what in cases for phases in PHASES]
        wanted = [(what, nodes, phases, times) for what, phases in rows for nodes in NODES]
        cells = list(in_order(found_in, wanted))
        width = len(NODES)
        show(
            [
                [*row, *(f"{share:.1%}" for share in cells[width * at : width * (at + 1)])]
                for at, row in enumerate(rows)
            ],
            headers,
        )
