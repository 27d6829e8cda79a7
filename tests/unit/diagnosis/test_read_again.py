"""A task that reads the same bytes of a file again and again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from made_io import KIB, MIB, Made, io_run

import ensembles as en
from ensembles.diagnosis.finding import Finding


def redundant(run: en.Run) -> Finding | None:
    return next((each for each in en.diagnose(run).findings if each.id == "redundant-reads"), None)


def test_bytes_that_one_task_reads_in_each_step_can_stay_in_memory(tmp_path: Path) -> None:
    write = Made("pwrite", 400, MIB, 0)
    run = io_run(tmp_path / "a", [[write, *[Made("pread", 300, MIB, 0)] * 100]])
    found = redundant(run)
    assert found is not None
    assert found.severity == "critical"
    assert found.title.startswith("1 task reads the same bytes again and again: 100 MiB of 1 file")
    low, high = found.gain_s
    # Once for what the task has, and once for what it wrote.
    assert low == pytest.approx(0.5 * 98 * 300e-6, rel=0.05)
    assert high == pytest.approx(98 * 300e-6, rel=0.15)
    assert "keep them in memory" in found.advice


def test_a_file_read_through_and_one_that_changes_are_not_read_again(tmp_path: Path) -> None:
    through = [Made("pread", 300, MIB, number * MIB) for number in range(100)]
    assert redundant(io_run(tmp_path / "a", [through])) is None
    assert redundant(io_run(tmp_path / "b", [through * 2])) is None
    changed = [Made("pwrite", 400, MIB, 0), Made("pread", 300, MIB, 0)] * 100
    assert redundant(io_run(tmp_path / "c", [changed])) is None


@pytest.mark.parametrize("tasks", [1, 4])
@pytest.mark.parametrize("stalls", ["pread", "fsync", "unlink"])
def test_no_finding_rests_on_one_call_that_stalls(stalls: str, tasks: int, tmp_path: Path) -> None:
    def step(number: int, us: float) -> list[Made]:
        size = 64 * KIB * (stalls == "pread")
        call = Made(stalls, us, size, number % 16 * size, gap_us=500)
        return [call] if stalls == "pread" else [Made("open", 9), Made("pwrite", 9, 100, 100 * number), call]

    calls = [[call for number in range(64) for call in step(number, 20)] for _ in range(tasks)]
    calls[0][5:6] = [calls[0][5]._replace(us=9e6)] if stalls == "pread" else step(0, 9e6)
    for found in en.diagnose(io_run(tmp_path / "a", calls)).findings:
        assert found.severity == "note"
        assert found.gain_s[0] <= tasks * 64 * 60e-6


@pytest.mark.parametrize("part", [0, 1], ids=["whole", "parts"])
def test_a_file_that_is_read_whole_by_a_stream_after_each_open(part, tmp_path):
    """Reads of a stream have no offset: they follow the open, or a seek, each of which may go further."""

    def step(number: int) -> list[Made]:
        seek = Made("fseek", 1, 0, 128 + part * number * 12 * MIB)
        return [Made("fopen", 20), seek, Made("fread", 3000, 12 * MIB), Made("fclose", 5)]

    found = redundant(io_run(tmp_path / "a", [[each for at in range(40) for each in step(at)]]))
    assert (found is not None) == (part == 0)
    if found is not None:
        assert found.share_s == pytest.approx(39 * 3e-3, rel=0.01)


@pytest.mark.parametrize(("order", "what"), [(-1, "go backwards"), (0, "jump"), (1, "jump"), (2, "jump")])
def test_reads_in_descending_order_go_backwards(order, what, tmp_path):
    """Their rate is not that of the bytes in order, which no call shows."""
    places = np.arange(4000)[::-1] if order < 0 else np.random.default_rng(3 + order).permutation(4000)
    calls = [Made("pread", 60, 4 * KIB, int(place) * 16 * KIB) for place in places]
    found = en.diagnose(io_run(tmp_path / "a", [calls]))
    named = {each.id: each for each in found.findings}
    assert named["seek-heavy"].title.startswith(f"reads {what} through the file: 4,000 calls")
    assert "rate" not in {each.id for each in found.account.entries}


def test_no_larger_buffer_is_advised_where_reads_jump(tmp_path: Path) -> None:
    """A buffer fetches what is around each record: a larger one reads more for each of them."""
    places = np.random.default_rng(3).permutation(4000).tolist()

    def advice(*calls: Made) -> dict[str, str]:
        run = io_run(tmp_path / f"{len(list(tmp_path.iterdir()))}", [list(calls)])
        return {each.id: each.advice for each in en.diagnose(run).findings}

    last = Made("pread", 9, 100, 4127 * KIB)  # of another size class
    fetched = advice(*(Made("pread", 24, 127 * KIB, place * 4 * KIB) for place in places), last)
    assert "as small as a record" in fetched["redundant-reads"]
    records = [Made("pread", 9, 512, place * 128) for place in places]
    written = [Made("pwrite", 9, 256, number * 256) for number in range(4000)]
    assert "small-requests" not in advice(*records)
    assert "buffer of 1 MiB" in advice(*written)["small-requests"]
    both = advice(*written, *records)
    assert "seek-heavy" in both
    assert "buffer of 1 MiB" not in both["small-requests"]
    # A seek of a stream throws its buffer away.
    reads = [Made("fread", 9, 128)] * 4000
    assert "stdio-buffer" in advice(*reads)
    assert "stdio-buffer" not in advice(*(each for read in reads for each in (Made("fseek", 1, 0, 0), read)))


def test_bytes_of_several_tasks_are_all_that_they_read(tmp_path: Path) -> None:
    reads = [Made("pread", 3000, MIB, MIB * (at % 8)) for at in range(12)]
    found = redundant(io_run(tmp_path / "a", [reads] * 4))
    assert found is not None
    assert "48.0 MiB of 1 file" in found.title
    assert "8.00 MiB" in found.title
