"""The account: every second of a run lies in one entry, and many calls are named by their principle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from made_io import BEGIN, KIB, MIB, Made, io_run

import ensembles as en
from ensembles.comparison.times import sums_of_run
from ensembles.diagnosis.account import Entry
from ensembles.diagnosis.diagnose import RULES, diagnose


@pytest.mark.parametrize("seed", range(4))
def test_entries_add_up_to_the_run_whatever_its_calls(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = ["open", "stat", "pwrite", "pread", "fsync", "close", "unlink"]
    tasks = []
    for _ in range(int(rng.integers(1, 5))):
        calls = []
        for number in range(int(rng.integers(1, 60))):
            name, us = str(rng.choice(names)), int(rng.integers(1, 20_000))
            moves = (int(rng.choice([512, 4 * KIB, MIB])), number * MIB) if name.startswith("p") else ()
            calls.append(Made(name, us, *moves))
        tasks.append(calls)
    found = en.diagnose(io_run(tmp_path / "run", tasks))
    account = found.account
    assert account is not None
    assert sum(entry.time_s for entry in account.entries) == pytest.approx(account.run_s)
    assert min(entry.time_s for entry in account.entries) >= 0
    assert account.run_s == found.run_s
    assert sum(entry["share"] for entry in found.to_json()["account"]["entries"]) == pytest.approx(1)


def test_calls_on_a_folder_that_no_call_wrote_to_are_named_with_their_time(tmp_path: Path) -> None:
    made = [
        call
        for _ in range(40)
        for call in (Made("pwrite", 10, 4 * KIB, 0, file=1), Made("fsync", 5_000, file=2))
    ]
    found = en.diagnose(io_run(tmp_path / "run", [made], {1: "/out/a", 2: "/out"}))
    first = found.findings[0]
    assert (first.id, first.severity) == ("fewer-calls", "critical")
    assert first.title == "40 calls of fsync take 5.00 ms each, on /out"
    assert first.share_s == pytest.approx(39 * 5e-3, rel=0.01)
    assert first.gain_s is not None
    assert first.gain_s[0] == 0
    assert str(found).startswith("I/O is > 99 % of 200 ms. Explained: 97 % of it (97 % fewer-calls")
    assert len({*found.examined}) == len(found.examined)
    text = str(found.in_full())
    assert [name for name in found.examined if name not in text] == []
    assert {each.id for each in found.findings} <= {*found.examined}


def test_threads_together_are_in_calls_for_no_longer_than_the_run(tmp_path: Path) -> None:
    """Sums of a task add up what its threads do at the same time."""
    run = io_run(tmp_path / "run", [[Made("pwrite", 900_000, MIB, 0), Made("open", 100_000)]] * 2)
    run.__dict__["length_s"] = 0.5
    account = diagnose(run, [rule.of_sums() for rule in RULES if getattr(rule, "summed", None)]).account
    assert account is not None
    assert [entry.time_s for entry in account.entries] == pytest.approx([0.05, 0.45, 0.0])
    assert [entry.call for entry in account.entries] == ["open", "pwrite", ""]


def test_few_long_calls_are_no_cost_of_each(tmp_path: Path) -> None:
    def run(name: str, long: int) -> en.Run:
        calls = [Made("stat", 30_000 if at % (200 // long) == 0 else 10, file=at + 1) for at in range(200)]
        return io_run(tmp_path / name, [calls], {at + 1: f"/in/{at}" for at in range(200)})

    (few,) = (each for each in en.diagnose(run("two", 2)).findings if each.id == "fewer-calls")
    assert few.severity == "note"
    assert few.share_s == pytest.approx(200 * 10e-6, rel=0.1)
    (many,) = (each for each in en.diagnose(run("twenty", 20)).findings if each.id == "fewer-calls")
    assert many.share_s == pytest.approx(20 * 30e-3, rel=0.02)
    assert "take 3.01 ms each on average, usually 10" in many.title


def steps(extra_us: dict[int, float], tasks: int = 4, turns: bool = False) -> list[list[Made]]:
    """Ten steps of a write and a barrier; tasks of `extra_us` begin later, or all do one after the other."""
    made = []
    for task in range(tasks):
        wait = 1_100.0 * task if turns else extra_us.get(task, 0.0)
        last = 1_100.0 * (tasks - 1) if turns else max(extra_us.values(), default=0.0)
        made.append(
            [
                call
                for step in range(10)
                for call in (
                    Made("pwrite", 1_000, MIB, step * MIB, gap_us=1 + wait),
                    Made("MPI_Barrier", 10 + last - wait),
                )
            ]
        )
    return made


def entries(run: en.Run) -> dict[str, Entry]:
    account = en.diagnose(run).account
    assert account is not None
    assert sum(each.time_s for each in account.entries) == pytest.approx(account.run_s, rel=1e-6)
    return {each.id: each for each in account.entries}


def test_a_task_that_computes_longer_is_named_with_what_the_others_wait(tmp_path: Path) -> None:
    late = entries(io_run(tmp_path / "late", steps({2: 5_000.0}), starts_us=[0, 0, 5_000, 0]))["late-task"]
    assert (late.principle, late.rank) == ("waiting", 2)
    assert late.time_s == pytest.approx(10 * 5e-3, rel=0.05)
    assert "late-task" not in entries(io_run(tmp_path / "even", steps({})))


def test_tasks_that_take_turns_wait_for_those_before_them(tmp_path: Path) -> None:
    run = io_run(tmp_path / "turns", steps({}, turns=True), starts_us=[0, 1_100, 2_200, 3_300])
    found, named = entries(run), {each.id: each for each in en.diagnose(run).findings}
    assert named["turns"].severity == "critical"
    assert named["turns"].gain_s == (0.0, found["turns"].time_s)
    assert named["turns"].where.ranks == ((0, 3),)
    assert found["turns"].time_s == pytest.approx(10 * 3 * 1e-3, rel=0.05)
    assert "late-task" not in found
    assert "turns" not in entries(io_run(tmp_path / "at-once", steps({})))


def test_bytes_have_the_best_rate_of_a_phase_and_the_rest_is_undecided(tmp_path: Path) -> None:
    calls = []
    for phase_us in (1_000, 1_000, 3_000):
        calls += [Made("pwrite", phase_us, MIB, at * MIB) for at in range(10)] + [Made("MPI_Barrier", 10)]
    found = entries(io_run(tmp_path / "run", [calls] * 2))
    assert found["rate"].time_s == pytest.approx(30e-3, rel=0.01)
    assert found["bytes"].time_s == pytest.approx(20e-3, rel=0.01)
    assert (found["bytes"].principle, found["bytes"].call) == ("undecided", "pwrite")


def test_calls_without_bytes_go_with_all_of_their_time(tmp_path):
    """As of seeks of a stream, or of a folder that is read again, where a part of the calls is far longer."""
    for name, layer_time_us in (("fseek", 100), ("readdir", 100), ("open", 100)):
        calls = [Made(name, layer_time_us if at % 40 == 0 else 0.5, file=1 + at) for at in range(4_000)]
        found = en.diagnose(io_run(tmp_path / name, [calls], {1 + at: f"/a/{at}" for at in range(4_000)}))
        (few,) = (each for each in found.findings if each.id == "fewer-calls")
        assert few.share_s == pytest.approx(100 * 100e-6 + 3_900 * 0.5e-6, rel=0.05)


def test_small_calls_show_no_rate(tmp_path):
    calls = [Made("pwrite", 400 if at % 40 == 0 else 0.5, 32, 32 * at) for at in range(4_000)]
    found = en.diagnose(io_run(tmp_path / "a", [calls]))
    assert "rate" not in {each.id for each in found.account.entries}
    assert found.findings[0].id == "small-requests"
    # A slow disk takes 2.56 ms for the bytes.
    assert found.findings[0].share_s == pytest.approx(100 * 400e-6 - 4_000 * 32 / 50e6, rel=0.1)


@pytest.mark.parametrize("is_in_turn", [True, False])
def test_syncs_of_one_log_by_many_short_processes_are_named_by_their_number(tmp_path, is_in_turn):
    def lives(rank: int) -> dict[str, int]:
        begin = 3_000_000 * rank * is_in_turn
        ends = {"first": begin, "last": begin + 2_010_000}
        day = {f"{end}_realtime_ns": 10**18 + ns for end, ns in ends.items()}
        return {
            f"{end}_{of}": BEGIN + ns for end, ns in ends.items() for of in ("ticks", "monotonic_ns")
        } | day

    starts_us = [3000 * rank * is_in_turn for rank in range(100)]
    calls = [[Made("pwrite", 10, 20), Made("fsync", 2000)]] * 100
    run = io_run(
        tmp_path / "run", calls, {1: "/var/the.log"}, starts_us=starts_us, head=lives, tasks_per_node=100
    )
    assert run.info.live_together is not is_in_turn
    assert sums_of_run(run).totals["tasks_at_once"] == (1 if is_in_turn else 100)
    few = [each for each in en.diagnose(run).findings if each.id == "fewer-calls"]
    assert len(few) == is_in_turn
    for each in few:
        assert each.severity == "critical"
        assert "100 calls of fsync" in each.title
        assert "/var/the.log" in each.title
        assert each.share_s == pytest.approx(0.2, rel=0.05)
