"""Every command line of the README is run, in its order, as a new user would type it."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig

import pytest
from places import BUILD, PROGRAMS, ROOT

README = (ROOT / "README.md").read_text()
LINES = [line[4:] for line in README.splitlines() if line.startswith("    ")]
STARTS = ("ensio ", "ensio-cc ", "ENSIO_DIR=")
COMMANDS = [line for line in LINES if line.startswith(STARTS)]
INSTALL = [line for line in LINES if line.startswith(("cmake ", "pip "))]
# What mpi_writes.c does in eight tasks.
MADE_CALLS = {"MPI_Init": 8, "write": 108, "open": 8, "close": 8, "MPI_Finalize": 8}
PYTHON = re.search(r"(?:^    .*\n)*^    import ensembles\n(?:^    .*\n)*", README, re.M)[0]


@pytest.fixture
def environment():
    mpi = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "OMPI_MCA_mpi_yield_when_idle": "1",
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
    assert len(COMMANDS) >= 8
    subprocess.run(["mpicc", "-c", PROGRAMS / "mpi_writes.c", "-o", tmp_path / "app.o"], check=True)
    for command in COMMANDS:
        if command.startswith("ensio run -o run "):
            relinked = shell("ensio info run", tmp_path, environment)
            shutil.rmtree(tmp_path / "run")
            subprocess.run(["mpicc", PROGRAMS / "mpi_writes.c", "-o", tmp_path / "app"], check=True)
        printed = shell(command, tmp_path, environment)
        if command.startswith("ensio info"):
            assert counts(printed) == counts(relinked) == MADE_CALLS
    assert (tmp_path / "report.html").stat().st_size > 1e6
    snippet = "\n".join(line[4:] for line in PYTHON.splitlines())
    printed = subprocess.run(
        [sys.executable, "-c", snippet], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    longest, *statements = printed.stdout.splitlines()
    number, unit = longest.split()
    assert float(number) > 0
    assert unit == "ms"
    assert statements


WAYS = README.partition("\n## Ways in\n")[2].partition("\n## ")[0]


def block(first):
    """The indented lines of the section on ways in, from the one that begins so."""
    text = WAYS[WAYS.index(f"    {first}") :]
    return "\n".join(line[4:] for line in text.partition("\n\n")[0].splitlines()) + "\n"


def test_ways_in_are_as_described(tmp_path, environment):
    environment |= {"PKG_CONFIG_PATH": f"{BUILD}/lib/pkgconfig", "CMAKE_PREFIX_PATH": str(BUILD)}
    subprocess.run(["mpicc", "-c", PROGRAMS / "mpi_writes.c", "-o", tmp_path / "app.o"], check=True)
    links = block("mpicc").splitlines()
    assert len(links) == 2
    for number, command in enumerate(links):
        shell(command, tmp_path, environment)
        shell(f"ENSIO_DIR=run{number} mpiexec -n 2 ./app", tmp_path, environment)
        assert counts(shell(f"ensio info run{number}", tmp_path, environment))["write"] == 21
    head, *body = block("#include").splitlines()
    main = [
        "#include <fcntl.h>",
        "int main(void) {",
        *body[:-1],
        'open("f", O_CREAT, 0600);',
        body[-1],
        "return 0; }",
    ]
    (tmp_path / "main.c").write_text("\n".join([head, *main, ""]))
    project = "cmake_minimum_required(VERSION 3.20)\nproject(user C)\nadd_executable(app main.c)\n"
    (tmp_path / "CMakeLists.txt").write_text(project + block("find_package"))
    shell("cmake -S . -B build && cmake --build build && ENSIO_DIR=in-c build/app", tmp_path, environment)
    (tmp_path / "app.py").write_text(block("from ensembles.recorder.annotate"))
    shell("ensio run -o in-python -- python app.py", tmp_path, environment)
    for run in ("in-c", "in-python"):
        chosen = shell(
            f"ensio events {run} --region checkpoint --op open --format csv", tmp_path, environment
        )
        assert len(chosen.splitlines()) == 2
        assert "phase solve" in shell(f"ensio info {run}", tmp_path, environment)


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
    for command in INSTALL:
        shell(command.replace("PREFIX", str(prefix)), sources, installed)
    shutil.rmtree(sources)

    where = shell("command -v ensio ensio-cc ensio-replay", tmp_path, installed).split()
    assert all(found.startswith(str(tmp_path)) for found in where)
    licence = (ROOT / "LICENSE").read_bytes()
    assert (prefix / "share" / "doc" / "ensio" / "LICENSE").read_bytes() == licence
    assert [copy.read_bytes() for copy in site.glob("ensio-*.dist-info/**/LICENSE")] == [licence]
    shell("ensio replay ior --tasks 2 --block-size 64KiB -o replayed", tmp_path, installed)
    shell("ensio run -o preloaded -- dd if=/dev/zero of=data bs=1k count=5", tmp_path, installed)
    assert counts(shell("ensio info replayed", tmp_path, installed))["write"] == 10
    assert counts(shell("ensio info preloaded", tmp_path, installed))["write"] == 5
    shell("ensio report replayed -o replayed.html", tmp_path, installed)
    kernels = "from ensembles.summaries import kernels; print(kernels.NATIVE, kernels.__file__)"
    native, file = shell(f"python -c '{kernels}'", tmp_path, installed).split()
    assert native == "True"
    assert file.startswith(str(packages))


def counts(info):
    """Call and count of each row of the table of ``ensio info``."""
    rows = re.findall(r"^(\w+) +([\d,]+) .*%", info, re.M)
    return {name: int(count.replace(",", "")) for name, count in rows}
