"""What one screen of a diagnosis says besides its findings: what is undecided, and where the time is."""

from __future__ import annotations

import html
import json
from dataclasses import replace
from pathlib import Path

import pytest
from made_io import KIB, MIB, Made, found_ids, io_run
from made_spools import RUNNING, made_events, spool

import ensembles as en
from ensembles.answers.diagnose import DiagnosisAnswer, gain_of
from ensembles.cli.main import main
from ensembles.diagnosis.finding import Finding, NotApplicable, NotExamined, Where, refuse_if_it_matters
from ensembles.faces.words import sentence
from ensembles.structure.phases.late_calls import LateOutside


def words(text: str) -> str:
    return " ".join(text.split())


def test_what_could_cost_much_and_is_not_decided_stands_on_the_first_screen_and_in_the_report(
    tmp_path: Path,
) -> None:
    def large(rank: int) -> list[Made]:
        """Whatever else uses the disk could make these writes slow."""
        calls = []
        for step in range(6):
            calls += [Made("pwrite", 9_000 + 100 * rank, 16 * MIB, (step * 4 + rank) * 16 * MIB)]
            calls += [Made("MPI_Barrier", 300)]
        return calls

    found = en.diagnose(io_run(tmp_path / "a", [large(rank) for rank in range(4)]))
    refused = {each.id: each for each in found.not_examined if each.at_most_s is not None}
    assert refused, "the run has nothing undecided, and the test no subject"
    assert found.undecided
    assert all(each.at_most_s >= 0.1 * found.run_s for each in found.undecided)
    told = words(str(found))
    for each in found.undecided:
        assert each.id in told.split("could not be")[0]
    page = tmp_path / "report.html"
    assert main(["report", found.run, "-o", str(page)]) == 0
    text = html.unescape(page.read_text().replace("\xa0", " "))
    assert found.of_undecided
    for said in found.of_undecided:
        assert sentence(said) in text
    kept = {each["id"]: each["at_most_s"] for each in found.to_json()["not_examined"]}
    assert all(kept[name] == each.at_most_s for name, each in refused.items())


def test_signs_of_a_cause_come_with_their_reason_and_others_in_one_line() -> None:
    not_examined = (
        NotExamined("interference", "it could cost up to 8 s of this run: record it again", 8.0),
        NotExamined("small-requests", "it could cost up to 2 s of this run, or nothing", 2.0, True),
        NotExamined("cache-cliff", "it could cost up to 0.9 s of this run", 0.9),
        NotExamined("single-stripe", "the layout of the files is not known"),
    )
    found = DiagnosisAnswer("run", (), (), not_examined, run_s=10.0)
    assert [each.id for each in found.undecided] == ["small-requests", "interference"]
    assert [sentence(each) for each in found.of_undecided] == [
        "Not decided: small-requests: it could cost up to 2 s of this run, or nothing.",
        "One run alone does not show interference (up to 8.00 s).",
    ]


def test_what_one_run_does_not_show_costs_no_more_than_the_part_of_the_run_that_it_is_of() -> None:
    with pytest.raises(NotApplicable) as refusal:
        refuse_if_it_matters(1.9, 8.0, ": record it again", suspected=False)
    found = NotExamined.of("interference", refusal.value, 1.2)
    assert (found.at_most_s, found.reason) == (1.2, "it could cost up to 1.20 s of this run: record it again")


def test_a_best_estimate_that_is_the_most_is_said_once() -> None:
    gain = Finding("fewer-calls", 0.9, Where(), {}, (), "", (0.0, 1.12), "", share_s=1.119)
    assert sentence(gain_of(gain)) == "The run would be up to 1.12 s shorter"


