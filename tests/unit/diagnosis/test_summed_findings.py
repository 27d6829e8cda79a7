"""Runs that keep not every call: what their sums by function, size class and task can show."""

from __future__ import annotations

from collections import Counter

import pytest
from made_io import KIB, MIB, Made, io_run
from made_runs import run_of

import ensembles as en
from ensembles.diagnosis.diagnose import RULES, diagnose
from ensembles.diagnosis.evidence import Evidence
from ensembles.diagnosis.evidence_rule import EvidenceRule
from ensembles.diagnosis.finding import Finding
from ensembles.diagnosis.without_calls import EvidenceOfSums
from ensembles.structure.libraries import CALL_S

SUMMED = [rule.of_sums() for rule in RULES if isinstance(rule, EvidenceRule) and rule.summed is not None]
"""Rules of sums. Made runs keep their calls too, and so have the sums of all modes."""

ONE, TWO = {1: "/scratch/a"}, {1: "/scratch/a", 2: "/scratch/b"}


def summed(folder, tasks, files=ONE, **more):
    return io_run(folder, tasks, files, **more)


def by_key(rows, key: tuple[str, str], name: str) -> dict[tuple[int, int], int]:
    found: Counter[tuple[int, int]] = Counter()
    for *of, value in zip(*(rows[column].tolist() for column in (*key, name)), strict=True):
        found[of[0], of[1]] += value
    return dict(found)


def finding(run, cause: str) -> Finding:
    (found,) = (each for each in diagnose(run, SUMMED).findings if each.id == cause)
    return found


def refusal(run, cause: str) -> str:
    (found,) = (each.reason for each in diagnose(run, SUMMED).not_examined if each.id == cause)
    return found


def found_ids(run) -> list[str]:
    return [each.id for each in diagnose(run, SUMMED).findings]


def writes(count: int, us: float, size: int, file: int = 1) -> list[Made]:
    return [Made("pwrite", us, size, number * size, file) for number in range(count)]


def test_rows_of_sums_add_up_to_the_calls(tmp_path):
    """Of each size of a function in all tasks, and nearly of each task: sizes are not kept by task."""
    tasks = [
        writes(7 + 5 * rank, 30, 4 * KIB) + writes(3, 2000, MIB) + [Made("fsync", 50)] for rank in range(5)
    ]
    run = summed(tmp_path / "a", tasks)
    kept = run.summarize(Evidence.for_run).calls.columns()
    made = EvidenceOfSums.for_run(run).calls.columns()
    for key in (("call", "size"), ("rank", "call")):
        for name in ("n", "time_ns", "bytes"):
            one, other = (by_key(rows, key, name) for rows in (kept, made))
            least = {"n": 1, "time_ns": 5, "bytes": 5}[name]  # what is rounded off
            assert other == pytest.approx(one, rel=1e-9, abs=0 if key[1] == "size" and name == "n" else least)


def test_small_requests_gain_their_fixed_cost(tmp_path):
    """200 calls of 4 KiB take 50 us, of which 1 us is copying at 4 GB/s; one request is left."""
    run = summed(tmp_path / "a", [writes(200, 50, 4 * KIB)] * 4)
    found = finding(run, "small-requests")
    assert found.severity == "critical"
    assert (found.where.tasks, found.evidence["calls"]) == (4, 800)
    assert found.evidence["fixed_cost_s"] == pytest.approx(49e-6, rel=0.03)
    low, high = found.gain_s
    assert low < 199 * 49e-6 < high
    assert low > 0.8 * 199 * 49e-6
    assert high < 1.2 * 199 * 49e-6


def test_a_few_long_calls_are_not_the_fixed_cost(tmp_path):
    """198 calls take 1 us, which is copying, and two wait for the disk."""
    calls = writes(198, 1, 4 * KIB) + writes(2, 20_000, 4 * KIB)
    assert "39.9 ms of this run, or nothing" in refusal(summed(tmp_path / "a", [calls]), "small-requests")


def test_large_and_fast_requests_are_no_finding(tmp_path):
    assert "small-requests" not in found_ids(summed(tmp_path / "a", [writes(64, 300, MIB)]))
    assert "small-requests" not in found_ids(summed(tmp_path / "b", [writes(2000, 0.3, 4 * KIB)]))


@pytest.mark.parametrize(
    ("every", "size", "found"),
    [(1, 64 * KIB, True), (4, MIB, True), (30, KIB, True), (8, 64 * KIB, True), (8, MIB, False)],
)
def test_syncs_after_few_writes_or_few_bytes(every, size, found, tmp_path):
    calls = [call for _ in range(20) for call in [*writes(every, 30, size), Made("fsync", 5000)]]
    run = summed(tmp_path / "a", [calls] * 2)
    assert ("sync-per-write" in found_ids(run)) == found
    if found:
        one = finding(run, "sync-per-write")
        assert (one.evidence["syncs"], one.evidence["writes_per_sync"]) == (40, every)
        assert 0.5 * 0.095 * 0.999 < one.gain_s[0] < 0.095  # the bytes still have to be written
        assert one.gain_s[1] == pytest.approx(1.1 * 0.095, rel=0.05)  # no more than the calls last


