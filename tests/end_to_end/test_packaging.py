"""What a source distribution holds, and what its metadata and the citation file say."""

import email
import re
import shutil
import subprocess
import sys
import tarfile

import pytest
from places import ROOT

import ensembles

COMMUNITY = ("LICENSE", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "SECURITY.md")


@pytest.fixture(scope="module")
def distribution(tmp_path_factory):
    """The files of a source distribution that is made from the tracked files: name to bytes."""
    folder = tmp_path_factory.mktemp("sdist")
    sources = folder / "sources"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in tracked.stdout.decode().split("\0")[:-1]:
        (sources / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, sources / name, follow_symlinks=False)
    make = "from setuptools import build_meta; build_meta.build_sdist('..')"
    subprocess.run([sys.executable, "-c", make], cwd=sources, check=True, capture_output=True)
    (archive,) = folder.glob("ensio-*.tar.gz")
    with tarfile.open(archive) as files:
        return {
            member.name.partition("/")[2]: files.extractfile(member).read()
            for member in files
            if member.isfile()
        }


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