def test_clean_is_said_of_causes_whose_calls_a_run_has(tmp_path: Path) -> None:
    """One task on one node: no other task or node is slower, and there are no calls of libraries."""
    calls = [Made("open", 20), *[Made("pwrite", 1000, MIB, n * MIB) for n in range(20)], Made("close", 5)]
    found = en.diagnose(io_run(tmp_path / "run", [calls]))
    without = {each.id: each.reason for each in found.not_examined if not each.applies}
    assert without["imbalance"] == "one task has no others to be compared with"
    assert without["node-serialisation"] == "all tasks are on one node"
    assert without["hdf5-filters"] == "no call of HDF5 was recorded"
    assert without["sync-per-write"] == "no sync was recorded"
    assert not set(without) & set(found.examined)
    assert {"small-requests", "close-cost", "metadata-storm"} <= set(found.examined)
    assert "record half the bytes for each node" in words(str(found))
    assert f"{len(found.examined)} causes examined, " in words(str(found))
    # The other tasks of a run can be compared.
    several = en.diagnose(io_run(tmp_path / "several", [calls] * 4))
    assert "node-serialisation" in {each.id for each in several.not_examined if not each.applies}
    assert "straggler-task" not in {each.id for each in several.not_examined if not each.applies}


def test_what_findings_explain_is_not_undecided(tmp_path: Path) -> None:
    calls = [Made("open", 20)]
    for number in range(64):
        calls += [Made("pwrite", 10, 4 * KIB, number * 4 * KIB), Made("fsync", 3_000)]
    found = en.diagnose(io_run(tmp_path / "a", [calls]))
    (sync,) = (each for each in found.findings if each.id == "sync-per-write")
    assert sync.gain_s is not None
    assert all(each.at_most_s >= sync.gain_s[1] for each in found.undecided)


def test_the_functions_of_most_time_are_named(tmp_path: Path) -> None:
    inside = [Made("pwrite", 500, MIB, 0)]
    calls = [Made("MPI_File_write_at", 600, MIB, 0, inside=inside), *[Made("fsync", 1_400)] * 3]
    calls += [Made("pread", 20, MIB, number * MIB) for number in range(10)]
    found = en.diagnose(io_run(tmp_path / "a", [calls]))
    # 4.2 ms of 5.0: the write inside that of MPI-IO counts once.
    (most,) = found.most_time
    assert (most.call, most.calls) == ("fsync", 3)
    assert most.share == pytest.approx(4.2 / 5.0)
    for text in (str(found), str(found.in_full())):
        assert "Time in I/O calls: 84 % in 3 calls of fsync" in words(text)
    # Of different sizes, the one that has most of the time is named: 40 of 48 ms.
    calls = [Made("pwrite", 5_000, 54 * KIB, 0)] * 8 + [Made("pwrite", 100, MIB, 0)] * 80
    different = en.diagnose(io_run(tmp_path / "b", [calls]))
    (most,) = different.most_time
    size = most.to_json()["of_size"]
    assert (size["calls"], size["mean_bytes"], size["mean_s"]) == (8, 54 * KIB, pytest.approx(0.005))
    said = "100 % in 88 calls of pwrite (83 % in 8 of 54.0 KiB, 5.00 ms each)"
    assert said in words(str(different))
    equal = en.diagnose(io_run(tmp_path / "c", [calls[:8]]))
    assert "100 % in 8 calls of pwrite of 54.0 KiB, 5.00 ms each" in words(str(equal))
    # Calls of libraries take longer with the calls inside, as ensio info states them.
    inside = [Made("MPI_File_write_at", 400, MIB, inside=[Made("pwrite", 5, MIB, 0)])] * 8
    around = en.diagnose(io_run(tmp_path / "d", [inside]))
    assert "395 µs each without inner calls" in words(str(around))


def test_files_that_are_read_once_from_their_start_are_no_jumps(tmp_path: Path) -> None:
    files = {number: f"/scratch/{number}" for number in range(1, 201)}
    calls = [Made("pread", 300, 4 * KIB, 0, number) for number in files]
    assert "seek-heavy" not in found_ids(io_run(tmp_path / "a", [calls], files))
    # The same reads in one file, from its end to its start, do jump.
    calls = [Made("pread", 300, 4 * KIB, (200 - number) * 40 * KIB) for number in files]
    run = io_run(tmp_path / "b", [calls])
    found = en.diagnose(run)
    named = {each.id for each in found.findings} | {each.id for each in found.undecided}
    assert "seek-heavy" in named


