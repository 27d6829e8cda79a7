"""What a source distribution holds and what is built from it; what metadata and the citation file say."""

import email
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile

import pytest
from places import ROOT

import ensembles
from ensembles.run.collect import collect
from ensembles.workloads.synthetic import synthetic_run

COMMUNITY = ("LICENSE", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "SECURITY.md")


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """A source distribution that is made from the tracked files."""
    folder = tmp_path_factory.mktemp("sdist")
    sources = folder / "sources"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in tracked.stdout.decode().split("\0")[:-1]:
        (sources / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, sources / name, follow_symlinks=False)
    make = "from setuptools import build_meta; build_meta.build_sdist('..')"
    subprocess.run([sys.executable, "-c", make], cwd=sources, check=True, capture_output=True)
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
    built_from = re.compile(r"(ensembles|viz)/.*\.(py|c|h|html)$|libtrace/include/ensio/\w+\.h$")
    wanted = {name for name in tracked.stdout.splitlines() if built_from.match(name)}
    assert len(wanted) > 100
    assert wanted <= set(distribution)


def test_metadata_name_the_licence(distribution):
    metadata = email.message_from_bytes(distribution["PKG-INFO"])
    assert (metadata["License-Expression"] or metadata["License"]) == "BSD-3-Clause"
    assert metadata["License-File"] == "LICENSE"


def test_every_file_states_the_same_version():
    version = re.escape(ensembles.__version__)
    for name, line in {
        "setup.cfg": rf"^version = {version}$",
        "CMakeLists.txt": rf"^project\(ensio VERSION {version} ",
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


def test_wheel_of_the_source_distribution_installs_where_no_compiler_is(archive, tmp_path):
    pip = ["-m", "pip", "--disable-pip-version-check"]
    answer([*pip, "wheel", "--no-deps", "-w", tmp_path, archive], tmp_path)
    (wheel,) = tmp_path.glob("ensio-*.whl")
    with zipfile.ZipFile(wheel) as files:
        modules = sorted(name for name in files.namelist() if name.endswith(".so"))
    assert modules == ["ensembles/_compiled.abi3.so", "ensembles/readers/tracefile/_chunks.abi3.so"]
    answer(["-m", "venv", tmp_path / "venv"], tmp_path)
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    (site / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")  # what ensio requires
    (tmp_path / "nothing").mkdir()
    bare = {"PATH": str(tmp_path / "nothing")}
    python = str(tmp_path / "venv/bin/python")
    subprocess.run([python, *pip, "install", "--no-deps", wheel], env=os.environ | bare, check=True)
    where = "from ensembles import _compiled; print(_compiled.__file__)"
    found = subprocess.run(
        [python, "-c", where], cwd=tmp_path, env=bare, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == str(site / "ensembles/_compiled.abi3.so")


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
