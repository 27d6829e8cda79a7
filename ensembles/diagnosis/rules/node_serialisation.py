"""Rule ``node-serialisation``: nodes, or tasks, are served one after the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import EvidenceRule
from ensembles.diagnosis.finding import Check, NotApplicable, matters
from ensembles.diagnosis.limits import FAR
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.rules.one_run import CannotTell, transfers
from ensembles.diagnosis.storage_load import on_crowded_nodes
from ensembles.model.distinct import extents
from ensembles.model.units import bytes_text, count_text, seconds_text
from ensembles.structure.turns import LEAST_UNITS, LEVEL, Turns, largest_chance, p_of_turns, turns_of
from ensembles.summaries.keyed_sums import groups_of_rows


@dataclass(frozen=True)
class PhasesInTurns:
    """What phases show that nodes or tasks are served in turns."""

    unit: str  # ``"node"`` or ``"task"``
    rows: list[np.ndarray]  # Of each phase with even ends, the rows of its calls
    turns: list[Turns]  # Of each phase with even ends
    tested: int  # Phases that could show turns
    # chance, p: How often independent ends are even in a phase, and in so many of the phases
    chance: float
    p: float

    def bytes_per_phase(self, case: Case) -> np.ndarray:
        """Bytes that the calls of each phase move."""
        return np.array([case.rows["bytes"][rows].sum() for rows in self.rows])

    def median(self, name: str) -> float:
        """Median of an attribute of `turns`."""
        return float(np.median([getattr(each, name) for each in self.turns]))

    @property
    def length_s(self) -> float:
        """From the first start to the last end of each phase, added up."""
        return 1e-9 * sum(each.length_ns for each in self.turns)

    def title(self, run_s: float) -> str:
        """Return a sentence for people."""
        apart, whole = seconds_text(1e-9 * self.median("step_ns")), seconds_text(self.length_s)
        return (
            f"{self.median('units'):,.0f} {self.unit}s are served one after the other, {apart} apart, "
            f"in {count_text(len(self.turns), 'phase')}: {whole} of {seconds_text(run_s)}"
        )

    def time_ns(self, case: Case) -> np.ndarray:
        """Time of the rows of `Case.rows` that are served in turns; of others 0."""
        time_ns = np.zeros(len(case))
        for rows in self.rows:
            time_ns[rows] = case.rows["time_ns"][rows]
        return time_ns

    def saved_ns(self, case: Case, elsewhere: float) -> tuple[np.ndarray, np.ndarray]:
        """Bound what fewer turns save in each row: half of the turns are left, or one.

        Their bytes take what they take at a rate that other phases have.
        """
        time_ns = self.time_ns(case)
        low, high = np.zeros((2, len(case)))
        for rows, turns, moved in zip(self.rows, self.turns, self.bytes_per_phase(case), strict=True):
            bytes_ns = 1e9 * float(moved) / elsewhere
            low[rows] = np.maximum(time_ns[rows] / 2 - bytes_ns, 0.0)
            high[rows] = np.maximum(time_ns[rows] - max(bytes_ns, turns.step_ns), 0.0)
        return low, high

    def rate(self, case: Case) -> float:
        """Compute the rate in turns, B/s."""
        return float(self.bytes_per_phase(case).sum()) / self.length_s

    def rate_elsewhere(self, case: Case) -> float | None:
        """Compute the rate of the best other phase that moves as many bytes in the same direction, B/s."""
        first = self.rows[0][0]
        mine = np.unique(case.rows["phase"][np.concatenate(self.rows)])
        alike = _storage_calls(case) & (case.op == case.op[first])
        alike &= ~np.isin(case.rows["phase"], mine)
        if not alike.any():
            return None
        phase = np.unique(case.rows["phase"][alike], return_inverse=True)[1].reshape(-1)
        start_ns, end_ns = (case.rows[name][alike] for name in ("start_ns", "end_ns"))
        begin, end = extents(phase, start_ns, end_ns, int(phase.max()) + 1)
        moved = np.bincount(phase, case.rows["bytes"][alike])
        comparable = moved >= np.median(self.bytes_per_phase(case))
        rate = moved / (1e-9 * np.maximum(end - begin, 1))
        return float(rate[comparable].max()) if comparable.any() else None


def phases_in_turns(case: Case) -> PhasesInTurns | None:
    """Find the phases in which nodes are served in turns; else those in which tasks are.

    Of each phase, the reads or writes of one function and size class with most time are looked at, of which
    each task makes one. Tasks that share processors may take turns there, so that only their nodes count.
    """
    groups = _calls_of_phases(case)
    nodes = case.nodes_of_tasks()
    found = None if nodes is None else _in_turns(case, groups, nodes, "node")
    crowded = bool((on_crowded_nodes(case) >= 0).any())
    if found is None and not crowded:
        found = _in_turns(case, groups, np.arange(len(case.ranks)), "task")
    return found


def _storage_calls(case: Case) -> np.ndarray:
    """Find transfers of POSIX in phases: tasks leave a collective call in turns because of its messages."""
    rows: np.ndarray = transfers(case) & case.on_files & (case.rows["phase"] > 0)
    return rows


def _calls_of_phases(case: Case) -> list[np.ndarray]:
    """Return the rows of the calls of each phase that are looked at."""
    chosen = np.flatnonzero(_storage_calls(case))
    if not len(chosen):
        return []
    keys = [case.rows[name][chosen] for name in ("phase", "call", "size", "depth")]
    group, first = groups_of_rows(keys)
    once = np.bincount(group, case.rows["n"][chosen] != 1) == 0
    once &= np.bincount(group) >= LEAST_UNITS
    time_ns = np.bincount(group, case.rows["time_ns"][chosen]) * once
    best = np.lexsort((-time_ns, keys[0][first]))
    best = best[np.unique(keys[0][first][best], return_index=True)[1]]
    best = best[once[best]]
    order = np.argsort(group, kind="stable")
    begin = np.searchsorted(group[order], np.arange(len(first) + 1))
    return [chosen[order[begin[each] : begin[each + 1]]] for each in best.tolist()]


def _in_turns(case: Case, groups: list[np.ndarray], units: np.ndarray, unit: str) -> PhasesInTurns | None:
    names = ("start_ns", "end_ns", "bytes")
    looked = [
        (rows, turns_of(units[case.task[rows]], *(case.rows[name][rows] for name in names)))
        for rows in groups
    ]
    tested = [(rows, turns) for rows, turns in looked if turns is not None]
    even = [(rows, turns) for rows, turns in tested if turns.are_even]
    if not even:
        return None
    every = [turns for _, turns in tested]
    p = p_of_turns(every)
    if p > LEVEL:
        return None
    rows, turns = (list(each) for each in zip(*even, strict=True))
    return PhasesInTurns(unit, rows, turns, len(tested), largest_chance(every), p)


ADVICE = "it moves the same bytes in the same time; ensio modes shows its harmonics"

ADVICE_TURNS = (
    "let fewer tasks make larger requests: collective calls with collective buffering (MPI-IO hints "
    "romio_cb_write=enable, romio_cb_read=enable), and cb_nodes well below the number of nodes. Or give each "
    "node a file, or a region that begins at a block of the file system, so that nodes do not pass on the "
    "lock (token) of a shared file"
)


def _concerned(case: Case) -> np.ndarray:
    """Find transfers of tasks that share their node with others."""
    node = case.nodes_of_tasks()
    rows = transfers(case)
    rows &= len(case.ranks) > 1 if node is None else (np.bincount(node)[node] > 1)[case.task]
    return rows


_cannot_tell = CannotTell(_concerned, ADVICE, "one task a node")


def _find(case: Case) -> Remedy | None:
    found = phases_in_turns(case)
    elsewhere = None if found is None else found.rate_elsewhere(case)
    # Other phases move bytes so many times faster that these do not explain how long a turn takes.
    if found is None or (elsewhere is not None and elsewhere < FAR * found.rate(case)):
        _cannot_tell(case)
        return None
    title = found.title(case.run_s)
    if elsewhere is not None:
        return _remedy(case, found, elsewhere, title)
    if matters(at_most_s := case.most_s(found.time_ns(case)), case.run_s):
        raise NotApplicable(
            f"{title}; no other phase shows whether the storage moves these bytes faster: record a run with "
            "fewer and larger requests (collective buffering), and compare the runs (ensio compare)",
            at_most_s,
        )
    return None


def _remedy(case: Case, found: PhasesInTurns, elsewhere: float, title: str) -> Remedy:
    low, high = found.saved_ns(case, elsewhere)
    units, variation = int(found.median("units")), found.median("variation")
    begin, end, inside = (
        seconds_text(1e-9 * found.median(name)) for name in ("start_ns", "length_ns", "inside_ns")
    )
    checks = (
        Check(
            "not-by-chance",
            f"in {len(found.turns):,} of {found.tested:,} phases the gaps between the ends vary by "
            f"{variation:.2f} of their mean (median); independent ends are even in {found.chance:.2g} of all "
            f"phases: p = {found.p:.2g}",
        ),
        Check(
            "not-the-program",
            f"all {found.unit}s begin within {begin} and end over {end}"
            + (f", the tasks of one within {inside}" if found.unit == "node" else ""),
        ),
        Check(
            "not-the-bytes",
            f"each {found.unit} moves the same bytes, all together {bytes_text(found.rate(case))}/s; "
            f"in another phase {bytes_text(elsewhere)}/s",
        ),
    )
    evidence = {
        "units": units,
        "unit": found.unit,
        "step_s": 1e-9 * found.median("step_ns"),
        "length_s": found.length_s,
        "phases": len(found.turns),
        "phases_compared": found.tested,
        "variation": variation,
        "p": found.p,
        "bytes_per_s": found.rate(case),
        "bytes_per_s_elsewhere": elsewhere,
    }
    return Remedy(
        found.time_ns(case) > 0, (low + high) / 2, title, checks, evidence, low, high, advice=ADVICE_TURNS
    )


rule = EvidenceRule("node-serialisation", _find)
