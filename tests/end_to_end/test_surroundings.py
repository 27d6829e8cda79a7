"""What the recorder notes about user, versions, environment and file systems."""

import getpass
import os
import platform
import subprocess
from pathlib import Path

import pytest
from test_mpi import FLAVOURS

import ensembles

SECRETS = {
    "AWS_SECRET_ACCESS_KEY": "do-not-tell-1",
    "ENSIO_HISTORY": "postgresql://ann:do-not-tell-2@host/runs",
    "OMPI_MCA_orte_precondition_transports": "do-not-tell-3",
    "SLURM_JWT": "do-not-tell-4",
}

NOTED = ("ROMIO_", "MPICH_", "MPIR_", "HDF5_", "OMPI_MCA_", "I_MPI_", "OMP_", "SLURM_", "PBS_", "LSB_")


@pytest.fixture(autouse=True)
def surroundings_without_what_is_noted(monkeypatch):
    """What the shell has exported that the tests are started from is nothing to them."""
    for name in [name for name in os.environ if name.startswith(NOTED)]:
        monkeypatch.delenv(name)


def test_variables_that_bear_on_io_are_kept_and_no_others(recorder):
    program = recorder.build("every_call")
    told = {"ROMIO_HINTS": "/a b=c", "OMPI_MCA_fs_ufs_lock_algorithm": "1", "OMP_NUM_THREADS": "3"}
    (recorder.folder / "data").mkdir()
    recorder.execute(program, recorder.folder / "data", environment=told | SECRETS)
    run = ensembles.open(recorder.run)
    assert run.info.environment == told | {"ENSIO_DIR": str(recorder.run)}
    content = b"".join(path.read_bytes() for path in recorder.run.iterdir())
    assert b"do-not-tell" not in content
    assert run.info.user == getpass.getuser()
    assert run.info.libc_version == " ".join(platform.libc_ver())


def test_an_endless_environment_does_not_push_out_the_rest(preload):
    many = {f"ROMIO_{number}": "x" * 1000 for number in range(100)} | {"MPICH_LONG": "y" * 100_000}
    preload.execute("cat", "/etc/hostname", environment=many)
    run = ensembles.open(preload.run)
    assert 5 < len(run.info.environment) < 20
    assert all(
        value == "x" * 1000 for name, value in run.info.environment.items() if name.startswith("ROMIO")
    )
    assert "/" in {mount.point for mount in next(iter(run.info.mounts.values()))}


def test_user_without_a_name_is_known_by_number(preload):
    done = subprocess.run(["setpriv", "--reuid=54321", "true"], capture_output=True)
    if done.returncode != 0:
        pytest.skip(f"another user's number cannot be taken here: {done.stderr.decode().strip()}")
    for parent in preload.run.parents:
        if not parent.stat().st_mode & 1:  # pytest keeps its folders to their owner
            parent.chmod(0o755)
    preload.copy_library(preload.folder)
    preload.run.mkdir(mode=0o700)
    os.chown(preload.run, 54321, 54321)
    environment = {
        key: value for key, value in preload.environment().items() if key not in ("USER", "LOGNAME")
    }
    subprocess.run(["setpriv", "--reuid=54321", "cat", "/etc/hostname"], env=environment, check=True)
    assert {
        process.user
        for process in ensembles.open(preload.run).info.processes
        if process.program.endswith("cat")
    } == {"54321"}


def test_mounts_are_those_that_the_system_lists(preload):
    preload.execute("cat", "/etc/hostname")
    run = ensembles.open(preload.run)
    mounts = run.info.mounts[platform.node()]
    listed = subprocess.run(["findmnt", "-rno", "TARGET,FSTYPE"], capture_output=True, text=True, check=True)
    real = {tuple(line.split(" ")) for line in listed.stdout.splitlines()}
    # Those of tests that run beside this one come and go.
    lasting = [mount for mount in mounts if " " not in mount.point and "/pytest-of-" not in mount.point]
    assert {(mount.point, mount.type) for mount in lasting} <= real
    assert not {mount.type for mount in mounts} & {"proc", "sysfs", "cgroup", "devpts", "mqueue"}
    assert ("/", run.info.filesystem_of("/etc/hostname").type) in real
    assert run.info.filesystem_of("/etc/hostname").block_bytes == os.statvfs("/").f_bsize


def test_behind_a_symbolic_link_the_file_system_is_that_of_the_file(preload, tmp_path):
    there = Path("/dev/shm") / f"ensio-{os.getpid()}"
    there.mkdir()
    try:
        (there / "file").write_text("x")
        (tmp_path / "link").symlink_to(there)
        preload.execute("cat", tmp_path / "link/file", "/etc/hostname")
    finally:
        (there / "file").unlink()
        there.rmdir()
    run = ensembles.open(preload.run)
    path = str(tmp_path / "link/file")
    assert run.info.file_facts == {path: {"mount": "/dev/shm"}}
    assert run.info.filesystem_of(path).type == "tmpfs"
    assert run.info.filesystem_of("/etc/hostname").point == "/"


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_mpi_tells_its_version_and_one_process_tells_of_the_node(recorder, flavour):
    program = recorder.build("mpi_meets", compiler=f"mpicc.{flavour}")
    run = recorder.tasks(flavour, program, tasks=3, ENSIO_JOBFILE="keep")
    assert run.info.mpi_version.startswith({"openmpi": "Open MPI v", "mpich": "MPICH Version"}[flavour])
    assert "\n" not in run.info.mpi_version
    told = [path for path in recorder.run.glob("*.spool") if b"mounts=" in path.read_bytes()]
    assert len(told) == 1


def test_table_of_mounts_is_read_once_at_the_start(recorder, tmp_path):
    log = tmp_path / "log"
    command = ("strace", "-f", "-e", "trace=open,openat", "-o", log, recorder.build("acknowledge"))
    recorder.execute(*command, tmp_path / "out", 10, check=True)
    assert log.read_text().count("/proc/self/mountinfo") == 1
