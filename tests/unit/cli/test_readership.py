"""What is made from a run can be read by those who can read the run, whatever the umask."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from made_spools import made_events, spool
from project import BUILD

from ensembles.cli.main import main
from ensembles.run.collect import collect

pytestmark = pytest.mark.slow


COMMANDS = {
    "report": ["report", "RUN", "-o", "OUT"],
    "events": ["events", "RUN", "--format", "csv", "-o", "OUT"],
    "parquet": ["events", "RUN", "--format", "parquet", "-o", "OUT"],
    "collect": ["collect", "RUN", "-o", "OUT"],
    **{to: ["export", "RUN", "--to", to, "OUT"] for to in ("hdf5", "csv", "perfetto", "otf2")},
    "export to parquet": ["export", "RUN", "--to", "parquet", "OUT"],
}

OTHER_GROUP = 12345


@pytest.fixture(autouse=True)
def tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tree's own ensio-otf2."""
    monkeypatch.setenv("PATH", f"{BUILD / 'bin'}:{os.environ['PATH']}")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run directory as the recorder makes it: 0700, and 0600 what is in it."""
    folder = tmp_path / "run"
    for rank in range(2):
        spool(folder / f"{rank}.spool", [made_events(50, rank)], rank=rank, tasks=2)
    opened(folder, 0o700, 0o600)
    return folder


def opened(run: Path, folder: int, files: int) -> None:
    """Change who can read a run."""
    run.chmod(folder)
    for path in run.iterdir():
        path.chmod(files)


def made(command: str, run: Path, output: Path, umask: int) -> set[int]:
    """Run a command under a umask; the modes of what it made, those of folders without the right to enter."""
    words = [{"RUN": str(run), "OUT": str(output)}.get(word, word) for word in COMMANDS[command]]
    before = os.umask(umask)
    try:
        assert main(words) == 0
    finally:
        os.umask(before)
    return {
        stat.S_IMODE(path.stat().st_mode) & (~0o111 if path.is_dir() else 0o777)
        for path in (output, *output.rglob("*"))
    }


@pytest.mark.parametrize("umask", [0, 0o022])
@pytest.mark.parametrize("command", COMMANDS)
def test_of_a_private_run_only_the_owner_can_read_anything(
    run: Path, tmp_path: Path, command: str, umask: int
) -> None:
    assert made(command, run, tmp_path / "out", umask) == {0o600}
    if (run / "trace.h5").exists():  # made on the way
        assert stat.S_IMODE((run / "trace.h5").stat().st_mode) == 0o600


@pytest.mark.parametrize("command", COMMANDS)
def test_of_a_run_that_was_opened_for_its_group_the_group_can(
    run: Path, tmp_path: Path, command: str
) -> None:
    opened(run, 0o750, 0o640)
    assert made(command, run, tmp_path / "out", 0) == {0o640}


@pytest.mark.parametrize(
    ("folder", "files", "umask", "mode"),
    [
        (0o755, 0o644, 0, 0o644),
        (0o777, 0o666, 0, 0o644),
        (0o755, 0o644, 0o027, 0o640),
        (0o755, 0o644, 0o077, 0o600),
        (0o755, 0o600, 0, 0o600),  # its files are closed
        (0o700, 0o644, 0, 0o600),  # its folder is
        (0o744, 0o644, 0, 0o600),  # no user can enter it
        (0o750, 0o644, 0, 0o640),
        (0o705, 0o604, 0, 0o600),  # the group is kept out, which a file of another group would let in
    ],
)
def test_as_far_as_the_run_and_the_umask_let_them(
    run: Path, tmp_path: Path, folder: int, files: int, umask: int, mode: int
) -> None:
    opened(run, folder, files)
    assert made("csv", run, tmp_path / "out", umask) == {mode}


def test_a_collected_run_is_as_open_as_the_spools(run: Path) -> None:
    opened(run, 0o750, 0o640)
    before = os.umask(0)
    collect(str(run))
    os.umask(before)
    assert stat.S_IMODE((run / "trace.h5").stat().st_mode) == 0o640


def test_of_a_single_file_its_mode_counts(run: Path, tmp_path: Path) -> None:
    (run / "0.spool").chmod(0o640)
    assert made("csv", run / "0.spool", tmp_path / "out", 0) == {0o640}


def test_another_group_cannot_read_what_the_runs_group_can(run: Path, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a run to another group")
    opened(run, 0o750, 0o640)
    for path in (run, *run.iterdir()):
        os.chown(path, -1, OTHER_GROUP)
    assert made("csv", run, tmp_path / "out", 0) == {0o600}
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", -1, OTHER_GROUP)
    (tmp_path / "theirs").chmod(0o2770)  # what is made there belongs to that group
    assert made("csv", run, tmp_path / "theirs" / "out", 0) == {0o640}


@pytest.mark.parametrize(("run_is_open", "old", "mode"), [(False, 0o666, 0o600), (True, 0o600, 0o600)])
def test_what_is_replaced_opens_nothing_and_stays_closed(
    run: Path, tmp_path: Path, run_is_open: bool, old: int, mode: int
) -> None:
    if run_is_open:
        opened(run, 0o755, 0o644)
    (tmp_path / "out").touch()
    (tmp_path / "out").chmod(old)
    assert made("csv", run, tmp_path / "out", 0) == {mode}
