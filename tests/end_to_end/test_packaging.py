"""What a source distribution holds and what is built from it; what metadata and the citation file say."""

import email
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest
from compiling import take_built_objects
from places import ROOT
from synthetic_runs import synthetic_run

import ensembles
from ensembles.cli.replay_program import ANY_TASKS
from ensembles.run.collect import collect

COMMUNITY = (
    "LICENSE",
    "CHANGELOG.md",
    "CITATION.cff",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
)


SITE = "docs/site/user/recording.html"


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """A source distribution that is made from the tracked files."""
    folder = tmp_path_factory.mktemp("sdist")
    sources = folder / "sources"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in tracked.stdout.decode().split("\0")[:-1]:
        (sources / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, sources / name, follow_symlinks=False)
    page = sources / SITE  # ./dev docs makes it
    page.parent.mkdir(parents=True)
    page.write_text("<title>Recording</title>\n")
    return make_distribution(sources, folder)


def make_distribution(sources, folder):
    """The source distribution of a folder with sources."""
    make = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
    subprocess.run([sys.executable, "-c", make, folder], cwd=sources, check=True, capture_output=True)
    (archive,) = folder.glob("ensio-*.tar.gz")
    return archive


@pytest.fixture(scope="module")
def distribution(archive):
    """The files of the source distribution: name to bytes."""
    with tarfile.open(archive) as files:
        return {
            member.name.partition("/")[2]: files.extractfile(member).read()
            for member in files
            if member.isfile()
        }


@pytest.fixture
def unpacked(archive, tmp_path):
    """The folder of the unpacked source distribution."""
    subprocess.run(["tar", "-xf", archive], cwd=tmp_path, check=True)
    (folder,) = tmp_path.glob("ensio-*")
    return folder


def test_source_distribution_has_licence_and_community_files(distribution):
    for name in COMMUNITY:
        assert distribution[name] == (ROOT / name).read_bytes()


def test_source_distribution_has_what_the_package_is_built_from(distribution):
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    built_from = re.compile(
        r"(ensembles|viz)/.*\.(py|c|h|html)$|(docs|libtrace)/|testbed/.*\.(c|h|cmake|toml)$"
    )
    wanted = {name for name in tracked.stdout.splitlines() if built_from.match(name)}
    assert len(wanted) > 100
    assert wanted <= set(distribution)


def test_source_distribution_of_another_folder_and_time_has_the_same_bytes(archive, unpacked, tmp_path):
    for path in unpacked.rglob("*"):
        os.utime(path, (1e9, 1e9))
        path.chmod(path.stat().st_mode & 0o700)
    (again := tmp_path / "again").mkdir()
    assert make_distribution(unpacked, again).read_bytes() == archive.read_bytes()


def test_metadata_name_the_licence(distribution):
    metadata = email.message_from_bytes(distribution["PKG-INFO"])
    assert (metadata["License-Expression"] or metadata["License"]) == "BSD-3-Clause"
    assert metadata["License-File"] == "LICENSE"


def test_every_file_states_the_same_version():
    version = re.escape(ensembles.__version__)
    for name, line in {
        "CITATION.cff": rf"^version: {version}$",
        "CHANGELOG.md": rf"^## {version} - \d{{4}}-\d\d-\d\d$",
    }.items():
        assert re.search(line, (ROOT / name).read_text(), re.M), name


