"""Phases of runs of which not all calls are held: those of the whole run, and one answer for every caller."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from arrays_of import arrays_of
from oracles import numpy_gaps
from simulated import CALLS, NUMBERS, Program, ior_like
from synthetic_runs import synthetic_run

import ensembles as en
from ensembles.answers import info
from ensembles.api.run import Run
from ensembles.cli.main import main
from ensembles.ensemble import from_run
from ensembles.model.events import Events
from ensembles.model.filters import within_ranges
from ensembles.model.levels import MOST_PIECES
from ensembles.model.metadata import RunMetadata
from ensembles.model.regions import RegionTable
from ensembles.passes import executors
from ensembles.passes.damage import DamageReport
from ensembles.passes.executors import ThreadExecutor
from ensembles.passes.reading import RankSizes, ReadRequest
from ensembles.run import headline
from ensembles.run.collect import collect
from ensembles.structure.phases import detect, gap_occupancy
from ensembles.structure.phases.detect import detect_phases, find_phases
from ensembles.structure.phases.gap_occupancy import GapOccupancy


class EventsSource:
    """What a run of events in memory is read from, given in chunks of a few."""

    is_complete = is_checked = is_quick_to_open = True
    row_unit = 1

    def __init__(self, events: Events, chunk: int = 97) -> None:
        self._events, self._chunk = events, chunk
        tasks = int(events.rank.max()) + 1
        self.metadata = RunMetadata(
            tasks, tasks, 0, events.calls, list(events.files), [], [], mode="trace", clock_error_s=0.0
        )
        self.capacity, self.spool_identities = len(events), {}

    def kept(self, key: str) -> None:
        return None

    def rank_sizes(self) -> RankSizes:
        return RankSizes(*np.unique(self._events.rank, return_counts=True))

    def chunks(self, request: ReadRequest, damage: DamageReport):
        wanted = self._events
        if request.rows is not None:
            wanted = wanted[slice(*request.rows)]
        if request.ranks is not None:
            wanted = wanted[within_ranges(wanted.rank, request.ranks)]
        for low in range(0, len(wanted), self._chunk):
            yield wanted[low : low + self._chunk]

    def regions(self) -> RegionTable:
        return RegionTable.empty()


@pytest.fixture(autouse=True)
def _threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "_FEW_EVENTS", 0)
    monkeypatch.setattr(ThreadExecutor.__init__, "__defaults__", (3,))


def run_of(events: Events) -> Run:
    return Run("made", EventsSource(events))


def phases_of_both(events: Events, share: float = 0.25):
    """The phases of all calls, and those from a part of the ranks."""
    found = detect_phases(run_of(events), most_events=int(2 * share * len(events)) + 2)
    return find_phases(events), found


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_some_ranks_tell_the_phases_of_all(recorded: bool, seed: int) -> None:
    events, truth = ior_like(24, 300 + seed, phases=8, calls=4, recorded=recorded)
    whole, some = phases_of_both(events)
    assert (some.rule, some.count) == (whole.rule, whole.count) == ("barriers" if recorded else "steps", 8)
    io = truth >= 0
    np.testing.assert_array_equal(some.phase_index(events)[io], truth[io])
    assert ("detected in 6 of 24 tasks" in some.sentence) != recorded


def test_the_end_of_a_gap_is_where_the_last_of_all_ranks_stops() -> None:
    """Task 5 of 12 is slow in every phase, and none of those that are looked at."""
    program = Program(12, 5)
    for _ in range(6):
        program.io("pwrite", 3, spread=0.1)
        program.call("pwrite", 60_000_000, [5])
        program.meet(recorded=False)
        program.compute(40_000_000)
    events, truth = program.recorded()
    _, some = phases_of_both(events)
    assert "detected in 3 of 12 tasks" in some.sentence
    np.testing.assert_array_equal(some.phase_index(events), truth)


def test_moments_at_which_some_ranks_are_idle_and_the_others_are_not_part_nothing() -> None:
    """Tasks 0, 5 and 11 rest together between their writes, and the nine others write all the time."""
    program = Program(12, 9)
    looked_at = [0, 5, 11]
    others = [rank for rank in range(12) if rank not in looked_at]
    for _ in range(6):
        begin = program.now[looked_at].max()
        program.now[looked_at] = begin
        program.io("pwrite", 4, looked_at, spread=0.05)
        program.now[looked_at] = program.now[looked_at].max() + 200_000_000
    while program.now[others].min() < program.now[0]:
        program.io("pwrite", 1, others, typical_ns=30_000_000, spread=0.5, think_ns=100)
    events, _ = program.recorded()
    _, some = phases_of_both(events)
    assert "detected in 3 of 12 tasks" in some.sentence
    assert (some.rule, some.count) == ("none", 1)


def test_phases_without_io_between_barriers_have_no_number() -> None:
    program = Program(8, 21)
    for number in range(6):
        if number != 3:
            program.io("pwrite", 4, [7] if number == 4 else None)
        program.meet()
    events, _ = program.recorded()
    whole, some = phases_of_both(events)
    assert whole.count == some.count == 5
    np.testing.assert_array_equal(whole.phase_index(events), some.phase_index(events))


def test_a_run_whose_tasks_made_too_many_calls_says_so() -> None:
    events, _ = ior_like(2, 31, phases=4, calls=200)
    found = detect_phases(run_of(events), most_events=200)
    assert (found.rule, found.count, found.confidence) == ("none", 1, 0.0)
    assert "were not detected" in found.sentence
    assert (found.phase_index(events) == 1).all()


def test_without_io_of_some_ranks_the_others_are_asked() -> None:
    program = Program(8, 33)
    program.meet(name="MPI_Init")
    program.io("pwrite", 4, [1])
    program.meet(name="MPI_Finalize")
    events, _ = program.recorded()
    found = detect_phases(run_of(events), most_events=6)
    assert (found.rule, found.count) == ("none", 1)


@pytest.fixture(scope="module")
def run_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("long")
    synthetic_run(folder / "run", 12, 302, seed=21)
    collect(str(folder / "run"), str(folder / "trace.h5"))
    return folder


@pytest.mark.parametrize("name", ["run", "trace.h5"])
def test_ensembles_and_phases_number_phases_alike(
    run_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = en.open(run_path / name)
    writes = exact.select(op="write")
    assert set(writes.phase) == {2, 3, 4, 5, 6}
    monkeypatch.setattr(detect, "MOST_EVENTS", 1600)
    monkeypatch.setattr(from_run, "HELD_EVENTS", 0)
    monkeypatch.setattr(from_run, "SOME_EVENTS", 800)
    run = en.open(run_path / name)
    assert not run.reading.knows_phases
    first = run.ensemble(op="write", phase="3-4")
    assert first.n == np.count_nonzero((writes.phase == 3) | (writes.phase == 4))
    assert "detected in 2 of 12 tasks" in run.phases.sentence
    whole = run.ensemble(op="write").sample
    # The phases are those that are found without an ensemble, too.
    np.testing.assert_array_equal(run.phases.cuts_ns, detect_phases(en.open(run_path / name)).cuts_ns)
    np.testing.assert_array_equal(whole.phase, np.unique(writes.phase))
    for number in whole.phase.tolist():
        one = run.ensemble(op="write", phase=number)
        expected = writes.duration[writes.phase == number] * 1e-9
        assert one.n == len(expected) == whole.n[whole.phase == number][0]
        assert one.sample.mean_and_variance[0] == pytest.approx(expected.mean(), rel=1e-9)


@pytest.mark.parametrize("most", [2, 5, 8])
def test_where_phases_are_put_together_those_that_are_asked_for_are_exact(
    run_path: Path, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = en.open(run_path / "run").select(op="write")
    monkeypatch.setattr(from_run, "HELD_EVENTS", 0)
    monkeypatch.setattr(from_run, "MOST_PHASES", most)
    run = en.open(run_path / "run")
    whole = run.ensemble(op="write")
    assert whole.n == len(writes)
    assert len(whole.sample.phase) <= most
    assert any("were merged" in note for note in whole.notes)
    for number in np.unique(writes.phase).tolist():
        one = run.ensemble(op="write", phase=number)
        assert one.n == np.count_nonzero(writes.phase == number)


def busy_calls(seed: int, calls: int = 4000) -> Events:
    """Calls of two kinds, some nested, some of no duration, on whole ns."""
    random = np.random.default_rng(seed)
    start = np.sort(random.integers(-500, 100_000, calls))
    columns = dict.fromkeys(("thread", "offset", "requested", "moved", "error", "file"), np.zeros(calls))
    columns |= {"rank": random.integers(0, 40, calls), "depth": random.integers(0, 5, calls) // 4}
    columns |= {"call": random.choice([NUMBERS["pwrite"], NUMBERS["lseek"]], calls), "start": start}
    columns |= {"duration": random.choice([0, 1, 7, 300, 4000], calls, p=[0.2, 0.3, 0.3, 0.19, 0.01])}
    return Events(columns, CALLS, [""])


GAP_FROM = np.array([100, 5_000, 20_000, 20_050, 60_000, 99_000])
GAP_TO = np.array([101, 9_000, 20_000, 34_000, 60_127, 120_000])


@pytest.mark.parametrize("seed", range(3))
def test_compiled_gaps_equal_those_of_numpy(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    events = busy_calls(seed)
    shuffled = events[np.random.default_rng(seed).permutation(len(events))]
    compiled, merged, numpy = (GapOccupancy(GAP_FROM, GAP_TO) for _ in range(3))
    compiled.add(events)
    for part in range(3):
        other = GapOccupancy(GAP_FROM, GAP_TO)
        other.add(shuffled[part::3])
        merged.merge(other)
    monkeypatch.setattr(gap_occupancy._compiled, "mark_gaps", numpy_gaps.mark_gaps)
    numpy.add(events)
    for name, values in arrays_of(compiled).items():
        np.testing.assert_array_equal(values, arrays_of(numpy)[name], err_msg=name)
        np.testing.assert_array_equal(values, arrays_of(merged)[name], err_msg=name)


@pytest.mark.parametrize("calls", [0, 1, 5, 30])
@pytest.mark.parametrize("seed", range(5))
def test_the_widest_idle_part_of_a_gap_is_found_exactly(calls: int, seed: int) -> None:
    events = busy_calls(100 * calls + seed, calls)
    events = events[(events.depth == 0) & (events.call == NUMBERS["pwrite"])]
    low, high = 20_050, 34_000
    gaps = GapOccupancy(np.array([low]), np.array([high]))
    gaps.add(events)
    found = gaps.found(few=0)
    # From the definition, ns by ns; a call of no duration stops an idle part, too.
    idle = np.ones(high - low, bool)
    marks = {0, high - low}
    for start, end in zip(events.start.tolist(), events.end.tolist(), strict=True):
        idle[max(start - low, 0) : max(min(end, high) - low, 0)] = False
        marks |= {start - low} if low <= start < high else set()
    edges = np.unique([*marks, *(np.flatnonzero(np.diff(idle)) + 1)])
    widths = [b - a for a, b in itertools.pairwise(edges) if idle[a]]
    assert max(widths) > 2 * (high - low) / MOST_PIECES
    assert int(found[1][0] - found[0][0]) == max(widths)
    assert idle[found[0][0] - low : found[1][0] - low].all()


@pytest.mark.parametrize("length", [1, 2, 63, 64, 65, 1000, 10**6 + 1, 10**10])
@pytest.mark.parametrize("gaps", [1, 3000])
def test_cells_cover_a_gap_without_holes(length: int, gaps: int) -> None:
    low = np.arange(gaps) * 2 * length
    _, _, edge = gap_occupancy._cells(low, low + length)
    assert (edge[:, 0] == low).all()
    assert (edge[:, -1] == low + length).all()
    assert (np.diff(edge, axis=1) >= 0).all()
    assert edge.size <= 2 * gap_occupancy.ALL_CELLS
    # The finest are one ns wide.
    assert (edge == (low + length - 1)[:, None]).any(axis=1).all()


def test_a_gap_is_kept_where_few_ranks_are_in_io_throughout() -> None:
    columns = dict.fromkeys(("thread", "offset", "requested", "moved", "error", "file", "depth"), np.zeros(3))
    columns |= {"rank": np.arange(3), "call": np.full(3, NUMBERS["pwrite"])}
    columns |= {"start": np.array([0, 0, 600]), "duration": np.array([2000, 500, 2000])}
    gaps = GapOccupancy(np.array([100]), np.array([1000]))
    gaps.add(Events(columns, CALLS, [""]))
    assert len(gaps.found(few=0)[0]) == 0
    low, high = gaps.found(few=1)
    assert 500 <= low[0] < high[0] <= 600


def test_info_says_why_a_long_run_has_no_critical_path(
    run_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["info", str(run_path / "run")]) == 0
    known = capsys.readouterr().out
    assert "critical path" in known
    assert "no critical path" not in known
    for module in (headline, info):
        monkeypatch.setattr(module, "MOST_EVENTS", 1000)
    assert main(["info", str(run_path / "run")]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "no critical path for more than 1,000 calls: ensio phases shows who waited" in text