def test_more_opens_than_files_are_opened_again(tmp_path):
    """Of 100 opens of two known files, 98 or more ask again."""
    again = [Made("open", 200, file=1 + number % 2) for number in range(100)]
    found = finding(summed(tmp_path / "a", [again] * 3, TWO), "metadata-storm")
    assert found.evidence["repeated"] == 3 * 98
    assert found.gain_s[0] == pytest.approx(0.7 * 98 * 200e-6)
    files = {number: f"/scratch/{number}" for number in range(1, 101)}
    each_once = [Made("open", 200, file=number) for number in files]
    assert "metadata-storm" not in found_ids(summed(tmp_path / "b", [each_once], files))


def test_imbalance_is_bounded_as_nobody_knows_who_waits(tmp_path):
    """Task 2 moves 6 times as much: evened out, it saves 40 of 60 ms, if the others wait."""
    tasks = [writes(60 if rank == 2 else 10, 1000, MIB) for rank in range(4)]
    found = finding(summed(tmp_path / "a", tasks), "imbalance")
    assert found.where.ranks == ((2, 2),)
    assert found.gain_s[0] == 0.0
    assert found.share_s == pytest.approx(60e-3 * (1 - 22.5 / 60))
    assert found.share_s < found.gain_s[1] <= 60.1e-3
    assert [check.holds for check in found.checks] == [True, True, None]
    even = summed(tmp_path / "b", [writes(10, 1000, MIB)] * 4)
    assert "imbalance" not in found_ids(even)


def test_a_slow_task_is_refused_with_what_it_could_cost(tmp_path):
    tasks = [writes(20, 4000 if rank == 1 else 1000, MIB) for rank in range(5)]
    reason = refusal(summed(tmp_path / "a", tasks), "straggler-task")
    assert "60.0 ms" in reason
    assert "ensio run --mode trace" in reason
    alike = summed(tmp_path / "b", [writes(20, 1000, MIB)] * 5)
    assert "straggler-task" in diagnose(alike, SUMMED).examined


def test_collective_calls_are_refused_with_what_they_could_cost(tmp_path):
    inner = [Made("pwrite", 100, MIB, 0)]
    calls = [Made("MPI_File_write_at_all", 2000, MIB, 0, inside=inner) for _ in range(10)]
    reason = refusal(summed(tmp_path / "a", [calls] * 2), "collective-coordination")
    assert "19.0 ms" in reason


def test_flags_of_all_files_are_named_and_of_some_refused(tmp_path):
    flags = {1: {"open.flags": "O_SYNC"}}
    all_files = summed(tmp_path / "a", [writes(40, 2000, 64 * KIB)], ONE, facts=flags)
    found = finding(all_files, "o-sync")
    assert (found.evidence["writes"], found.evidence["flags"]) == (40, "O_SYNC")
    assert found.gain_s[0] == pytest.approx(0.5 * 40 * (2e-3 - 64 * KIB / 4e9), rel=0.01)
    assert found.symptoms == ("small-requests",)
    some = summed(tmp_path / "b", [writes(40, 2000, 64 * KIB)], TWO, facts=flags)
    assert "1 file with O_SYNC" in refusal(some, "o-sync")
    twice = [Made("open", 20)] * 2 + writes(40, 2000, 64 * KIB)  # one of them may be without flags
    assert "which writes" in refusal(summed(tmp_path / "c", [twice], ONE, facts=flags), "o-sync")
    assert None in [check.holds for check in finding(some, "small-requests").checks]


def test_little_io_is_said(tmp_path):
    calls = [Made("pwrite", 50, MIB, 0, gap_us=100_000)] * 4
    found = finding(summed(tmp_path / "a", [calls] * 2), "not-io")
    assert found.evidence["io_share"] < 0.01
    # Of each task, 1 % of the run; if they follow one another, a fifth.
    once, plain = [Made("pwrite", 1000, MIB, 0, gap_us=100_000)] * 4, {"rank": -1, "tasks": 0}
    many = summed(tmp_path / "b", [once] * 20, head=plain, recorder="1.0.0")
    assert "which tasks wait for which" in refusal(many, "not-io")
    assert "not-io" not in diagnose(many, SUMMED).examined


@pytest.mark.parametrize(
    "calls",
    [
        [[Made("pwrite", 100, 4 * KIB, 0)]],
        [[Made("open", 5), Made("close", 5)]],
        [[Made("stat", 5), Made("stat", 5)], []],
        [[Made("MPI_Barrier", 5)]],
        [[Made("fwrite", 5, 10)]],
    ],
    ids=["one event", "metadata only", "an idle task", "no I/O", "one stream"],
)
def test_sums_of_next_to_nothing_have_no_finding(calls, tmp_path):
    run = summed(tmp_path / "a", calls)
    assert {each.severity for each in diagnose(run, SUMMED).findings} <= {"note"}


def test_the_time_of_the_recorder_is_that_of_a_thread_of_the_busiest_task(tmp_path):
    calls = [("pwrite", 80e-9 * at, 30e-9, 1, at) for at in range(10_000)]
    for name, tasks, threads in (("run", [[], calls], 4), ("idle", [[], []], 1)):
        run_of(tmp_path / name, tasks, 1e-3, properties={"recorder": "1.0"}, threads=threads)
    run = en.open(str((tmp_path / "idle/0.spool").replace(tmp_path / "run/0.spool").parent))
    account = diagnose(run, SUMMED).account
    assert account is not None
    took_s = sum(each.time_s for each in account.entries if each.id.startswith("recorder"))
    assert took_s == pytest.approx(10_000 * sum(CALL_S["trace"]) / 2 / 4)
