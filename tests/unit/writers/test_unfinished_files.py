"""Nothing that was being written when its process was killed is read as if it were whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_spools import made_events, spool

import ensembles as en
from ensembles.run.collect import collect
from ensembles.writers.tracefile import tracefile
from ensembles.writers.tracefile.tracefile import FullDiskSafeFile

EVENTS = 3000


class Steps(FullDiskSafeFile):
    """Keeps what HDF5 writes, step by step."""

    taken: list[tuple[int, bytes | None]]

    def write(self, data: memoryview) -> int:  # type: ignore[override]
        self.taken.append((self.tell(), bytes(memoryview(data).cast("B"))))
        return super().write(data)

    def truncate(self, size: int | None = None) -> int:
        self.taken.append((self.tell() if size is None else size, None))
        return super().truncate(size)


@pytest.fixture
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What is in the file after each step of ``ensio collect``."""
    Steps.taken = []
    monkeypatch.setattr(tracefile, "FullDiskSafeFile", Steps)
    for rank in range(3):
        spool(tmp_path / "run" / f"{rank}.spool", [made_events(EVENTS, rank)], rank=rank, tasks=3)
    collect(str(tmp_path / "run"), str(tmp_path / "whole.h5"))
    content, found = bytearray(), []
    for position, data in Steps.taken:
        if data is None:
            content = content[:position].ljust(position, b"\0")
        else:
            content = content.ljust(position + len(data), b"\0")
            content[position : position + len(data)] = data
        found.append(bytes(content))
    assert found[-1] == (tmp_path / "whole.h5").read_bytes()
    return found


def test_no_step_of_collect_but_the_last_leaves_a_file_that_is_read(
    tmp_path: Path, steps: list[bytes]
) -> None:
    """As when it was killed then, and the user gave its unfinished file the name of a whole one."""
    assert len(steps) > 50
    path = tmp_path / "renamed" / "trace.h5"
    path.parent.mkdir()
    unfinished = [content for content in steps if content != steps[-1]]
    for content in unfinished:
        path.write_bytes(content)
        with pytest.raises(en.EnsioError, match=r"trace\.h5 is (unfinished|not a complete trace\.h5)"):
            len(en.open(path).events)
        with pytest.raises(en.EnsioError, match=r"trace\.h5 is (unfinished|not a complete trace\.h5)"):
            en.open(path.parent)  # there is nothing else in the directory


def test_beside_its_spools_it_is_passed_over(tmp_path: Path, steps: list[bytes]) -> None:
    for content in steps[:: len(steps) // 8]:
        (tmp_path / "run" / "trace.h5").write_bytes(content)
        assert len(en.open(tmp_path / "run").events) == 3 * EVENTS


def test_what_is_left_under_its_temporary_name_is_no_part_of_a_run(
    tmp_path: Path, steps: list[bytes]
) -> None:
    (tmp_path / "run" / ".ensio-0123456789ab.part").write_bytes(steps[-1])
    assert len(en.open(tmp_path / "run").events) == 3 * EVENTS


@pytest.mark.parametrize(
    "name",
    ["trace.h5", "renamed", "job.ensio", ".ensio-0123456789ab.part", "a.darshan", "a.strace", "a.pfw"],
)
def test_a_beginning_that_was_never_written_is_told_as_such(tmp_path: Path, name: str) -> None:
    """Its first bytes are written last."""
    (tmp_path / name).write_bytes(bytes(4096) + b"something")
    with pytest.raises(
        en.EnsioError, match="is unfinished or damaged, its first bytes are zeros: write or copy"
    ):
        en.open(tmp_path / name)


def test_an_unfinished_job_file_costs_nothing_but_a_note(tmp_path: Path) -> None:
    spool(tmp_path / "a.spool", [made_events(10)], rank=0)
    (tmp_path / "job.ensio").write_bytes(bytes(4096) + b"something")
    run = en.open(tmp_path)
    assert len(run.events) == 10
    assert any("job.ensio is unfinished" in note for note in run.notes)