def answer(words, folder, **environment):
    """What a command of this Python prints; it must succeed."""
    command = [sys.executable, *words]
    done = subprocess.run(command, cwd=folder, env=os.environ | environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


PIP = ("-m", "pip", "--disable-pip-version-check")


@pytest.fixture(scope="module")
def wheel(archive, tmp_path_factory):
    """The wheel of the source distribution, linked with no MPI, of objects that this tree has built."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(["tar", "-xf", archive], cwd=folder, check=True)
    (sources,) = folder.glob("ensio-*")
    (programs := folder / "programs").mkdir()
    take_built_objects(programs, sources)
    settings = {"CMAKE_ARGS": "-DMPICC=MPICC-NOTFOUND", "PATH": f"{programs}:{os.environ['PATH']}"}
    answer([*PIP, "wheel", "--no-deps", "-w", folder / "made", sources], folder, **settings)
    (made,) = folder.glob("made/ensio-*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A virtual environment with the wheel, installed where no compiler is; it has no way to the sources."""
    folder = tmp_path_factory.mktemp("venv")
    answer(["-m", "venv", folder], folder)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")  # what ensio requires
    words = [folder / "bin/python", *PIP, "install", "--no-deps", wheel]
    subprocess.run(words, env=os.environ | {"PATH": str(site)}, check=True)
    return folder


def test_one_wheel_serves_every_python(wheel):
    assert "-cp311-abi3-linux_" in wheel.name
    with zipfile.ZipFile(wheel) as files:
        objects = {name for name in files.namelist() if name.endswith(".so")}
    below = f"{'-'.join(wheel.name.split('-')[:2])}.data/data/lib"
    assert objects == {
        *("ensembles/_compiled.abi3.so", "ensembles/readers/tracefile/_chunks.abi3.so"),
        *(f"{below}/libensio-{name}.so" for name in ("pfs", "preload", "recorder")),
    }
    assert wheel.stat().st_size < 9e6  # the site has the rest of 12 MB (test_documents.py)


def run_installed(installed, folder, command):
    """What a shell command prints with the installed tools and those of the system on PATH."""
    environment = ANY_TASKS | {"PATH": f"{installed}/bin:/usr/bin:/bin", "HOME": str(folder)}
    done = subprocess.run(["sh", "-ec", command], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_installed_package_records_relinks_replays_and_explains(installed, tmp_path):
    def run(command):
        return run_installed(installed, tmp_path, command)

    assert run("python -c 'import ensembles; print(ensembles.__path__[0])'").startswith(str(installed))
    run("ensio run -o preloaded -- dd if=/dev/zero of=data bs=64k count=20")
    assert json.loads(run("ensio info --json preloaded"))["bytes_written"] == 20 << 16
    documents = Path(run("ensio docs --path").strip())
    assert documents.is_relative_to(installed)
    run(f"ensio-cc mpicc {documents}/examples/checkpoint.c -o checkpoint")
    run("ENSIO_DIR=relinked mpiexec -n 2 ./checkpoint")
    assert json.loads(run("ensio info --json relinked"))["tasks"] == 2
    run("ensio replay ior --tasks 2 -o replayed")
    run("MPICC=mpicc.mpich ensio replay ior --tasks 2 --launcher mpiexec.mpich -o by-mpich")
    for replayed in ("replayed", "by-mpich"):
        assert json.loads(run(f"ensio info --json {replayed}"))["tasks"] == 2
    run("ensio simulate ior --tasks 4 --fs healthy -o simulated")
    run("ensio export preloaded --to otf2 archive")
    assert json.loads(run("ensio info --json archive/traces.otf2"))["bytes_written"] == 20 << 16
    assert "ENSIO_MODE" in run("ensio help settings")
    assert run("ensio docs troubleshooting").strip() == f"{documents}/user/troubleshooting.md"
    assert run("ensio docs recording").strip() == f"{documents.parent}/{SITE}"
    assert run("man -w ensio").startswith(str(installed))
    run(
        "printf 'int main(void) { return 0; }' > none.c\n"
        f"PKG_CONFIG_PATH={installed}/lib/pkgconfig; export PKG_CONFIG_PATH\n"
        "cc none.c -o none $(pkg-config --cflags --libs ensio)"
    )


def test_one_sentence_says_that_there_is_no_compiler(unpacked):
    command = [sys.executable, "setup.py", "build_ext", "--inplace"]
    environment = os.environ | {"CC": "no-such-compiler"}
    done = subprocess.run(command, cwd=unpacked, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert (
        "error: ensio is built from C code, and the C compiler no-such-compiler is missing: install it"
        in done.stderr
    )
    assert "or install a wheel of ensio, which needs no compiler\n" in done.stderr
    assert "Traceback" not in done.stderr


def test_trace_files_are_read_alike_by_a_package_that_was_built_without_libdeflate(unpacked, tmp_path):
    synthetic_run(tmp_path / "run", tasks=4, events_per_task=20_000, seed=3)
    collect(tmp_path / "run", tmp_path / "trace.h5")
    hidden = tmp_path / "headers"
    hidden.mkdir()
    (hidden / "libdeflate.h").write_text("#error there is no libdeflate\n")
    built = tmp_path / "built"
    answer(["setup.py", "build", "--build-lib", built], unpacked, CPATH=str(hidden))
    assert {file.name for file in built.rglob("*.so")} == {"_compiled.abi3.so"}
    ask = [
        "-c",
        "import hashlib, ensembles\n"
        "from ensembles.readers.tracefile import chunks\n"
        "events = ensembles.open('trace.h5').events\n"
        "print(chunks._chunks is not None, chunks.__file__)\n"
        "for name, column in events.columns.items():\n"
        "    print(name, len(column), hashlib.sha256(column.tobytes()).hexdigest())\n",
    ]
    without, expected = answer(ask, tmp_path, PYTHONPATH=str(built)), answer(ask, tmp_path)
    assert without.startswith(f"False {built}")
    assert expected.startswith("True ")
    assert without.splitlines()[1:] == expected.splitlines()[1:]
    assert "start 80000 " in without
