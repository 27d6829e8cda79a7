"""A change of what kept summaries mean needs a new version, so that no result of an older one is taken."""

import json
from functools import partial
from hashlib import blake2b
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from arrays_of import arrays_of

from ensembles.answers.ordinals import Operations, OrdinalSummary, SizesOfOrdinals
from ensembles.diagnosis.evidence import Evidence
from ensembles.diagnosis.file_uses import FileUses
from ensembles.ensemble.main_ensemble import CallGroups
from ensembles.model.events import Call, Events
from ensembles.model.layouts import Layouts
from ensembles.model.lustre import Component, Striping
from ensembles.model.regions import RegionTable
from ensembles.passes.group import SummaryRequest
from ensembles.passes.kept import VERSION, is_kept, key_of, restore, to_bytes
from ensembles.passes.summary import Summary, ignoring_run
from ensembles.run.information import sums_requests
from ensembles.run.selection import Selection
from ensembles.structure.access.uses import IoCalls
from ensembles.structure.phases.barriers import Barriers, MessageStarts
from ensembles.structure.phases.critical_path import CriticalIo, CriticalTime
from ensembles.structure.phases.gap_occupancy import GapOccupancy
from ensembles.structure.phases.gap_rule import TopLevelCalls
from ensembles.structure.phases.inner_waits import SyncTime
from ensembles.structure.phases.late_calls import TimeInCalls
from ensembles.structure.phases.result import Phases
from ensembles.structure.phases.sampled_ranks import CallStarts, _StartCounts
from ensembles.structure.phases.table import PhaseTable
from ensembles.structure.rates import MovedSpans
from ensembles.structure.strides import StridedReads
from ensembles.summaries.active_time import ActiveTime, IoUnion
from ensembles.summaries.bysite import BySite, SitesByDuration
from ensembles.summaries.calltable import CallTable
from ensembles.summaries.cells import CellSummary
from ensembles.summaries.collective_steps import CollectiveEntries, CollectiveSteps, CollectiveTime
from ensembles.summaries.duration_cube import DurationCube
from ensembles.summaries.failed_calls import FailedCalls
from ensembles.summaries.histogram import LogHistogram
from ensembles.summaries.layer_traffic import LayerTraffic
from ensembles.summaries.longest_calls import DiagramCalls
from ensembles.summaries.moments import CallMoments
from ensembles.summaries.open_time import OpenTime
from ensembles.summaries.phasecounts import CountsOfSeveral, PhaseCounts
from ensembles.summaries.pyramid import Pyramid
from ensembles.summaries.ranktable import RankTable
from ensembles.summaries.raster import Raster
from ensembles.summaries.rate import RateCurve
from ensembles.summaries.regiontimes import RegionTimes
from ensembles.summaries.runtotals import EventCount, LayerTimes, RunTotals
from ensembles.summaries.sizes import Requests, SizeTable
from ensembles.summaries.target_load import TargetLoad
from ensembles.summaries.totals_by import TotalsBy
from ensembles.viz.common.task_order import TaskTimes

DIGESTS = Path(__file__).with_name("kept_digests.json")

CALLS = (
    Call("unknown", "posix", "meta"),
    Call("open", "posix", "open"),
    Call("pwrite", "posix", "write"),
    Call("pread", "posix", "read"),
    Call("close", "posix", "close"),
    Call("MPI_File_write_at_all", "mpiio", "write"),
    Call("MPI_Barrier", "mpisync", "wait"),
)
FILES = ["", "/a", "/b"]
RANKS, ROUNDS = 4, 60
RUN = SimpleNamespace(calls=CALLS, files=FILES)


