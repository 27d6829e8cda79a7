"""``ensio diagnose``, as a person starts it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from commands_here import executed as ensio
from matrices import FileSystem, Matrices, run_matrices, write_run

import ensembles as en
from ensembles.diagnosis.diagnose import DiagnosisPass
from ensembles.diagnosis.finding import Finding, Where
from ensembles.run.collect import collect
from ensembles.viz.report.data import ReportData
from ensembles.viz.report.page import write_report

pytestmark = pytest.mark.slow

FAULTY = FileSystem(fault=1.0)


def told(*arguments: str | Path) -> dict:
    done = ensio("diagnose", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("faulty") / "run"
    return write_run(run_matrices(Matrices(), 12, FAULTY), folder)


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("healthy") / "run"
    return write_run(run_matrices(Matrices(), 12, FileSystem()), folder)


def test_the_json_has_the_promised_keys(faulty):
    found = told(faulty)
    (finding,) = (finding for finding in found["findings"] if finding["severity"] != "note")
    keys = ("id", "severity", "confidence", "where", "evidence", "advice", "gain_s", "share_s", "symptoms")
    assert set(finding) >= set(keys)
    assert finding["id"] == "strided-readahead"
    assert finding["where"]["phases"] == [2]
    assert finding["where"]["ordinals"] == [[4, 8]]
    assert finding["where"]["files"] == ["/scratch/matrices.1"]
    assert finding["where"]["ranks"] == "0-11"
    low, high = finding["gain_s"]
    assert 0 < low <= high
    assert all(check["holds"] for check in finding["evidence"]["checks"])
    assert "strided-readahead" in found["examined"]


def test_the_text_names_the_cause_and_the_remedy(faulty):
    done = ensio("diagnose", faulty)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split("\n\n")[1].startswith("critical: strided-readahead")
    assert "read-ahead" in done.stdout.partition("advice")[2]


def test_a_healthy_run_has_no_finding_and_the_text_says_what_was_looked_for(healthy):
    assert [finding for finding in told(healthy)["findings"] if finding["severity"] != "note"] == []
    done = ensio("diagnose", healthy)
    assert (done.returncode, done.stderr) == (0, "")
    assert "strided-readahead" in ensio("diagnose", healthy, "--verbose").stdout
    assert "warning" not in done.stdout
    assert "critical" not in done.stdout


def test_processes_and_trace_h5_give_the_same_answer(faulty, tmp_path):
    whole = told(faulty)
    shared = told(faulty, "--workers", "2")
    assert shared["findings"] == whole["findings"]
    result = tmp_path / "trace.h5"
    collect(str(faulty), str(result))
    assert told(result)["findings"] == whole["findings"]


@pytest.mark.parametrize("mode", ["profile", "tail"])
def test_runs_that_keep_not_every_call_are_not_examined_and_it_says_why(mode, tmp_path):
    folder = write_run(run_matrices(Matrices(), 4, FAULTY), tmp_path / "run", mode=mode)
    found = told(folder)
    assert (found["findings"], found["examined"]) == ([], [])
    (entry,) = (entry for entry in found["not_examined"] if entry["id"] == "strided-readahead")
    assert mode in entry["reason"]
    assert "ensio run --mode trace" in entry["reason"]
    assert entry["reason"] in " ".join(ensio("diagnose", folder, "--verbose").stdout.split())
    assert f"0 causes examined, {len(found['not_examined'])} not" in ensio("diagnose", folder).stdout


def test_reads_without_a_place_are_not_examined_and_it_says_why(tmp_path):
    folder = write_run(run_matrices(Matrices(), 4, FAULTY), tmp_path / "run", offsets=False)
    (entry,) = (each for each in told(folder)["not_examined"] if each["id"] == "strided-readahead")
    assert "offset" in entry["reason"]


def test_a_run_without_reads_has_no_finding_and_is_not_clean_of_slow_reads(tmp_path):
    folder = write_run(run_matrices(Matrices(phases="w"), 4, FAULTY), tmp_path / "run")
    found = told(folder)
    assert [finding for finding in found["findings"] if finding["severity"] != "note"] == []
    assert "strided-readahead" not in found["examined"]
    reasons = {each["id"]: each["reason"] for each in found["not_examined"] if not each["applies"]}
    assert reasons["strided-readahead"] == "no read was recorded"


def test_what_cannot_be_read_is_one_sentence_and_exit_2(tmp_path):
    done = ensio("diagnose", tmp_path / "nothing")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1


def test_memory_that_does_not_hold_a_task_leaves_it_out_and_says_so(tmp_path, monkeypatch):
    from ensembles.passes.memory import Budget

    folder = write_run(run_matrices(Matrices(), 6, FAULTY), tmp_path / "run")
    monkeypatch.setattr(Budget, "held_events", 20)
    monkeypatch.setattr(Budget, "chunk_events", 8)
    found = en.diagnose(en.open(folder))
    assert found.findings == ()
    assert any(note.startswith("6 tasks made more calls") for note in found.notes)


@pytest.mark.parametrize("workers", [None, 2])
def test_findings_of_the_pass_of_a_report_are_those_of_a_pass_of_their_own(faulty, workers):
    run = en.open(faulty, workers=workers)
    examination = DiagnosisPass(run)
    summaries, group = ReportData.from_run(run, examination.requests)
    expected = en.diagnose(en.open(faulty))
    assert len(expected.findings) == 1
    assert examination.evaluate(group).to_json() == expected.to_json()
    alone, _ = ReportData.from_run(en.open(faulty))
    assert {call: each.count for call, each in summaries.table.totals.items()} == {
        call: each.count for call, each in alone.table.totals.items()
    }


def test_the_report_has_the_findings_and_a_healthy_one_no_such_section(faulty, healthy, tmp_path):
    for folder, expected in ((faulty, True), (healthy, False)):
        page = tmp_path / "report.html"
        write_report(en.open(folder), page)
        text = page.read_text()
        assert ("No finding" in text) != expected
        assert ("critical: strided-readahead" in text) == expected


def test_notes_that_cannot_matter_are_one_line(healthy):
    found = en.diagnose(en.open(healthy))
    small, large = (
        Finding(
            id=name,
            confidence=0.9,
            where=Where(),
            evidence={},
            checks=(),
            advice="",
            gain_s=(0.0, share * found.run_s),
            title=f"the title of {name}",
        )
        for name, share in ((found.examined[1], 0.019), (found.examined[2], 0.03))
    )
    text = str(replace(found, findings=(large, small)))
    assert f"Too small to matter (--verbose): {small.id}" in text
    assert small.title not in text
    assert large.title in text
    assert small.title in str(replace(found, findings=(large, small)).in_full())
    words = " ".join(str(replace(found, findings=(small,))).split())
    assert "9 % waiting for the last task of each phase" in words
    assert "No finding but the waiting above" in words