def test_the_cost_of_reads_that_are_small_and_jump_has_one_name(tmp_path: Path) -> None:

    def reads(rank: int) -> list[Made]:
        calls = []
        for step in range(6):
            places = range(127, -1, -1)
            calls += [
                Made("pread", 60 + place % 7, 4 * KIB, ((step * 128 + place) * 4 + rank) * 64 * KIB)
                for place in places
            ]
            calls.append(Made("MPI_Barrier", 10))
        return calls

    found = en.diagnose(io_run(tmp_path / "a", [reads(rank) for rank in range(4)]))
    assert [each.id for each in found.findings] == ["seek-heavy"]


def test_one_long_close_of_many_is_no_cost_of_each_close(tmp_path: Path) -> None:
    def closes(us: list[int]) -> list[Made]:
        calls = []
        for number, each in enumerate(us):
            calls += [Made("open", 20), Made("pwrite", 800, MIB, number * MIB), Made("close", each)]
        return calls

    once = en.diagnose(io_run(tmp_path / "a", [closes([100, 100, 100, 40_000, 100, 100])]))
    assert "close-cost" not in {each.id for each in once.findings}
    (reason,) = (each.reason for each in once.not_examined if each.id == "close-cost")
    assert "one of 6 closes takes most" in reason
    each = en.diagnose(io_run(tmp_path / "b", [closes([40_000] * 6)]))
    reasons = [entry.reason for entry in each.not_examined if entry.id == "close-cost"]
    assert not any("one of 6" in reason for reason in reasons)


def test_what_the_recorder_took_is_an_entry_and_no_gain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inner = [Made("H5Dread", 4_000, MIB, 0, inside=[Made("pread", 2, 64, 64 * n) for n in range(200)])] * 5
    small = [Made("pwrite", 0.03, 1, gap_us=0.05) for _ in range(100_000)]
    # 1,005 calls of 6 to 15 µs in 20 ms; 100,000 of 55 to 115 ns in 8 ms.
    for name, calls, how, least in (
        ("lines", inner, {"env.ENSIO_PYTHON_LINES": "1"}, "in all, 6.03 ms to 15.1 ms"),
        ("small", small, {"recorder": "1.0"}, "in all, 5.50 ms to 11.5 ms"),
    ):
        run = io_run(tmp_path / name, [calls], **how)
        diagnosis = en.diagnose(run)
        assert diagnosis.account is not None
        assert run.length_s < 0.03
        parts = [each for each in diagnosis.account.entries if each.id.startswith("recorder")]
        assert [each.is_in_io for each in parts] == [True, False]
        took_s = sum(each.time_s for each in parts)
        assert took_s > diagnosis.account.run_s / 2
        # The time in I/O is that of the calls, as every other command has it.
        outer_s = float(run.events.duration[run.events.depth == 0].sum()) * 1e-9
        assert diagnosis.account.io_s == pytest.approx(outer_s)
        left_s = diagnosis.account.run_s - took_s
        assert all(each.gain_s is None or each.gain_s[1] <= left_s for each in diagnosis.findings)
        assert main(["info", str(tmp_path / name)]) == 0
        assert least in words(capsys.readouterr().out)
        assert words(str(diagnosis)).startswith("The recorder itself takes")
    other = en.diagnose(io_run(tmp_path / "of-another-tool", [small]))
    assert other.account is not None
    assert not {"recorder", "recorder-in-calls"} & {each.id for each in other.account.entries}


