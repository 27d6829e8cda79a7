"""What other build systems, module files and packages find in an installation of the recorder."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from places import BUILD, ROOT

import ensembles

EXAMPLES = ROOT / "docs" / "examples"
PACKAGING = ROOT / "packaging"
VERSION = ensembles.__version__


def shell(command, folder, **more):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("ENSIO_")}
    done = subprocess.run(
        ["bash", "-ec", command], cwd=folder, env=clean | more, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """The recorder, installed, and moved to another place."""
    first = tmp_path_factory.mktemp("installed") / "first"
    subprocess.run(["cmake", "--install", BUILD, "--prefix", first], check=True, capture_output=True)
    return first.rename(first.with_name("moved"))


@pytest.mark.parametrize(
    ("example", "build"),
    [
        ("meson", "meson setup b . && ninja -C b && cp b/app ."),
        ("autotools", "autoreconf -i && ./configure && make"),
    ],
)
def test_examples_of_build_systems_record(prefix, tmp_path, example, build):
    folder = Path(shutil.copytree(EXAMPLES / example, tmp_path / example))
    shell(build, folder, PKG_CONFIG_PATH=f"{prefix}/lib/pkgconfig")
    shell("./app", folder, ENSIO_DIR=str(tmp_path / "run"))
    run = ensembles.open(tmp_path / "run")
    assert [run.files[file].rsplit("/")[-1] for file in run.select(call="fopen").file] == ["state"]
    assert set(run.regions.names) == {"checkpoint"}


def test_examples_that_are_programs_can_be_started(prefix):
    scripts = [path for path in EXAMPLES.rglob("*") if path.is_file() and os.access(path, os.X_OK)]
    installed = [prefix / "share/doc/ensio" / path.relative_to(ROOT) for path in scripts]
    assert scripts
    assert all(os.access(path, os.X_OK) for path in installed)


@pytest.mark.parametrize("language", ["tcl", "lua"])
def test_modules_lead_to_the_prefix(prefix, tmp_path, language):
    lmod = Path("/usr/share/lmod/lmod/libexec/lmod")
    modules = prefix / "share" / "modulefiles"
    files = {"tcl": modules / "ensio" / VERSION, "lua": modules / "ensio" / f"{VERSION}.lua"}
    assert all(file.is_file() for file in files.values())
    for other in files:
        if other != language:
            shutil.copytree(prefix, tmp_path / "prefix", symlinks=True)
            (tmp_path / "prefix" / files[other].relative_to(prefix)).unlink()
    found = shell(
        f"eval $({lmod} bash use {tmp_path}/prefix/share/modulefiles); eval $({lmod} bash load ensio); "
        "which ensio-cc; echo $ENSIO_PRELOAD; pkg-config --modversion ensio",
        tmp_path,
    )
    place = tmp_path / "prefix"
    assert found.split() == [f"{place}/bin/ensio-cc", f"{place}/lib/libensio-preload.so", VERSION]


def test_uninstall_removes_what_was_installed(tmp_path):
    shell(f"cmake -S {ROOT} -B build", tmp_path)
    for name in ("a file", "b"):
        (tmp_path / name).touch()
    (tmp_path / "build" / "install_manifest.txt").write_text(f"{tmp_path}/a file\n{tmp_path}/gone")
    shell("cmake --build build --target uninstall", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "build"]


def test_packages_state_the_version_and_what_is_installed(prefix):
    for name, line in {
        "ensio.eb": rf"^version = '{VERSION}'$",
        "debian/changelog": rf"^ensio \({VERSION.replace('rc', '~rc')}\) ",
    }.items():
        assert re.search(line, (PACKAGING / name).read_text(), re.M), name
    shell(f"{sys.executable} -m compileall -q -f {PACKAGING}/spack", prefix)
    listed = re.findall(r"^%\{_prefix\}/(.+)$", (PACKAGING / "ensio.spec").read_text(), re.M)
    assert [path for path in listed if not list(prefix.glob(path.replace(".1*", ".1")))] == []
    tree = {path for path in prefix.rglob("*") if path.is_file()}
    covered = {path for entry in listed for at in prefix.glob(entry) for path in [at, *at.rglob("*")]}
    testbed = re.compile(r"ensio-(replay|simulate|pfs|otf2)|pfs\.so|lib/ensio|share/ensio/")
    assert [str(path) for path in tree - covered if not testbed.search(str(path))] == []