def events() -> Events:
    """Calls of four ranks, which meet after each round: open, collective write, read, close, barrier."""
    rows = []
    for rank in range(RANKS):
        for number in range(ROUNDS):
            at, long = 10_000_000 * number + 1_000 * rank, 1_000 + 37 * ((7 * number + 3 * rank) % 50)
            size, file = 4096 << (number % 3), 1 + number % 2
            rows += [
                (rank, 1, 0, 0, file, -1, 0, 0, at, 500),
                (rank, 2, 1, 2, file, size * number, size, size, at + 2_000, long),
                (rank, 5, 0, 0, file, size * number, size, size, at + 1_000, long + 3_000),
                (rank, 3, 0, 0, file, 2 * size * number, size, size - number, at + 200_000, 2 * long),
                (rank, 4, 0, 0, file, -1, 0, 0, at + 300_000, 700),
                (rank, 6, 0, 0, 0, -1, 0, 0, at + 400_000, 50_000 - 1_000 * rank),
            ]
    names = ("rank", "call", "depth", "carried", "file", "offset", "requested", "moved", "start", "duration")
    columns = dict(zip(names, np.array(rows, np.int64).T, strict=True))
    columns |= {"thread": columns["rank"] * 0, "error": columns["rank"] * 0}
    return Events(columns, CALLS, FILES)


PHASES = Phases.between("steps", 1.0, np.array([200_000_000, 400_000_000]), [np.array([0, 3, 5]) * 10**8])
CUTS = np.array([150_000_000, 350_000_000])
MADE = {
    ActiveTime: ActiveTime,
    Barriers: Barriers,
    BySite: BySite,
    CallGroups: CallGroups,
    CallMoments: CallMoments,
    CallStarts: partial(CallStarts, CUTS),
    CallTable: CallTable,
    CellSummary: partial(CellSummary, CALLS, FILES),
    CollectiveSteps: CollectiveSteps,
    CollectiveEntries: CollectiveEntries,
    CollectiveTime: CollectiveTime,
    CountsOfSeveral: lambda: CountsOfSeveral([PhaseCounts(CUTS), PhaseCounts(CUTS, keep_odd=True)]),
    CriticalIo: partial(CriticalIo, PHASES, unions=True),
    CriticalTime: partial(CriticalTime, PHASES),
    DiagramCalls: partial(DiagramCalls, 20, CALLS, FILES),
    DurationCube: partial(DurationCube, RANKS, (0, 600_000_000), np.arange(300)),
    EventCount: EventCount,
    Evidence: partial(Evidence, PHASES, np.array([[0, 0, 0, 0], [4096, 2, 1, 3], [8192, 1, 0, 3]])),
    FailedCalls: FailedCalls,
    FileUses: partial(FileUses, PHASES),
    IoCalls: IoCalls,
    IoUnion: IoUnion,
    GapOccupancy: partial(GapOccupancy, CUTS - 50_000_000, CUTS),
    LayerTimes: LayerTimes,
    LayerTraffic: LayerTraffic,
    LogHistogram: LogHistogram,
    MessageStarts: MessageStarts,
    MovedSpans: MovedSpans,
    OpenTime: OpenTime,
    Operations: Operations,
    OrdinalSummary: partial(OrdinalSummary, "write", Selection(), Selection(), False, None, False),
    SizesOfOrdinals: partial(SizesOfOrdinals, "write", Selection(), Selection(), False, None, False),
    PhaseCounts: partial(PhaseCounts, CUTS),
    PhaseTable: partial(PhaseTable, PHASES),
    SyncTime: partial(SyncTime, PHASES),
    RankTable: partial(RankTable, CALLS),
    Pyramid: partial(Pyramid, RANKS, 4),
    Raster: partial(Raster, RANKS, 4, 64),
    RateCurve: partial(RateCurve, 64),
    RegionTimes: partial(RegionTimes, RegionTable.empty()),
    Requests: Requests,
    RunTotals: RunTotals,
    SitesByDuration: partial(SitesByDuration, [1500.0]),
    SizeTable: SizeTable,
    StridedReads: StridedReads,
    TargetLoad: partial(
        TargetLoad, Layouts({1: Striping((Component(0, None, 1 << 12, 2, targets=(0, 1)),))}), "posix"
    ),
    TaskTimes: partial(TaskTimes, RANKS),
    TopLevelCalls: TopLevelCalls,
    TimeInCalls: partial(TimeInCalls, PHASES, [(1, 3, 0), (2, 2, 1)]),
    TotalsBy: partial(TotalsBy, "file"),
    _StartCounts: partial(_StartCounts, CUTS),
}


