"""Every command line of the README is run, in its order, as a new user would type it."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig

import pytest
from places import BUILD, PROGRAMS, ROOT

from ensembles.cli.replay_program import ANY_TASKS

README = (ROOT / "README.md").read_text()
SHOWN, OTHERS = re.search(r"```\n(.*?)```", README, re.S)[1], re.sub(r"(?s)```.*?```", "", README)
LINES = [line[4:] for line in OTHERS.splitlines() if line.startswith("    ")]
STARTS = ("ensio ", "ensio-cc ", "ENSIO_DIR=")
COMMANDS = [line for line in LINES if line.startswith(STARTS)]
INSTALL = [line for line in LINES if line.startswith(("cmake ", "pip "))]
# What mpi_writes.c does in eight tasks.
MADE_CALLS = {"MPI_Init": 8, "write": 108, "open": 8, "close": 8, "MPI_Finalize": 8}
PYTHON = re.search(r"(?:^    .*\n)*^    import ensembles\n(?:^    .*\n)*", README, re.M)[0]


@pytest.fixture
def environment():
    mpi = {
        **ANY_TASKS,
    }
    path = f"{BUILD}/bin:{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    return (
        {key: value for key, value in os.environ.items() if not key.startswith("ENSIO_")}
        | mpi
        | {"PATH": path}
    )


def shell(command, folder, environment):
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_commands_do_what_they_say(tmp_path, environment):
    assert len(COMMANDS) >= 10
    subprocess.run(["mpicc", "-c", PROGRAMS / "mpi_writes.c", "-o", tmp_path / "app.o"], check=True)
    subprocess.run(["mpicc", tmp_path / "app.o", "-o", tmp_path / "app"], check=True)
    for command in COMMANDS:
        shell(command, tmp_path, environment)
    diagnosis = next(line for line in COMMANDS if line.startswith("ensio diagnose example"))
    assert SHOWN in shell(diagnosis, tmp_path, environment)
    for run in ("run", "relinked", "other-run"):
        assert counts(shell(f"ensio info {run}", tmp_path, environment)) == MADE_CALLS
    assert (tmp_path / "report.html").stat().st_size > 1e5
    snippet = "\n".join(line[4:] for line in PYTHON.splitlines())
    printed = subprocess.run(
        [sys.executable, "-c", snippet], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "mean" in printed.stdout


def test_the_two_commands_of_dev_come_first_in_their_order():
    assert [line.split("#")[0].split() for line in LINES[:2]] == [["./dev", "demo"], ["./dev", "test"]]


@pytest.mark.long  # builds all once more; test_linking.py installs the build, test_packaging.py the package
def test_installed_prefix_and_package_work_without_the_sources(tmp_path, environment):
    assert len(INSTALL) == 2
    sources, prefix, packages = tmp_path / "sources", tmp_path / "prefix", tmp_path / "venv"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in tracked.stdout.decode().split("\0")[:-1]:
        (sources / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, sources / name, follow_symlinks=False)
    # A fresh virtual environment, to which the requirements that are installed already are lent.
    subprocess.run([sys.executable, "-m", "venv", packages], check=True)
    (site,) = packages.glob("lib/python*/site-packages")
    (site / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    installed = environment | {
        "PATH": f"{prefix}/bin:{packages}/bin:{environment['PATH']}",
        "PIP_NO_DEPS": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    shell("pip wheel --quiet .", sources, installed)
    for command in INSTALL:
        shell(command.replace("PREFIX", str(prefix)), sources, installed)
    shutil.rmtree(sources)

    where = shell("command -v ensio ensio-cc ensio-replay", tmp_path, installed).split()
    assert all(found.startswith(str(tmp_path)) for found in where)
    licence = (ROOT / "LICENSE").read_bytes()
    assert (prefix / "share" / "doc" / "ensio" / "LICENSE").read_bytes() == licence
    assert [copy.read_bytes() for copy in site.glob("ensio-*.dist-info/**/LICENSE")] == [licence]
    shell("ensio replay ior --tasks 2 --set block_bytes=64KiB -o replayed", tmp_path, installed)
    shell("ensio run -o preloaded -- dd if=/dev/zero of=data bs=1k count=5", tmp_path, installed)
    assert counts(shell("ensio info replayed", tmp_path, installed))["write"] == 10
    assert counts(shell("ensio info preloaded", tmp_path, installed))["write"] == 5
    shell("ensio report replayed -o replayed.html", tmp_path, installed)
    compiled = "from ensembles import _compiled; print(_compiled.__file__)"
    assert shell(f"python -c '{compiled}'", tmp_path, installed).startswith(str(packages))


def counts(info):
    """Call and count of each row of the table of ``ensio info``."""
    rows = re.findall(r"^(\w+) +([\d,]+) .*%", info, re.M)
    return {name: int(count.replace(",", "")) for name, count in rows}
