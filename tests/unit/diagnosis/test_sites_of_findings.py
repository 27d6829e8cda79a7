"""A finding names the places in the program that led to the calls it concerns."""

from __future__ import annotations

import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from arrays_of import arrays_of

import ensembles as en
from ensembles.diagnosis.call_sites import with_sites
from ensembles.diagnosis.diagnose import DiagnosisPass
from ensembles.diagnosis.evidence import ROW, CallsOfRows, Evidence
from ensembles.diagnosis.finding import Finding, Where
from ensembles.model.calls import OPS
from ensembles.run.selection import Selection
from ensembles.summaries.bysite import SelectedSites

HELD = Path(__file__).parents[2] / "corpus" / "runs"


@pytest.fixture
def run(tmp_path: Path) -> en.Run:
    with tarfile.open(HELD / "flights-ompio.tar.xz") as archive:
        archive.extractall(tmp_path)
    return en.open(tmp_path / "flights-ompio")


def finding(**where: object) -> Finding:
    found = Where(tasks=2, ranks=((0, 1),), **where)
    return Finding("small-requests", 0.9, found, {}, (), "fewer", None, "small")


def test_sites_are_those_of_the_calls_of_the_finding(run: en.Run) -> None:
    # The program posts its writes at one place; what MPI-IO does for them belongs to it.
    writes = with_sites(run, [finding(op="write", layer="posix")])[0].where
    assert writes.sites == (("overlap+0x1321", 1.0),)
    assert str(writes).endswith("; called from overlap+0x1321 (100 % of the time)")
    assert writes.to_json()["sites"] == [{"label": "overlap+0x1321", "share": 1.0}]
    (both,) = with_sites(run, [finding(layer="mpiio", calls=("MPI_File_iwrite_at", "MPI_File_iread_at"))])
    assert dict(both.where.sites).keys() == {"overlap+0x1321", "overlap+0x1296"}
    assert sum(share for _, share in both.where.sites) == pytest.approx(1)


def test_sites_follow_files_and_times(run: en.Run) -> None:
    reads = run.select(op="read", layer="mpiio")
    first_s = int(reads.start.min()) * 1e-9
    where = finding(op="read", files=("/srv/app/flights.dat",), times_s=(first_s, first_s + 1)).where
    named = with_sites(run, [replace(finding(), where=where)])[0].where.sites
    assert named == (("overlap+0x1296", 1.0),)


class _OneFinding:
    ID, NEEDS, is_of_sums = "small-requests", {}, False

    def preconditions(self, run: en.Run) -> None:
        pass

    def evaluate(self, run: en.Run, summaries: object) -> list[Finding]:
        return [finding(op="write")]


def test_diagnose_adds_the_sites(run: en.Run) -> None:
    (found,) = DiagnosisPass(run, (_OneFinding(),)).evaluate(None).findings
    assert found.where.sites == (("overlap+0x1321", 1.0),)


def test_findings_share_a_pass(run: en.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    passes = []
    summarize = en.Run.summarize

    def counted(self: en.Run, *arguments: object, **options: object) -> object:
        passes.append(arguments)
        return summarize(self, *arguments, **options)

    monkeypatch.setattr(en.Run, "summarize", counted)
    several = [finding(op="write", layer="posix"), finding(op="read"), finding(op="close"), finding()]
    named = with_sites(run, several)
    assert len(passes) == 1
    monkeypatch.undo()
    for each, wanted in zip(named, several, strict=True):
        where = wanted.where
        totals = run.by_site(op=where.op or [op for op in OPS if op != "wait"], layer=where.layer)
        every_ns = sum(site.time_ns for site in totals)
        shares = {
            run.info.label_of_site(site.number): site.time_ns / every_ns for site in totals if site.number
        }
        assert each.where.sites
        assert all(shares[label] == pytest.approx(share) for label, share in each.where.sites)
        assert len(each.where.sites) == min(3, sum(share >= 0.05 for share in shares.values()))


def test_parts_of_a_run_add_up(run: en.Run) -> None:
    wanted = [Selection.parse(op=op).for_run(run) for op in ("read", "write")]
    whole, first, second = (SelectedSites(wanted) for _ in range(3))
    whole.add(run.events)
    first.add(run.events[:7])
    second.add(run.events[7:])
    first.merge(second)
    assert first.counts == whole.counts
    for name, column in arrays_of(whole).items():
        assert (column == arrays_of(first)[name]).all()


def test_places_are_of_the_rows_of_a_finding_and_not_of_all_calls_of_its_functions(run: en.Run) -> None:
    """Rows name phases, tasks, sizes and depths: of the functions of both places, here only the reads."""
    rows = run.summarize(Evidence.for_run).calls.columns()
    op = np.array([call.op for call in run.calls])[rows["call"]]
    names = tuple(sorted({run.calls[number].name for number in np.unique(rows["call"]).tolist()}))
    every = np.stack([rows[name] for name in ROW])
    both, reads = (
        replace(finding(calls=names), rows=every[:, chosen])
        for chosen in (np.isin(op, ("read", "write")), op == "read")
    )
    named = with_sites(run, [both, reads])
    assert dict(named[0].where.sites).keys() == {"overlap+0x1321", "overlap+0x1296"}
    assert named[1].where.sites == (("overlap+0x1296", 1.0),)
    # Each row selects as many calls as it has, of all sizes, phases and depths.
    for number in range(every.shape[1]):
        only = CallsOfRows(Selection(), every[:, [number]], run.phases)
        assert int(only.mask(run.events).sum()) == rows["n"][number]


def test_calls_inside_functions_that_a_finding_does_not_concern_name_no_place(run: en.Run) -> None:
    rows = run.summarize(Evidence.for_run).calls.columns()
    data = [call.layer == "posix" and call.op in ("read", "write") for call in run.calls]
    posix = np.array(data)[rows["call"]]
    inside = np.stack([rows[name][posix & (rows["depth"] > 0)] for name in ROW])
    assert inside.shape[1]
    found = replace(finding(), rows=inside, not_inside=("MPI_File_iread_at",))
    assert with_sites(run, [found])[0].where.sites == (("overlap+0x1321", 1.0),)
