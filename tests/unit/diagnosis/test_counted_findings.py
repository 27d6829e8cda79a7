"""Findings of logs that hold counters alone: two real logs, and logs made with and without a cause."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import darshan
import pytest
from made_darshan_logs import MadeLog, Segment

import ensembles as en
from ensembles.answers.diagnose import answer_diagnosis
from ensembles.diagnosis.finding import Diagnosis, Finding
from ensembles.run.information import collect_information

INPUT = Path(darshan.__file__).parent / "tests" / "input"
MIB = 1 << 20
FILE = 7


def diagnosed(log: MadeLog, folder: Path) -> Diagnosis:
    return en.diagnose(en.open(str(log.write(folder / "made.darshan"))))


def found_in(log: MadeLog, folder: Path, cause: str) -> Finding | None:
    found = diagnosed(log, folder)
    return next((each for each in found.findings if each.id == cause), None)


def refusal(log: MadeLog, folder: Path, cause: str) -> str:
    return next(each.reason for each in diagnosed(log, folder).not_examined if each.id == cause)


def test_a_slow_target_of_a_real_machine_is_named():
    run = en.open(str(INPUT / "sample-badost.darshan"))
    (found,) = en.diagnose(run).findings
    assert (found.id, found.severity, found.evidence["target"]) == ("slow-target", "critical", 14)
    slow = {path for path in run.files if _targets(run, path) == (14,)}
    assert found.where.file_count == len(slow) == 85
    assert set(found.where.files) <= slow
    # Nearly the whole job: the slowest rank of the other targets takes 18 s of 779 s.
    assert found.gain_s[0] > 0.65 * run.counters.run_time_s
    assert found.gain_s[1] <= run.counters.run_time_s


def _targets(run: Any, path: str) -> tuple[int, ...]:
    striping = run.info.striping_of(path)
    return striping.components[0].targets if striping else ()


def test_the_same_program_on_healthy_targets_has_no_finding():
    found = en.diagnose(en.open(str(INPUT / "sample-goodost.darshan")))
    assert not found.findings
    assert {"slow-target", "imbalance", "small-requests", "single-stripe"} <= set(found.examined)


def files_of_tasks(times_s: list[float], targets: int = 6, moved: int = 64 * MIB) -> MadeLog:
    """A file for each task, one after the other on the targets."""
    log = MadeLog(tasks=len(times_s))
    for rank, time_s in enumerate(times_s):
        log.names[rank + 1] = f"/scratch/{rank}"
        log.count(
            "POSIX",
            rank + 1,
            rank,
            OPENS=1,
            WRITES=64,
            BYTES_WRITTEN=moved,
            F_WRITE_START=1,
            F_WRITE_END=1 + time_s,
            F_WRITE_TIME=time_s,
            F_META_TIME=0.001,
        )
        log.stripe(rank + 1, MIB, [rank % targets])
    return log


def test_a_slow_target_of_few_files_is_named_and_noise_is_not(tmp_path):
    noise = [10 * (1 + 0.05 * ((7 * rank) % 11 - 5) / 5) for rank in range(36)]
    assert found_in(files_of_tasks(noise), tmp_path, "slow-target") is None
    slow = [time_s * (3 if rank % 6 == 4 else 1) for rank, time_s in enumerate(noise)]
    found = found_in(files_of_tasks(slow), tmp_path, "slow-target")
    assert found is not None
    assert found.evidence["target"] == 4
    assert found.gain_s[0] <= 20 <= found.gain_s[1]


def test_files_of_fewer_than_four_targets_are_refused(tmp_path):
    assert "2 targets alone" in refusal(files_of_tasks([10.0] * 8, targets=2), tmp_path, "slow-target")


def shared_file(targets: list[int], at_once: float, module: str = "POSIX", owner: int = 0) -> MadeLog:
    """64 tasks write one file, and `at_once` of them are in a call at the same time.

    Through MPI-IO, `owner` alone moves the bytes.
    """
    tasks, lasts_s = 64, 20.0
    log = MadeLog(tasks=tasks, names={FILE: "/scratch/shared"})
    times = {"F_WRITE_START": 5, "F_WRITE_END": 5 + lasts_s, "F_WRITE_TIME": at_once * lasts_s}
    slowest = {"F_SLOWEST_RANK_TIME": min(at_once, 1) * lasts_s}
    if module == "MPI-IO":
        log.count(module, FILE, -1, COLL_WRITES=640, BYTES_WRITTEN=640 * MIB, **times, **slowest)
        times["F_WRITE_TIME"] = lasts_s
        log.count("POSIX", FILE, owner, OPENS=1, WRITES=640, BYTES_WRITTEN=640 * MIB, **times)
    else:
        log.count(
            module,
            FILE,
            -1,
            OPENS=tasks,
            WRITES=640,
            BYTES_WRITTEN=640 * MIB,
            SLOWEST_RANK=3,
            **times,
            **slowest,
        )
    log.stripe(FILE, MIB, targets)
    return log


def test_a_shared_file_on_one_target_is_named(tmp_path):
    found = found_in(shared_file([3], 40), tmp_path, "single-stripe")
    assert found is not None
    assert found.title == "64 tasks write 1 shared file on one storage target"
    assert found.gain_s == (0.0, pytest.approx(20 * 7 / 8))
    assert found.where.layer == "posix"


@pytest.mark.parametrize(("targets", "at_once"), [([3, 4, 5, 6], 40), ([3], 1.2)], ids=["striped", "in turn"])
def test_files_with_more_stripes_or_one_user_at_a_time_are_not(targets, at_once, tmp_path):
    assert found_in(shared_file(targets, at_once), tmp_path, "single-stripe") is None


def test_one_stripe_behind_an_aggregator_is_named(tmp_path):
    found = found_in(shared_file([3], 60, "MPI-IO", owner=9), tmp_path, "single-stripe")
    assert found is not None
    assert found.where.layer == "mpiio"
    assert [check.sentence for check in found.checks if check.name == "one-aggregator"] == [
        "task 9 spends 100 % of the time in POSIX calls"
    ]


def test_files_without_a_known_layout_are_refused(tmp_path):
    log = shared_file([3], 40)
    del log.parts["LUSTRE"]
    assert "layout of the files is not known" in refusal(log, tmp_path, "single-stripe")


def test_tasks_with_more_bytes_are_an_imbalance(tmp_path):
    log = MadeLog(tasks=8)
    for rank in range(8):
        many = 4 if rank == 5 else 1
        log.names[rank + 1] = f"/scratch/{rank}"
        log.count(
            "POSIX", rank + 1, rank, OPENS=1, WRITES=16, BYTES_WRITTEN=many * 64 * MIB, F_WRITE_TIME=many * 3
        )
    found = found_in(log, tmp_path, "imbalance")
    assert found is not None
    assert found.where.ranks == ((5, 5),)
    # Of 12 s there remain those of the mean, 11 / 8 of a share of 3 s; no gain is known to better than 10 %.
    assert found.gain_s == (0.0, pytest.approx(1.1 * (12 - 3 * 11 / 8)))


@pytest.mark.parametrize(("part", "slowest_s", "cause"), [(8, 24, "straggler-task"), (1, 45, "imbalance")])
def test_the_slowest_task_of_a_shared_file_is_compared_with_all_of_its_tasks(
    tmp_path, part, slowest_s, cause
):
    log = MadeLog(tasks=64, names={FILE: "/scratch/shared"})  # of which some are aggregators
    slowest = {"SLOWEST_RANK": 3, "SLOWEST_RANK_BYTES": 640 * MIB // part, "F_SLOWEST_RANK_TIME": slowest_s}
    log.count("POSIX", FILE, -1, OPENS=64, WRITES=640, BYTES_WRITTEN=640 * MIB, F_WRITE_TIME=90, **slowest)
    found = found_in(log, tmp_path, cause)
    assert found is not None
    assert "rank 3" in found.title
    assert found.gain_s == (0.0, pytest.approx(slowest_s - (90 / 8 if part == 8 else 0)))
    slowest["F_SLOWEST_RANK_TIME"], slowest["SLOWEST_RANK_BYTES"] = 15, 80 * MIB
    log = MadeLog(tasks=64, names={FILE: "/scratch/shared"})
    log.count("POSIX", FILE, -1, OPENS=64, WRITES=640, BYTES_WRITTEN=640 * MIB, F_WRITE_TIME=90, **slowest)
    assert found_in(log, tmp_path, cause) is None


def test_small_requests_are_named_and_large_ones_are_not(tmp_path):
    for size, named in ((512, True), (4 * MIB, False)):
        log = MadeLog(tasks=1, names={FILE: "/scratch/a"})
        log.count("POSIX", FILE, 0, OPENS=1, WRITES=20_000, BYTES_WRITTEN=20_000 * size, F_WRITE_TIME=20)
        assert (found_in(log, tmp_path, "small-requests") is not None) is named


def test_many_opens_are_named_unless_they_cost_nothing(tmp_path):
    for time_s, named in ((30.0, True), (1e-6, False)):
        log = MadeLog(tasks=4, names={FILE: "/scratch/a"})
        log.count("POSIX", FILE, 0, OPENS=4000, WRITES=1, BYTES_WRITTEN=MIB, F_META_TIME=time_s)
        assert (found_in(log, tmp_path, "metadata-storm") is not None) is named


def test_little_io_is_said_first(tmp_path):
    log = MadeLog(tasks=1, names={FILE: "/scratch/a"})
    log.count("POSIX", FILE, 0, OPENS=1, WRITES=1, BYTES_WRITTEN=MIB, F_WRITE_TIME=0.5)
    assert [each.id for each in diagnosed(log, tmp_path).findings] == ["not-io"]


def test_logs_without_posix_say_what_to_switch_on(tmp_path):
    log = MadeLog(tasks=1, names={FILE: "/scratch/a"})
    log.count("STDIO", FILE, 0, OPENS=1, WRITES=1, BYTES_WRITTEN=MIB, F_WRITE_TIME=50)
    assert "no counters of POSIX" in refusal(log, tmp_path, "small-requests")


def test_streams_alone_are_enough_for_little_io(tmp_path):
    log = MadeLog(tasks=1, names={FILE: "/scratch/a"})
    log.count("STDIO", FILE, 0, OPENS=1, WRITES=1, BYTES_WRITTEN=MIB, F_WRITE_TIME=0.5)
    (found,) = diagnosed(log, tmp_path).findings
    assert (found.id, found.gain_s) == ("not-io", (0.0, 0.5))


def ior_over_daos(tasks: int, time_s: float) -> MadeLog:
    """A file of DFS for each task, whose calls are made of calls on objects of DAOS; only words in STDIO."""
    log = MadeLog(tasks=tasks, names={FILE + i: f"/file.{i}" for i in range(tasks)} | {99: "<STDOUT>"})
    log.count("STDIO", 99, 0, OPENS=1, WRITES=20, BYTES_WRITTEN=800, F_WRITE_TIME=0.0001)
    for rank in range(tasks):
        amounts = {"BYTES_READ": 16 * MIB, "BYTES_WRITTEN": 4 * MIB}
        times = {"F_READ_TIME": 0.75 * time_s, "F_WRITE_TIME": 0.25 * time_s}
        log.count("DFS", FILE + rank, rank, OPENS=1, READS=16, WRITES=4, **amounts, **times)
        times = {name: 0.9 * value for name, value in times.items()}
        log.count("DAOS", 200 + rank, rank, ARRAY_READS=16, ARRAY_WRITES=4, **amounts, **times)
    return log


def test_io_through_daos_is_counted_once_and_is_no_little_io(tmp_path):
    run = en.open(str(ior_over_daos(4, 20.0).write(tmp_path / "made.darshan")))
    info = collect_information(run)
    assert (info["bytes_read"], info["bytes_written"]) == (64 * MIB, 16 * MIB + 800)
    assert info["io_time_s"] == pytest.approx(80.0, abs=1e-3)
    assert [row.io_time_s for row in run.by_rank()] == pytest.approx([20.0] * 4, abs=1e-3)
    modules = info["counters"]["modules"]
    assert {name: module["time_s"] for name, module in modules.items() if name != "STDIO"} == pytest.approx(
        {"DFS": 80.0, "DAOS": 72.0}
    )
    assert "not-io" not in [found.id for found in en.diagnose(run).findings]
    assert not any("not shown" in note for note in run.notes)
    (found,) = diagnosed(ior_over_daos(4, 0.5), tmp_path).findings
    assert (found.id, found.gain_s[1]) == ("not-io", pytest.approx(0.5 + 0.45 + 0.0001))


def test_modules_that_are_not_read_are_no_little_io(tmp_path):
    log = MadeLog(tasks=1, names={FILE: "/scratch/a"})
    log.count("POSIX", FILE, 0, OPENS=1, WRITES=1, BYTES_WRITTEN=MIB, F_WRITE_TIME=0.5)
    log.parts["MDHIM"] = bytes(800)
    assert "MDHIM" in refusal(log, tmp_path, "not-io")


def test_the_bound_of_a_traced_log_holds_what_was_only_counted(tmp_path):
    log = MadeLog(tasks=4, names={FILE + rank: f"/scratch/{rank}" for rank in range(4)})
    for rank in range(4):
        times = {"F_META_TIME": 2.5, "F_READ_TIME": 0.01}
        log.count("POSIX", FILE + rank, rank, OPENS=3000, STATS=3000, READS=10, BYTES_READ=10 * MIB, **times)
        reads = [Segment(i * MIB, MIB, 1 + 5 * i, 1.001 + 5 * i) for i in range(10)]
        log.trace("DXT_POSIX", FILE + rank, rank, [], reads)
    diagnosis = diagnosed(log, tmp_path)
    found = {each.id: each for each in diagnosis.findings}
    assert found["not-io"].gain_s == (0.0, pytest.approx(2.51))
    assert diagnosis.account is not None
    assert diagnosis.account.io_s == pytest.approx(2.51)
    assert found["metadata-storm"].gain_s[1] <= found["not-io"].gain_s[1]
    assert "6,000 for each task and file" in found["metadata-storm"].title


def test_the_text_gives_one_reason_for_all_causes_that_need_single_calls(tmp_path):
    text = " ".join(
        str(answer_diagnosis(**vars(diagnosed(shared_file([3], 40), tmp_path))).in_full()).split()
    )
    assert text.count("DXT_ENABLE_IO_TRACE=1") == 1
    assert "lock-contention: the nodes of the tasks are not known" in text


def test_calls_that_dxt_does_not_trace_are_not_called_little_io():
    # Darshan counted 11,200 s of metadata in a run of 1,468 s; DXT traced 0.45 s of reads and writes.
    run = en.open(str(INPUT.parents[1] / "examples" / "example_logs" / "dxt.darshan"))
    counted_s = sum(module.slowest_rank_s for module in run.counters.modules.values())
    assert counted_s > 7 * run.counters.run_time_s
    diagnosis = en.diagnose(run)
    assert "not-io" not in [finding.id for finding in diagnosis.findings]
    assert diagnosis.account is not None
    assert diagnosis.account.io_low_s < 1 < diagnosis.account.io_s == diagnosis.run_s
    reason = {each.id: each.reason for each in diagnosis.not_examined}["not-io"]
    assert reason.startswith("the counters hold 3 h 07 min")


@pytest.mark.parametrize(
    ("at_once", "alone", "says"),
    [
        (12, 0, "the writes are collective already"),
        (11, 1, "the writes are collective already"),
        (1, 11, "Where writes are collective already"),
        (0, 12, "a collective write (MPI_File_write_all"),
    ],
)
def test_who_writes_collectively_by_the_counters_of_a_dxt_log_is_not_told_to(
    tmp_path: Path, at_once: int, alone: int, says: str
) -> None:
    log = MadeLog(tasks=4, names={FILE: "/scratch/a.h5"})
    for rank in range(4):
        log.count(
            "MPI-IO",
            FILE,
            rank,
            COLL_WRITES=at_once,
            INDEP_WRITES=alone,
            BYTES_WRITTEN=384 * MIB,
            F_WRITE_TIME=48.0,
        )
        times = {"F_READ_TIME": 24.0, "F_WRITE_TIME": 22.0}
        log.count(
            "POSIX", FILE, rank, READS=12, BYTES_READ=192 * MIB, WRITES=12, BYTES_WRITTEN=408 * MIB, **times
        )
        asked, written, read = [], [], []
        for step in range(12):
            begin_s, at = 1 + 4.5 * step, (step * 4 + rank) * 34 * MIB
            asked.append(Segment(at, 32 * MIB, begin_s, begin_s + 4))
            read.append(Segment(at, 34 * MIB, begin_s + 0.05, begin_s + 2))
            written.append(Segment(at, 34 * MIB, begin_s + 2.05, begin_s + 3.9))
        log.trace("DXT_MPIIO", FILE, rank, asked)
        log.trace("DXT_POSIX", FILE, rank, written, read)
    found = found_in(log, tmp_path, "read-modify-write")
    assert found is not None
    assert says in found.advice
    assert ("all pieces of all tasks at once" in found.advice) == (2 * at_once <= alone + at_once)
