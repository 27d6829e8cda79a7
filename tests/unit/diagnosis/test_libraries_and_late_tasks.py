"""What libraries do inside calls is not the program's habit, and who enters collective calls late is named.

The shapes are those of real runs: IOR with collective writes that leave holes, a solver with a log, fio on a
cold cache, a program of MPI-IO in which one rank computes longer, and MACSio's log of Darshan.
"""

from __future__ import annotations

import html
import json
from pathlib import Path

import darshan
import numpy as np
import pytest
from arrays_of import arrays_of
from made_io import KIB, MIB, Made, found_ids, io_run, refusal

import ensembles as en
from ensembles.cli.main import main
from ensembles.faces.words import sentence
from ensembles.model.events import Call, Events
from ensembles.structure.late_entry import late_entry
from ensembles.summaries.collective_steps import CollectiveEntries

PLAIN = {"rank": -1, "tasks": 0}
TWO = {1: "/scratch/log", 2: "/scratch/data"}
HOLE = 512 * KIB


def finding(run: en.Run, cause: str):
    (one,) = (each for each in en.diagnose(run).findings if each.id == cause)
    return one


def sieved(call: str, read_us: float = 100, pieces: int = 16) -> list[Made]:
    """Each write of 64 KiB reads 512 KiB and writes it again; the last reads reach the end of the file."""
    calls = []
    for number in range(pieces):
        at = number * HOLE
        inside = [Made("pread", read_us, HOLE, at), Made("pwrite", 200, HOLE, at)]
        calls.append(Made(call, 350, 64 * KIB, at, inside=inside))
    at = pieces * HOLE
    parts = [Made("pread", 60, HOLE // 2, at), Made("pread", 50, HOLE // 4, at + HOLE // 2)]
    inside = [*parts, Made("pwrite", 200, HOLE, at)]
    return [*calls, Made(call, 350, 64 * KIB, at, inside=inside)]


def test_reads_inside_writes_are_not_redundant_reads_of_the_program(tmp_path: Path) -> None:
    """Four tasks sieve one range: each reads it as a whole, and the program reads nothing."""
    found = found_ids(io_run(tmp_path / "a", [sieved("MPI_File_write_at_all", read_us=1500)] * 4))
    assert "read-modify-write" in found
    assert "redundant-reads" not in found


def test_a_read_and_the_reads_inside_it_are_the_same_bytes(tmp_path: Path) -> None:
    """Three tasks read the parts of a file in turns, through HDF5 and MPI-IO: each byte is read once."""

    def read(at: int) -> Made:
        inside = Made("MPI_File_read_at_all", 4100, MIB, at, inside=[Made("pread", 4000, MIB, at)])
        return Made("H5Dread", 4200, MIB, at, inside=[inside])

    tasks = [[read(at) for at in range(rank * MIB, 48 * MIB, 3 * MIB)] for rank in range(3)]
    assert "redundant-reads" not in found_ids(io_run(tmp_path / "a", tasks))


def test_tasks_that_all_read_a_file_through_a_library_are_still_named(tmp_path: Path) -> None:
    mine = [
        Made("MPI_File_read_at_all", 4100, MIB, at, inside=[Made("pread", 4000, MIB, at)])
        for at in range(0, 16 * MIB, MIB)
    ]
    found = finding(io_run(tmp_path / "a", [mine] * 4), "redundant-reads")
    assert found.evidence["redundancy"] == pytest.approx(4)


def test_the_time_of_other_files_is_not_that_of_files_that_tasks_share(tmp_path: Path) -> None:
    """Eight tasks, as of a compiler, read one header from memory and a separate source from the disk."""
    shared = [Made("pread", 300, 16 * KIB, at * 16 * KIB) for at in range(8)]
    tasks = [[*shared, Made("pread", 20_000, 16 * KIB, 0, 2 + rank)] for rank in range(8)]
    paths = {1: "/usr/include/stdlib.h", **{2 + rank: f"/src/{rank}.c" for rank in range(8)}}
    found = finding(io_run(tmp_path / "a", tasks, paths), "redundant-reads")
    assert found.where.files == ("/usr/include/stdlib.h",)
    assert 0 < found.gain_s[1] <= 8 * 300e-6


def test_advice_for_collective_writes_is_not_to_write_collectively(tmp_path: Path) -> None:
    single = finding(io_run(tmp_path / "a", [sieved("MPI_File_write_at")] * 4), "read-modify-write")
    together = finding(io_run(tmp_path / "b", [sieved("MPI_File_write_at_all")] * 4), "read-modify-write")
    assert "write all pieces of all tasks at once: a collective write" in single.advice
    assert "collective already" not in single.advice
    assert "collective already" in together.advice
    assert "a collective write" not in together.advice
    for hint in ("MPI_File_set_view", "romio_ds_write=disable", "fill the holes"):
        assert hint in together.advice


def test_bytes_read_for_holes_are_those_that_info_states(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A read that ends with the file is one of two for one write."""
    run = io_run(tmp_path / "a", [sieved("MPI_File_write_at_all")] * 4)
    expected = 4 * (16 * HOLE + 3 * HOLE // 4)
    assert finding(run, "read-modify-write").evidence["read_bytes"] == expected
    assert main(["info", run.path, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["layer_traffic"]
    assert sum(row["read_in_writes_bytes"] for row in rows) == expected


def test_bytes_between_syncs_are_those_of_the_files_that_are_synced(tmp_path: Path) -> None:
    calls = []
    for number in range(40):
        calls += [Made("pwrite", 5, 28, number * 28), Made("fsync", 3000)]
        if number % 4 == 0:
            calls.append(Made("pwrite", 200, MIB, number * MIB, file=2))
    found = finding(io_run(tmp_path / "a", [calls], TWO), "sync-per-write")
    assert (found.evidence["writes_per_sync"], found.evidence["bytes_per_sync"]) == (1, 28)
    assert "a sync after every write (28 B): 40 syncs" in found.title


def test_syncs_of_a_small_log_are_found_beside_large_files_that_are_not_synced(tmp_path: Path) -> None:
    calls = []
    for number in range(40):
        calls += [Made("pwrite", 5, 28, number * 28), Made("fsync", 3000)]
        calls += [Made("pwrite", 200, MIB, (5 * number + part) * MIB, file=2) for part in range(5)]
    assert finding(io_run(tmp_path / "a", [calls], TWO), "sync-per-write").severity == "critical"


def random_reads(seed: int, slow_us: float, count: int = 240) -> list[Made]:
    """Reads in no order: one of four waits for the disk, the others find the page in memory."""
    rng = np.random.default_rng(seed)
    places = rng.permutation(8 * count)[:count] * 16 * KIB
    return [Made("pread", slow_us if rng.random() < 0.25 else 19, 16 * KIB, at) for at in places.tolist()]


def test_jumps_whose_cost_is_next_to_nothing_or_most_of_the_run_are_refused(tmp_path: Path) -> None:
    cold = io_run(tmp_path / "a", [random_reads(seed, 1500) for seed in range(2)], head=PLAIN)
    assert "seek-heavy" not in found_ids(cold)
    text = refusal(cold, "seek-heavy")
    assert "it could cost up to" in text
    assert "record a run that reads the same bytes in their order" in text


def test_jumps_that_all_cost_much_are_a_finding(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    tasks = [[each._replace(us=rng.uniform(40, 90)) for each in random_reads(seed, 0)] for seed in range(2)]
    assert "seek-heavy" in found_ids(io_run(tmp_path / "a", tasks, head=PLAIN))


def test_a_mean_of_few_long_calls_is_not_what_each_takes(tmp_path: Path) -> None:
    calls = [Made("stat", 6350 if number == 13 else 20) for number in range(15)]
    found = finding(io_run(tmp_path / "a", [calls]), "metadata-storm")
    # 14 calls take 20 µs: the bins of durations are quarters of octaves.
    assert ", usually " in found.title
    usual_us = float(found.title.split("usually ")[1].split(" µs")[0])
    assert usual_us == pytest.approx(20, rel=0.1)
    assert "take 442 µs each on average" in found.title
    even = finding(io_run(tmp_path / "b", [[Made("stat", 400)] * 15]), "metadata-storm")
    assert "take 400 µs each" in even.title


def steps(rank: int, late: int, call: str, count: int = 5, us: float = 20_000) -> list[Made]:
    """One rank computes before each collective call, in which the others wait for it."""
    calls = [Made("pwrite", 10, KIB, rank * KIB)]
    for _ in range(count):
        calls[-1] = calls[-1]._replace(gap_us=us if rank == late else 1)
        calls.append(Made(call, 100 if rank == late else us + 99, KIB, rank * KIB))
    return calls


@pytest.mark.parametrize("call", ["MPI_File_write_at_all", "MPI_Allreduce"])
def test_the_task_that_enters_collective_calls_late_is_named(
    call: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = io_run(tmp_path / "a", [steps(rank, 2, call) for rank in range(4)])
    found = en.diagnose(run)
    assert found.late_entry is not None
    assert (found.late_entry.rank, found.late_entry.call, found.late_entry.calls) == (2, call, 5)
    assert found.late_entry.late_s == pytest.approx(5 * 0.02, rel=0.01)
    words = " ".join(str(found).split())
    assert "ank 2 enters collective calls later than the others" in words or found.late_outside is not None
    assert main(["phases", run.path]) == 0
    assert f"in 5 calls of {call}; they wait for it" in " ".join(capsys.readouterr().out.split())
    assert main(["phases", run.path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["late_entry"] == found.to_json()["late_entry"]
    page = tmp_path / "report.html"
    assert main(["report", run.path, "-o", str(page)]) == 0
    text = html.unescape(page.read_text().replace("\xa0", " "))
    # Also what takes the time, which is the only lead where there is no finding.
    waits = [each.title for each in found.findings if each.id == "late-task"]
    assert waits == [] or str(found.late_entry) in waits[0]
    assert found.below
    for said in found.below:
        assert f"<p>{sentence(said)}</p>" in text


def test_a_task_that_is_late_because_of_its_io_is_left_to_findings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def slow(rank: int) -> list[Made]:
        calls = []
        for step in range(8):
            calls.append(Made("pwrite", 30_000 if rank == 2 else 10_000, MIB, (4 * step + rank) * MIB))
            calls.append(Made("MPI_Barrier", 100 if rank == 2 else 20_100))
        return calls

    run = io_run(tmp_path / "a", [slow(rank) for rank in range(4)])
    found = en.diagnose(run)
    assert "straggler-task" in {each.id for each in found.findings}
    assert found.late_entry is None
    assert main(["phases", run.path]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "Rank 2 enters collective calls later" in told
    assert "it is 160 ms longer in I/O calls, which ensio diagnose examines" in told


@pytest.mark.parametrize("computes", [False, True])
def test_late_for_a_barrier_because_of_the_collective_call_before_it(
    computes: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An aggregator leaves collective writes later; or it has entered them later, and is named for that."""

    def writes(rank: int) -> list[Made]:
        calls = [Made("pwrite", 10, KIB, rank * KIB)]
        alone_us = 20_000 if rank == 2 else 0
        for step in range(8):
            calls[-1] = calls[-1]._replace(gap_us=1 + alone_us * computes)
            calls.append(Made("MPI_File_write_at_all", 1_000 + alone_us * (not computes), KIB, step * KIB))
            calls.append(Made("MPI_Barrier", 20_100 - alone_us))
        return calls

    run = io_run(tmp_path / "a", [writes(rank) for rank in range(4)])
    late = en.diagnose(run).late_entry
    assert main(["phases", run.path]) == 0
    told = " ".join(capsys.readouterr().out.split())
    if computes:
        assert late is not None
        assert (late.rank, late.call, late.calls) == (2, "MPI_File_write_at_all", 8)
        assert late.late_s == pytest.approx(0.16, rel=0.01)
        assert "in 8 calls of MPI_File_write_at_all; they wait for it inside: look at what" in told
    else:
        assert late is None
        assert "of MPI_Barrier; they wait for it inside: it is 160 ms longer in I/O calls" in told


def test_without_a_late_task_none_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = io_run(tmp_path / "a", [steps(rank, -1, "MPI_File_write_at_all") for rank in range(4)])
    assert en.diagnose(run).late_entry is None
    assert main(["phases", run.path]) == 0
    assert "enters collective calls" not in capsys.readouterr().out


def entries(start: list[list[int]], duration: list[list[int]]) -> CollectiveEntries:
    """Barriers: a list for each task, of its calls."""
    rank = [task for task, calls in enumerate(start) for _ in calls]
    columns = {
        "call": [0] * len(rank),
        "rank": rank,
        "start": [each for calls in start for each in calls],
        "duration": [each for calls in duration for each in calls],
    }
    events = Events.partly(columns, (Call("MPI_Barrier", "mpisync", "wait"),), ("",))
    whole, parts = CollectiveEntries(), (CollectiveEntries(), CollectiveEntries())
    whole.add(events)
    for part, chosen in zip(parts, (events.rank % 2 == 0, events.rank % 2 == 1), strict=True):
        part.add(events[chosen])
    parts[0].merge(parts[1])
    for name, column in arrays_of(whole).items():
        np.testing.assert_array_equal(arrays_of(parts[0])[name], column)
    return whole


SECOND = 10**9
ON_TIME = [0, 10, 20, 30, 40]


@pytest.mark.parametrize(
    ("start", "duration", "rank"),
    [
        ([ON_TIME, ON_TIME, [4, 13, 21, 31, 41]], [[5, 4, 2, 2, 2]] * 2 + [[1] * 5], 2),
        # It is late once, as if another program had its processor, or in three of five calls.
        ([ON_TIME, ON_TIME, [9, 10, 20, 30, 40]], [[10, 1, 1, 1, 1]] * 2 + [[1] * 5], None),
        ([ON_TIME, ON_TIME, [9, 11, 21, 30, 40]], [[10, 2, 2, 1, 1]] * 2 + [[1] * 5], None),
        # It comes late, and the others did not wait for it.
        ([[0, 10, 20]] * 2 + [[4, 13, 20]], [[1, 1, 1]] * 3, None),
        # Tasks are late in turns.
        ([[0, 14, 20], [4, 10, 20], [0, 10, 20]], [[5, 1, 1], [1, 5, 1], [5, 5, 1]], None),
        # Calls of another number belong to other meetings.
        ([[0, 10, 20], [0, 10, 20], [4, 13]], [[5, 4, 1], [5, 4, 1], [1, 1]], None),
        # What happens twice is not a habit.
        ([[0, 10]] * 2 + [[4, 13]], [[5, 4]] * 2 + [[1, 1]], None),
        ([[0, 10, 20]], [[5, 5, 5]], None),
    ],
    ids=["late", "once", "not by habit", "none waits", "in turns", "other calls", "twice", "one task"],
)
def test_only_a_task_for_which_others_wait_enters_late(start, duration, rank) -> None:
    found = late_entry(
        entries(*([[each * SECOND for each in calls] for calls in times] for times in (start, duration))),
        len(start),
        run_s=20.0,
    )
    assert (None if found is None else found.rank) == rank
    if found is not None:
        # Late by 4, 3 and three times 1 s.
        assert found.late_s == pytest.approx(10)


def test_what_clocks_may_be_wrong_by_is_not_lateness() -> None:
    times = [[[0] * 5] * 2 + [[SECOND] * 5], [[SECOND + 1] * 5] * 2 + [[1] * 5]]
    assert late_entry(entries(*times), 3, 2.0, clock_error_ns=0) is not None
    assert late_entry(entries(*times), 3, 2.0, clock_error_ns=SECOND) is None


def test_time_above_storage_in_counters_is_told_and_bounds_sieving() -> None:
    (log,) = (Path(darshan.__file__).parent / "examples" / "example_logs").glob("shane_macsio*")
    found = en.diagnose(en.open(str(log)))
    records = darshan.DarshanReport(str(log), read_all=True).records
    times = {}
    for module, slowest in (("H5D", 0.0), ("MPI-IO", 0.0), ("POSIX", 0.0)):
        prefix = "MPIIO" if module == "MPI-IO" else module
        table = records[module].to_df()["fcounters"]
        kinds = [table[f"{prefix}_F_{kind}_TIME"].sum() for kind in ("READ", "WRITE", "META")]
        slowest = table[f"{prefix}_F_SLOWEST_RANK_TIME"].max()
        times[module] = (sum(kinds), slowest)
    (sieving,) = (each for each in found.findings if each.id == "read-modify-write")
    assert sieving.gain_s == (0.0, pytest.approx(times["MPI-IO"][1]))
    assert sieving.gain_s[1] > 10 * times["POSIX"][1]
    assert "Where writes are collective already" in sieving.advice
    assert found.account is not None
    (above,) = (each for each in found.account.entries if each.id == "above-storage")
    assert above.call == "H5D"
    # STDIO has 17 short calls.
    of_files_s = records["H5F"].to_df()["fcounters"]["H5F_F_META_TIME"].sum()
    above_s = (times["H5D"][0] + of_files_s - times["POSIX"][0]) / 16
    assert 0 < above.time_s < above_s < found.account.io_s  # a part may be of read-modify-write
    assert "in a library outside of storage calls" in " ".join(str(found).split())


def writer(rank: int, mib: float = 4.0, others: str | None = None, late: bool = True) -> list[Made]:
    """Rank 0 writes for all in each of eight steps, and the others wait for it in a barrier."""
    calls = []
    for step in range(8):
        if rank == 0:
            calls.append(Made("pwrite", 40_000, int(mib * MIB), int(step * mib * MIB)))
            calls.append(Made("MPI_Barrier", 10))
            continue
        if others:
            calls.append(Made(others, 10))
        # Where they compute meanwhile, no task waits.
        calls.append(Made("MPI_Barrier", 40_000 if late else 10, gap_us=1.0 if late else 40_000))
    return calls


def test_the_time_of_a_lone_writer_is_in_the_calls_inside_those_of_mpi(tmp_path: Path) -> None:
    def through_mpi(calls: list[Made]) -> list[Made]:
        inside = {"name": "MPI_File_write_at", "gap_us": 1.0}
        return [call._replace(**inside, inside=(call,)) if call.name == "pwrite" else call for call in calls]

    ones = []
    for name, change in (("plain", list), ("mpi", through_mpi)):
        found = en.diagnose(io_run(tmp_path / name, [change(writer(rank)) for rank in range(4)]))
        ones.append(next(each for each in found.findings if each.id == "imbalance"))
    assert ones[1].evidence["moved_bytes"] == ones[0].evidence["moved_bytes"] == 32 * MIB
    assert ones[1].gain_s == pytest.approx(ones[0].gain_s, rel=0.01)


def test_tasks_wait_for_the_one_that_gathers_their_bytes_and_writes_them(tmp_path: Path) -> None:
    def gathered(rank: int, late: bool) -> list[Made]:
        calls = writer(rank) if late else writer(rank, late=False)
        return [call._replace(name=call.name.replace("Barrier", "Gather")) for call in calls]

    for late in (True, False):
        found = en.diagnose(io_run(tmp_path / f"{late}", [gathered(rank, late) for rank in range(4)]))
        named = [each.title for each in found.findings if each.id == "imbalance"]
        assert len(named) == late
        assert all("wait for it in MPI_Gather" in title for title in named)


def test_few_bytes_that_one_task_syncs_in_each_step_are_not_called_clean(tmp_path: Path) -> None:
    def calls(rank: int) -> list[Made]:
        write = Made("pwrite", 400, MIB // 2, rank * MIB)
        sync = [Made("pwrite", 10, 64, 0), Made("fsync", 5_000)] if rank == 0 else []
        return [write, *sync, Made("MPI_Barrier", 10 if rank == 0 else 5_022)] * 20

    found = en.diagnose(io_run(tmp_path / "a", [calls(rank) for rank in range(3)]))
    (left,) = [each for each in found.not_examined if each.id == "sync-per-write"]
    assert "20 syncs of few bytes in 20 phases, by 1 task (0), take 5.00 ms each" in left.reason
    assert left.at_most_s == pytest.approx(0.1, rel=0.05)


@pytest.mark.parametrize("others", [None, "open"])
def test_one_task_that_writes_for_all_is_named_though_the_others_make_no_call(
    others: str | None, tmp_path: Path
) -> None:
    found = en.diagnose(io_run(tmp_path / "a", [writer(rank, others=others) for rank in range(4)]))
    one = next(each for each in found.findings if each.id == "imbalance")
    assert "task 0 alone of 4 moves data in 8 phases, 32.0 MiB in all" in one.title
    assert one.severity in ("warning", "critical")
    # At best, each task writes a quarter in a quarter of the 40 ms; as many share the disk.
    assert one.gain_s is not None
    assert 0 < one.gain_s[0] < 0.5 * one.gain_s[1]
    assert one.gain_s[1] == pytest.approx(8 * 0.040 * 0.75, rel=0.15)
    assert found.late_entry is None  # the finding says it


def test_one_writer_is_no_imbalance_where_nobody_waits_or_parts_are_small(tmp_path: Path) -> None:
    busy = en.diagnose(io_run(tmp_path / "a", [writer(rank, late=False) for rank in range(4)]))
    small = en.diagnose(io_run(tmp_path / "b", [writer(rank, mib=0.5) for rank in range(4)]))
    for found in (busy, small):
        assert "imbalance" not in {each.id for each in found.findings}
        assert "imbalance" in found.examined
