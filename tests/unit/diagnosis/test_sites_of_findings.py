"""A finding names the places in the program that led to the calls it concerns."""

from __future__ import annotations

import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

import ensembles as en
from ensembles.diagnosis.call_sites import with_sites
from ensembles.diagnosis.diagnose import DiagnosisPass
from ensembles.diagnosis.finding import Finding, Where

HELD = Path(__file__).parents[2] / "corpus" / "runs"


@pytest.fixture
def run(tmp_path: Path) -> en.Run:
    with tarfile.open(HELD / "flights-ompio.tar.xz") as archive:
        archive.extractall(tmp_path)
    return en.open(tmp_path / "flights-ompio")


def finding(**where: object) -> Finding:
    found = Where(tasks=2, ranks=((0, 1),), **where)
    return Finding("small-requests", "warning", 0.9, found, {}, (), "fewer", None, "small")


def test_sites_are_those_of_the_calls_of_the_finding(run: en.Run) -> None:
    # The program posts its writes at one place; what MPI-IO does for them belongs to it.
    writes = with_sites(run, finding(op="write", layer="posix")).where
    assert writes.sites == (("overlap+0x1321", 1.0),)
    assert str(writes).endswith("; called from overlap+0x1321 (100 %)")
    assert writes.to_json()["sites"] == [{"label": "overlap+0x1321", "share": 1.0}]
    both = with_sites(run, finding(layer="mpiio", calls=("MPI_File_iwrite_at", "MPI_File_iread_at")))
    assert dict(both.where.sites) == {"overlap+0x1321": 0.5, "overlap+0x1296": 0.5}


def test_sites_follow_files_and_times(run: en.Run) -> None:
    reads = run.select(op="read", layer="mpiio")
    first_s = int(reads.start.min()) * 1e-9
    where = finding(op="read", files=("/srv/app/flights.dat",), times_s=(first_s, first_s + 1)).where
    named = with_sites(run, replace(finding(), where=where)).where.sites
    assert named == (("overlap+0x1296", 1.0),)


class _OneFinding:
    ID, NEEDS = "small-requests", {}

    def preconditions(self, run: en.Run) -> None:
        pass

    def evaluate(self, run: en.Run, summaries: object) -> list[Finding]:
        return [finding(op="write")]


def test_diagnose_adds_the_sites(run: en.Run) -> None:
    (found,) = DiagnosisPass(run, (_OneFinding(),)).evaluate(None).findings
    assert found.where.sites == (("overlap+0x1321", 1.0),)