def test_messages_that_wait_for_a_processor_are_named_on_the_first_screen_and_below_the_steps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Calls take 4 ms more than storage; whether messages are slow shows only with enough processors."""

    def tasks() -> list[list[Made]]:
        return [
            [
                Made("MPI_File_write_at_all", 4000, MIB, at, inside=[Made("pwrite", 1000, MIB, at)])
                for at in range(rank * MIB, 128 * MIB, 4 * MIB)
            ]
            for rank in range(4)
        ]

    io_run(tmp_path / "few", tasks(), processors="2")
    io_run(tmp_path / "enough", tasks(), processors="4")
    main(["diagnose", str(tmp_path / "few")])
    few = words(capsys.readouterr().out)
    assert "Not decided: collective-coordination: collective calls take up to " in few
    assert "4 tasks share the 2 processors of node0000, so that messages wait for a processor" in few
    waiting = "4 tasks share the 2 processors of node0000: calls, and tasks between calls, also wait for a"
    assert waiting in few
    late = DiagnosisAnswer(
        "run", (), ("imbalance",), (), 1.0, run_s=2.0, late_outside=LateOutside(3, 0.3, 0.1)
    )
    crowded = replace(late, crowded="2 tasks share the 1 processor of n1")
    assert "messages. 2 tasks share" in " ".join(map(sentence, crowded.of_waiting))
    assert " ".join(map(sentence, late.of_waiting)).endswith("look at its computation and messages.")
    main(["phases", str(tmp_path / "few")])
    below = "4 tasks share the 2 processors of node0000: communication and waits here are also those for"
    assert below in words(capsys.readouterr().out)
    main(["diagnose", str(tmp_path / "enough")])
    assert "collective-coordination (confidence" in capsys.readouterr().out


@pytest.mark.parametrize("hiding", ["io_uring_enter(4, 1, 1, 0, NULL, 8)", "io_submit(0x7f, 1, [{}])", ""])
def test_what_was_not_recorded_stands_in_the_place_of_no_finding(
    tmp_path: Path, hiding: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ['openat(AT_FDCWD, "/d/a", O_RDONLY) = 3</d/a>', "pread64(3</d/a>, ..., 4096, 0) = 4096"]
    lines += [f"{hiding} = 1"] if hiding else []
    end = "7 1700000009.000000 +++ exited with 0 +++\n"
    log = tmp_path / "log"
    text = "".join(f"7 17000000{at:02}.000100 {line} <0.000010>\n" for at, line in enumerate(lines))
    log.write_text(text + end)
    found = en.diagnose(en.open(log))
    page = tmp_path / "report.html"
    assert main(["report", str(log), "-o", str(page)]) == 0
    for told in (words(str(found)), words(str(found.in_full())), html.unescape(page.read_text())):
        assert ("may have moved bytes of files" in told) == bool(hiding)
        assert "No finding that matters" not in told or not hiding
    assert ("lacks" in found.to_json()) == bool(hiding)
    assert found.account is not None
    assert (found.account.io_low_s < found.account.io_s == found.run_s) == bool(hiding)
    add = ["history", "add", "--db", str(tmp_path / "runs.db"), "--experiment", "e", str(log)]
    gate = ["compare", str(log), "--with", str(log), "--fail-on", "slower"]
    for command in ["diagnose", str(log), "--fail-on", "warning"], gate, add:
        status = main(command)
        assert (status == 2) == bool(hiding), command
        assert ("may have moved bytes of files" in capsys.readouterr().err) == bool(hiding), command
    assert main(["info", str(log), "--json"]) == 0
    assert ("lacks" in json.loads(capsys.readouterr().out)) == bool(hiding)


def test_nor_of_a_run_without_calls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spool(tmp_path / "run/0.spool", [], rank=0)
    run = str(tmp_path / "run")
    database = ["--db", str(tmp_path / "runs.db"), "--experiment", "e"]
    for command in ["diagnose", run, "--fail-on", "warning"], ["history", "add", *database, run]:
        assert main(command) == 2
        assert "no call was recorded" in capsys.readouterr().err


@pytest.mark.parametrize("tasks", [1, 4])
def test_the_lines_of_the_account_add_up_to_the_run(tasks: int, tmp_path: Path) -> None:
    """Entries below 2 % of the run are added up, and less than 1 % is left out."""
    small = [Made("open", 30), Made("close", 5), Made("stat", 200), Made("fsync", 400), Made("lseek", 9)]
    calls = [*small, *[Made("pwrite", 60, 4 * KIB, gap_us=10)] * 200, Made("pread", 90_000, MIB, gap_us=900)]
    answer = en.diagnose(io_run(tmp_path / "run", [calls * 2] * tasks))
    (account,) = (said.values for said in answer.above if said.id == "diagnose.account")
    *lines, outside = account["parts"]
    assert sum(line.values["share"] for line in lines) == pytest.approx(1, abs=0.03)
    for line in lines:
        inside = [entry.values["share"] for entry in line.values["entries"]]
        assert not inside or sum(inside) == pytest.approx(line.values["share"], abs=0.03)
    whole = sum(entry.values["share"] for entry in outside.values["entries"]) + account["share"]
    assert whole == pytest.approx(1, abs=0.03)
    assert any(entry["share"] < 0.02 for entry in answer.to_json()["account"]["entries"])


@pytest.mark.parametrize("is_killed", [True, False])
def test_a_diagnosis_says_that_a_process_did_not_end(tmp_path: Path, is_killed: bool) -> None:
    spool(tmp_path / "0.spool", [made_events(50)], rank=0, **({"state": RUNNING} if is_killed else {}))
    found = en.diagnose(en.open(tmp_path))
    for text in (words(str(found)), words(str(found.in_full()))):
        assert ("1 process did not end" in text) == is_killed
    assert found.to_json().get("not_ended") == (1 if is_killed else None)


@pytest.mark.parametrize(("tasks", "kind"), [(1, "ext4"), (4, "ext4"), (1, "lustre")])
def test_advice_names_other_tasks_and_servers_only_where_there_are_some(
    tasks: int, kind: str, tmp_path: Path
) -> None:
    calls = [Made("stat", 30, file=1 + number % 40) for number in range(2000)] + [Made("MPI_Barrier", 10)]
    files = {number: f"/scratch/{number}" for number in range(1, 41)}
    found = en.diagnose(io_run(tmp_path / "a", [calls] * tasks, files, mounts=f"/ {kind} source"))
    (storm,) = (each for each in found.findings if each.id == "metadata-storm")
    assert ("for the others" in storm.advice) == (tasks > 1)
    assert ("metadata server" in storm.advice) == (kind == "lustre")


@pytest.mark.parametrize("steps", [1, 20])
def test_one_collective_call_of_each_task_cannot_become_fewer(steps: int, tmp_path: Path) -> None:
    call = Made("MPI_File_write_at_all", 9000, MIB, inside=[Made("pwrite", 10, MIB)])
    found = en.diagnose(io_run(tmp_path / "a", [[call] * steps] * 4)).findings
    advice = [each.advice for each in found if each.id in ("exchange", "collective-coordination")]
    assert advice
    assert all(("calls into fewer" in each) == (steps > 1) for each in advice)


def test_calls_that_could_be_fewer_have_their_own_files_and_number(tmp_path: Path) -> None:
    files = {1: "/out", 2: "/out/log", **{number: f"/out/{number}" for number in range(3, 83)}}
    head = [Made("open", 3_000, file=3), Made("close", 9, file=3), Made("MPI_Barrier", 9)]
    many = [Made("open", 900, file=number) for number in range(4, 83)]
    synced = [Made("stat", 1, file=1), Made("fsync", 900, file=2)] * 80
    run = io_run(tmp_path / "a", [[*head, *many, Made("MPI_Barrier", 9), *synced]] * 2, files)
    (found,) = [each for each in en.diagnose(run).findings if each.id == "fewer-calls"]
    assert "160 calls of fsync" in found.title
    assert "158 of 160 calls of open" in found.title
    assert (found.where.file_count, "/out/3" in found.where.files) == (80, False)
    assert "sync a file" in found.advice
    assert "sync a folder" not in found.advice