def filled(kind: type[Summary]) -> Summary:
    """A summary of the events, added in two parts."""
    summary, whole = MADE[kind](), events()
    if kind is FailedCalls:
        failed = whole.call % 2 == 0
        more = {"moved": np.where(failed, -1, whole.moved), "error": failed * (2 + whole.rank % 2)}
        whole = Events(whole.columns | more, CALLS, FILES)
    middle = len(whole) // 2
    chunks = iter([whole]) if kind is StridedReads else iter([whole[:middle], whole[middle:]])
    if issubclass(kind, OrdinalSummary):
        from ensembles.passes.memory import Budget

        chunks = summary.prepare_chunks(chunks, Budget(1 << 30), "run")
    for chunk in chunks:
        summary.add(chunk)
    summary.finalize()
    return summary


def digest_of(summary: Summary) -> str:
    """Digest of all whole numbers and texts in a summary; real numbers depend on the machine by rounding."""
    digest = blake2b(digest_size=8)

    def add(value: object) -> None:
        if isinstance(value, np.ndarray):
            digest.update(f"{value.dtype}{value.shape}".encode())
            digest.update(b"" if value.dtype.kind == "f" else np.ascontiguousarray(value).tobytes())
        elif isinstance(value, Events):
            add(value.columns)
        elif is_kept(value):
            if hasattr(value, "condense"):
                value.condense()
            for name in type(value).results:
                digest.update(name.encode())
                add(getattr(value, name))
        elif isinstance(value, dict):
            for key, each in value.items():
                add(key)
                add(each)
        elif isinstance(value, (list, tuple, set)):
            digest.update(f"{len(value)}".encode())
            for each in sorted(value) if isinstance(value, set) else value:
                add(each)
        elif hasattr(value, "__dataclass_fields__"):
            for name in value.__dataclass_fields__:
                add(getattr(value, name))
        elif not isinstance(value, float):
            digest.update(repr(value).encode())

    add(summary)
    return digest.hexdigest()


@pytest.mark.parametrize("kind", MADE, ids=lambda kind: kind.__name__)
def test_each_summary_is_read_as_it_was_written(kind):
    written, found = filled(kind), MADE[kind]()
    restore(found, to_bytes(written, RUN), RUN)
    assert digest_of(found) == digest_of(written)
    expected, arrays = arrays_of(written), arrays_of(found)
    assert arrays.keys() == expected.keys()
    for name, column in expected.items():
        np.testing.assert_array_equal(arrays[name], column, name)


def test_no_kept_summary_is_left_out():
    def below(kind: type) -> set[type]:
        return {each for direct in kind.__subclasses__() for each in (direct, *below(direct))}

    assert callable(sums_requests)  # all modules of summaries are imported
    kept = {each for each in below(Summary) if each.__dict__.get("results")}
    assert {each for each in kept if each.__module__.startswith("ensembles")} == set(MADE)


def test_another_meaning_has_another_version():
    found = {kind.__name__: digest_of(filled(kind)) for kind in MADE}
    known = json.loads(DIGESTS.read_text())
    told = json.dumps({"version": VERSION, "digests": found}, indent=1)
    if known["version"] == VERSION:
        assert found == known["digests"], (
            "what kept summaries hold has changed: raise ensembles.passes.kept.VERSION, so that results of "
            f"the version before are not taken, and write the new digests into {DIGESTS.name}:\n{told}"
        )
    assert known["version"] == VERSION, f"write the digests of the new version into {DIGESTS.name}:\n{told}"


def test_results_of_one_kind_can_have_another_meaning(monkeypatch):
    before = key_of(SummaryRequest(FileUses.for_run))
    other = key_of(SummaryRequest(ignoring_run(EventCount)))
    monkeypatch.setattr(FileUses, "meaning", FileUses.meaning + 1)
    assert key_of(SummaryRequest(FileUses.for_run)) != before
    monkeypatch.setattr(EventCount, "meaning", 1)
    assert key_of(SummaryRequest(ignoring_run(EventCount))) != other
