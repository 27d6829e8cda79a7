"""Compilers and options of users other than those of the build that all tests run."""

import json
import os
import subprocess

import pytest
from places import BUILD, ROOT

JOBS = min(4, len(os.sched_getaffinity(0)))


@pytest.mark.long  # builds the laboratory once more
def test_clang_links_all_programs_with_the_model():
    """Its objects for optimisation of whole programs are not what a linker reads without the option."""
    programs = ("ensio-pfs", "ensio-pfs-state", "ensio-simulate")
    folder = BUILD / "fuzz"  # which ./dev configures with clang
    done = subprocess.run(
        ["cmake", "--build", folder, f"-j{JOBS}", "--target", *programs], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-5000:]
    assert "warning" not in done.stderr


def test_all_declarations_of_a_function_have_one_type(tmp_path):
    """A build with -flto compares declarations in different sources, and warns (-Wlto-type-mismatch)."""
    targets = ("/ensio.dir/", "/ensio-mpi.dir/")
    commands = json.loads((BUILD / "compile_commands.json").read_text())
    sources = {entry["file"] for entry in commands if any(target in entry["command"] for target in targets)}
    assert {os.path.basename(source) for source in sources} > {"rank.c", "peer_recorder.c", "lifecycle.c"}
    options = ["-std=gnu11", "-O0", "-flto", "-D_GNU_SOURCE", '-DENSIO_VERSION="0"', "-Werror"]
    folders = ["-I", ROOT / "libtrace", "-I", ROOT / "libtrace/include"]
    done = subprocess.run(
        ["gcc", *options, *folders, *sorted(sources), "-r", "-nostdlib", "-o", tmp_path / "all.o"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    assert "mismatch" not in done.stderr


@pytest.mark.long  # configures a build
def test_archives_of_a_build_with_lto_are_for_any_compiler(tmp_path):
    """Programs are linked with them by other compilers and linkers, which read machine code only."""
    subprocess.run(
        ["cmake", "-S", ROOT, "-B", tmp_path, "-DCMAKE_C_FLAGS=-flto"], check=True, capture_output=True
    )
    subprocess.run(
        ["cmake", "--build", tmp_path, "--target", "ensio-regions"], check=True, capture_output=True
    )
    archive = tmp_path / "lib/libensio-regions.a"
    sections = subprocess.run(["readelf", "-SW", archive], check=True, capture_output=True, text=True).stdout
    assert ".text" in sections
    assert ".gnu.lto" not in sections


def test_a_static_program_is_not_linked_by_lld(tmp_path):
    """It would crash: from static libraries, lld brings nothing for ``__real_`` names."""
    (tmp_path / "app.c").write_text("int main(void) { return 0; }\n")
    words = [BUILD / "bin/ensio-cc", "gcc", "-static", "-fuse-ld=lld", "app.c", "-o", "app"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "-fuse-ld=bfd" in done.stderr
    assert not (tmp_path / "app").exists()
