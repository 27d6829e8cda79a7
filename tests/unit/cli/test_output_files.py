"""Where ``-o`` points at something that is not an ordinary file, that something stays what it is."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from commands_here import executed
from synthetic_runs import synthetic_run

pytestmark = pytest.mark.slow

ENSIO = (sys.executable, "-m", "ensembles.cli.main")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    synthetic_run(folder, 2, 12)
    return folder


def ensio(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([*ENSIO, *map(str, arguments)], capture_output=True, text=True, timeout=600)
    assert "Traceback" not in done.stderr
    return done


def csv_of(run: Path) -> str:
    return executed("events", run, "--format", "csv").stdout


@pytest.mark.each_once
@pytest.mark.parametrize("command", ["report", "events", "collect"])
@pytest.mark.parametrize("linked", [False, True])
def test_device_stays_a_device(run: Path, tmp_path: Path, command: str, linked: bool) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a device")
    device = tmp_path / "null"
    os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    try:
        with open(device, "wb"):
            pass
    except PermissionError:
        pytest.skip("this file system has no devices")
    destination = tmp_path / "link" if linked else device
    if linked:
        destination.symlink_to(device)
    done = executed(command, run, "-o", destination)
    assert stat.S_ISCHR(device.stat().st_mode)
    assert destination.is_symlink() == linked
    assert sorted(path.name for path in tmp_path.iterdir()) == (["link", "null"] if linked else ["null"])
    # HDF5 cannot write to a device, and says so.
    assert done.returncode == (2 if command == "collect" else 0), done


@pytest.mark.each_once
@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("command", ["report", "events", "collect"])
def test_link_stays_a_link_and_its_file_is_written(
    run: Path, tmp_path: Path, command: str, there: bool
) -> None:
    (tmp_path / "deep").mkdir()
    target, link = tmp_path / "deep" / "target", tmp_path / "link"
    link.symlink_to(target)
    if there:
        target.write_text("old")
    assert executed(command, run, "-o", link).returncode == 0
    assert link.is_symlink()
    assert target.stat().st_size > 100
    assert [path.name for path in target.parent.iterdir()] == ["target"]


def test_pipe_with_a_name_is_written_to(run: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    seen: list[str] = []
    reader = threading.Thread(target=lambda: seen.append(pipe.read_text()), daemon=True)
    reader.start()
    assert executed("events", run, "--format", "csv", "-o", pipe).returncode == 0
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    reader.join(timeout=600)
    assert seen == [csv_of(run)]


@pytest.fixture(params=["link", "/dev/fd/1", "/proc/self/fd/1"])
def stdout_name(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A name of standard output. The link stands for ``/dev/stdout``, which a failure must not replace."""
    if request.param != "link":
        return request.param
    link = tmp_path / "stdout"
    link.symlink_to("/proc/self/fd/1")
    return str(link)


def test_standard_output_by_name_into_a_pipe(run: Path, stdout_name: str) -> None:
    assert ensio("events", run, "--format", "csv", "-o", stdout_name).stdout == csv_of(run)


def test_standard_output_by_name_into_a_file_keeps_what_is_in_it(
    run: Path, tmp_path: Path, stdout_name: str
) -> None:
    script = f'echo first; "$@" events {run} --format csv -o {stdout_name}; echo last'
    path = tmp_path / "all"
    with open(path, "w") as file:
        subprocess.run(["sh", "-c", script, "sh", *ENSIO], stdout=file, timeout=600, check=True)
    assert path.read_text() == f"first\n{csv_of(run)}last\n"


def test_report_on_standard_output_by_name_is_whole(run: Path, tmp_path: Path, stdout_name: str) -> None:
    path = tmp_path / "report.html"
    with open(path, "w") as file:
        command = [*ENSIO, "report", str(run), "-o", stdout_name]
        subprocess.run(command, stdout=file, timeout=600, check=True)
    text = path.read_text()
    assert text.startswith("<!DOCTYPE html>")
    assert "</html>" in text


def test_longest_name_that_the_file_system_takes(run: Path, tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    assert executed("events", run, "--format", "csv", "-o", path).returncode == 0
    assert path.read_text() == csv_of(run)
