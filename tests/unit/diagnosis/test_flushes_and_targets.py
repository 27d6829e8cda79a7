"""What waits for a target in syncs and closes, and what goes with calls that are left out."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from made_io import KIB, MIB, Made, io_run

import ensembles as en
from ensembles.diagnosis.diagnose import diagnose
from ensembles.diagnosis.rules import disk_waits, imbalance, slow_resources, small_requests

TARGETS = 6
STEP = [Made("MPI_Barrier", 1, file=0)]


def on_target(number: int) -> dict[str, str]:
    """Layout of a file of one stripe."""
    packed = struct.pack("<II16sIHH", 0x0BD10BD0, 1, bytes(16), MIB, 1, 0) + struct.pack("<20xI", number)
    return {"lustre.lov": packed.hex()}


def own_files(folder: Path, tasks: list[list[Made]]) -> en.Run:
    """Make a run of which each task has a file, on one target after the other."""
    files = {rank + 1: f"/scratch/{rank}" for rank in range(len(tasks))}
    facts = {number: on_target((number - 1) % TARGETS) for number in files}
    return io_run(folder, tasks, files, facts)


def synced(rank: int, sync_us: float) -> list[Made]:
    file = rank + 1
    step = [Made("pwrite", 1000, MIB, file=file), Made("fsync", sync_us, file=file), *STEP]
    return [call._replace(offset=number * MIB) if call.size else call for number in range(5) for call in step]


def test_a_slow_target_shows_in_syncs_of_its_files(tmp_path: Path) -> None:
    """Files on target 3 take 1 + 100 ms in each of 5 steps, others 1 + 20 ms: 80 ms of each step are lost."""
    noisy = [20_000 + 400 * ((7 * rank) % 5) for rank in range(24)]
    slow = [synced(rank, 100_000 if rank % TARGETS == 3 else noisy[rank]) for rank in range(24)]
    (found,) = diagnose(own_files(tmp_path / "slow", slow), [slow_resources.slow_target]).findings
    assert found.evidence["target"] == 3
    assert found.evidence["slowdown"] == pytest.approx(101 / 21.8, rel=0.05)
    assert found.where.ranks == ((3, 3), (9, 9), (15, 15), (21, 21))
    assert found.gain_s[0] < 5 * 0.08 < found.gain_s[1]
    healthy = [synced(rank, noisy[rank]) for rank in range(24)]
    assert not diagnose(own_files(tmp_path / "healthy", healthy), [slow_resources.slow_target]).findings


LAYERS = [
    ("open", "pwrite", "close"),
    ("fopen", "fwrite", "fclose"),
    ("MPI_File_open", "MPI_File_write_at", "MPI_File_close"),
    ("H5Fopen", "H5Dwrite", "H5Fclose"),
]


@pytest.mark.parametrize("functions", LAYERS, ids=[names[0] for names in LAYERS])
@pytest.mark.parametrize(("close_us", "found"), [(500_000, True), (15_000, False)])
def test_a_close_is_compared_with_the_slowest_target(
    functions: tuple[str, str, str], close_us: float, found: bool, tmp_path: Path
) -> None:
    """1 MiB in the cache takes at most 21 ms at 50 MB/s, and each target has the file of one task.

    The lowest layer that was recorded shows it, whichever it is.
    """

    def calls(file: int) -> list[Made]:
        opens, writes, closes = functions
        step = [
            Made(opens, 100, file=file),
            Made(writes, 1000, MIB, 0, file=file),
            Made(closes, close_us, file=file),
            *STEP,
        ]
        return step * 4

    run = own_files(tmp_path / "run", [calls(rank + 1) for rank in range(TARGETS)])
    answer = diagnose(run, [disk_waits.close_cost])
    assert [finding.id for finding in answer.findings] == ["close-cost"] * found
    if found:
        assert answer.findings[0].confidence == pytest.approx(0.76)
        assert answer.findings[0].gain_s[1] >= 4 * (0.5 - 0.021)


def test_pieces_between_those_of_others_have_to_be_exchanged(tmp_path: Path) -> None:
    """Calls of 2 us save next to nothing if their pieces go to another task first; 100 us are worth it."""

    def severities(us: float, together: bool) -> list[str]:
        tasks = [
            [
                Made("pwrite", us, KIB, (rank * 2000 + number if together else number * 2 + rank) * KIB)
                for number in range(2000)
            ]
            for rank in range(2)
        ]
        run = io_run(tmp_path / f"{us}-{together}", tasks, starts_us=[0, 0.6 * us])
        return [finding.severity for finding in diagnose(run, [small_requests.rule]).findings]

    assert severities(2, together=True) == ["critical"]
    assert severities(2, together=False) in ([], ["note"])
    assert severities(100, together=False) == ["critical"]


@pytest.mark.parametrize("function", ["pwrite", "fwrite"])
def test_syncs_after_many_small_writes_are_found_by_their_bytes(tmp_path: Path, function: str) -> None:
    """A sync of 5 ms after every 30 writes of 1 KiB; all but one of 20 are saved."""

    def calls(size: int) -> list[Made]:
        writes = [Made(function, 3, size, number * size) for number in range(600)]
        return [
            call
            for number, write in enumerate(writes, 1)
            for call in ([write, Made("fsync", 5000)] if number % 30 == 0 else [write])
        ]

    (found,) = diagnose(io_run(tmp_path / "small", [calls(KIB)]), [disk_waits.sync_per_write]).findings
    assert (found.evidence["syncs"], found.evidence["bytes_per_sync"]) == (20, 30 * KIB)
    assert found.gain_s[0] < 19 * 5e-3 <= found.gain_s[1]
    assert not diagnose(io_run(tmp_path / "large", [calls(MIB)]), [disk_waits.sync_per_write]).findings


def test_tasks_with_more_bytes_also_flush_longer(tmp_path: Path) -> None:
    """Task 2 writes four times as much in 4 ms instead of 1, and its sync takes 80 ms instead of 20."""

    def calls(rank: int) -> list[Made]:
        count = 4 if rank == 2 else 1
        writes = [Made("pwrite", 1000, MIB, number * MIB) for number in range(count)]
        return [*writes, Made("fsync", 20_000 * count), *STEP] * 4

    (found,) = diagnose(
        io_run(tmp_path / "run", [calls(rank) for rank in range(8)]), [imbalance.rule]
    ).findings
    assert found.gain_s[0] > 0.2 * 4 * 0.06
    assert found.gain_s[1] > 4 * 0.06


@pytest.mark.parametrize(("us", "notable"), [(1000, True), (5, False)])
def test_bytes_that_one_task_moves_alone_are_refused_where_they_could_matter(
    tmp_path: Path, us: float, notable: bool
) -> None:
    """Task 0 writes a header of 24 MiB, then each of four tasks writes for 40 ms."""

    def calls(rank: int) -> list[Made]:
        header = [Made("pwrite", us, MIB, number * MIB) for number in range(24)]
        rest = [Made("pwrite", 1000, MIB, (24 + 40 * rank + number) * MIB) for number in range(40)]
        waits = Made("MPI_Barrier", 24 * (us + 1), file=0)
        return [Made("open", 1), *STEP, *([*header, *STEP] if rank == 0 else [waits]), *rest, *STEP]

    found = diagnose(io_run(tmp_path / "run", [calls(rank) for rank in range(4)]), [imbalance.rule])
    assert not found.findings
    reasons = [entry.reason for entry in found.not_examined]
    if notable:
        (reason,) = reasons
        assert reason.startswith(
            "it could cost up to 24.0 ms of this run: in some phases only 1 task (0) of 4 "
        )
    else:
        assert not reasons
