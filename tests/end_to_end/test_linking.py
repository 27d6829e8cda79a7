"""Ways to link the recorder in without ensio-cc, from a prefix that was moved; and what ensio-cc says."""

import os
import shutil
import subprocess
import sys
from collections import Counter

import pytest
from places import BUILD, ENSIO_CC, PROGRAMS
from test_calls import names

import ensembles
from ensembles.cli.replay_program import ANY_TASKS

HDF5_STATIC = ["-Wl,-Bstatic", "-lhdf5", "-Wl,-Bdynamic", "-lcrypto", "-lcurl", "-lsz", "-lz", "-lm", "-ldl"]


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """The recorder, installed, and moved to another place."""
    first = tmp_path_factory.mktemp("installed") / "first"
    subprocess.run(["cmake", "--install", BUILD, "--prefix", first], check=True, capture_output=True)
    return first.rename(first.with_name("moved"))


def environment(prefix, **more):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("ENSIO_")}
    path = f"{prefix}/bin:{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    return clean | ANY_TASKS | {"PATH": path, "PKG_CONFIG_PATH": f"{prefix}/lib/pkgconfig"} | more


def shell(command, folder, prefix, **more):
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment(prefix, **more), capture_output=True, text=True
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done


def counts(run):
    return Counter(names(ensembles.open(run).events))


FLAGS = {
    "ensio link-flags": "$(ensio link-flags)",
    "ensio-cc --link-flags": "$(ensio-cc --link-flags)",
    "pkg-config": "$(pkg-config --cflags --libs ensio)",
    "pkg-config, static": "$(pkg-config --static --libs ensio) -static",
}


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS.keys())
def test_flags_link_what_ensio_cc_links(tmp_path, prefix, flags):
    source = PROGRAMS / "every_call.c"
    shell(f"gcc -w -c {source} -o app.o && gcc app.o -o app {flags}", tmp_path, prefix)
    shell("ensio-cc gcc app.o -o reference", tmp_path, prefix)
    for program in ("app", "reference"):
        (tmp_path / f"data-{program}").mkdir()
        command = [tmp_path / program, tmp_path / f"data-{program}"]
        run = tmp_path / f"run-{program}"
        assert (
            subprocess.run(
                command, env=environment(prefix, ENSIO_DIR=str(run)), capture_output=True
            ).returncode
            == 7
        )
    assert counts(tmp_path / "run-app") == counts(tmp_path / "run-reference")
    assert counts(tmp_path / "run-app").total() > 40


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS.keys())
def test_a_shared_library_of_the_same_name_is_not_taken_instead(tmp_path, prefix, flags):
    """Known of other tracers: the program links, runs, and records nothing, for it has no wrappers."""
    decoys = tmp_path / "decoys"
    decoys.mkdir()
    (tmp_path / "decoy.c").write_text("int nothing_here;\n")
    for name in ("ensio", "ensio-mpi", "ensio-hdf5", "ensio-preload"):
        shell(f"gcc -shared -fPIC decoy.c -o {decoys}/lib{name}.so", tmp_path, prefix)
    for archive in (prefix / "lib").glob("*.a"):
        shutil.copy(archive, decoys)
    (tmp_path / "app.c").write_text(
        "#include <fcntl.h>\n#include <unistd.h>\n"
        'int main(void) { int fd = open("f", O_CREAT | O_WRONLY, 0600); return write(fd, "abc", 3) != 3; }\n'
    )
    link = f"gcc app.c -o app -L{decoys} {flags}"
    for command in (link, f"ensio-cc gcc app.c -o app -L{decoys}"):
        shell(command, tmp_path, prefix, LIBRARY_PATH=str(decoys))
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        shell("./app", tmp_path, prefix, ENSIO_DIR="run", LD_LIBRARY_PATH=str(decoys))
        assert counts(tmp_path / "run") == {"open": 1, "write": 1}


def test_flags_serve_compiler_drivers_of_mpi_cpp_and_fortran(tmp_path, prefix):
    shell(f"mpicc {PROGRAMS}/mpi_writes.c -o mpi $(ensio link-flags)", tmp_path, prefix)
    shell("mpiexec -n 2 ./mpi", tmp_path, prefix, ENSIO_DIR="run-mpi")
    recorded = ensembles.open(tmp_path / "run-mpi")
    assert recorded.tasks == 2
    assert len(recorded.select(call="write", rank=1)) == 11
    for compiler, source, option, written in (
        ("gfortran", "unformatted.f90", "-static", 81920),
        ("g++", "streams.cpp", "-static-libstdc++", 1_000_000),
    ):
        shell(f"{compiler} {PROGRAMS}/{source} -o app {option} $(ensio link-flags)", tmp_path, prefix)
        run = tmp_path / f"run-{compiler}"
        shell("./app data", tmp_path, prefix, ENSIO_DIR=str(run))
        assert ensembles.open(run).select(op="write", layer="posix").moved.sum() == written


def test_link_flags_say_what_is_missing(tmp_path, prefix):
    python = [sys.executable, "-m", "ensembles.cli.main", "link-flags"]
    bare = environment(prefix, PATH="/usr/bin:/bin")
    done = subprocess.run(python, env=bare, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "ensio-cc is not found: install ensio again" in done.stderr
    broken = tmp_path / "broken"
    shutil.copytree(prefix, broken)
    (broken / "lib/libensio-mpi.a").unlink()
    done = subprocess.run(python, env=environment(broken), capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert "broken/lib/libensio-mpi.a is missing" in done.stderr
    spaced = tmp_path / "with a space"
    shutil.copytree(prefix, spaced)
    done = subprocess.run(python, env=environment(spaced), capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert "use ensio-cc itself" in done.stderr
    shell(f"ensio-cc gcc -w {PROGRAMS}/every_call.c -o app", tmp_path, spaced)


PROJECT = """
cmake_minimum_required(VERSION 3.20)
project(user LANGUAGES C CXX Fortran)
find_package(ensio 1.0 REQUIRED)
find_package(MPI REQUIRED COMPONENTS C)
add_library(part SHARED part.c)
target_link_libraries(part PRIVATE ensio::trace)
add_library(inner STATIC inner.c)
target_link_libraries(inner PUBLIC ensio::trace)
add_executable(in-c main.c)
target_link_libraries(in-c PRIVATE part inner)
add_executable(in-cpp {programs}/regions.cc)
target_link_libraries(in-cpp PRIVATE ensio::trace)
add_executable(in-fortran {programs}/regions.f90 ${{ensio_FORTRAN_SOURCE}})
target_link_libraries(in-fortran PRIVATE ensio::trace)
ensio_check_libraries(in-cpp)
add_executable(in-streams {programs}/streams.cpp)
target_link_libraries(in-streams PRIVATE ensio::trace)
ensio_check_libraries(in-streams)
target_link_options(in-fortran PRIVATE -static)
add_executable(not-recorded {programs}/regions.f90 ${{ensio_FORTRAN_SOURCE}})
target_link_libraries(not-recorded PRIVATE ensio::regions)
set_target_properties(not-recorded PROPERTIES Fortran_MODULE_DIRECTORY ${{CMAKE_BINARY_DIR}}/modules)
add_executable(with-mpi {programs}/mpi_writes.c)
target_link_libraries(with-mpi PRIVATE ensio::trace MPI::MPI_C)
"""


@pytest.mark.parametrize("generator", ["Unix Makefiles", "Ninja"])
def test_cmake_projects_find_the_package(tmp_path, prefix, generator):
    if generator == "Ninja" and not shutil.which("ninja"):
        pytest.fail("ninja is missing; run ./dev setup test")
    (tmp_path / "CMakeLists.txt").write_text(PROJECT.format(programs=PROGRAMS))
    write = (
        "#include <unistd.h>\n#include <ensio/ensio.h>\n"
        'void {0}(int fd) {{ ensio_phase("{0}"); (void)!write(fd, "abc", 3); }}\n'
    )
    (tmp_path / "part.c").write_text(write.format("part"))
    (tmp_path / "inner.c").write_text(write.format("inner"))
    (tmp_path / "main.c").write_text(
        "#include <fcntl.h>\nvoid part(int fd);\nvoid inner(int fd);\n"
        'int main(void) { int fd = open("c.out", O_CREAT | O_WRONLY, 0600); inner(fd); part(fd); }\n'
    )
    shell(f"cmake -S . -B build -G '{generator}' -DCMAKE_PREFIX_PATH={prefix} -DMPI_HOME=", tmp_path, prefix)
    built = shell("cmake --build build", tmp_path, prefix)
    said = built.stdout + built.stderr
    assert "ensio-cc: in-streams does I/O inside shared libraries" in said
    assert "ensio-cc: in-cpp" not in said
    shell("build/in-c", tmp_path, prefix, ENSIO_DIR="run-c")
    recorded = ensembles.open(tmp_path / "run-c")
    # The shared library's own write is not wrapped, and there is one recorder in the process, not two.
    assert counts(tmp_path / "run-c") == {"open": 1, "write": 1}
    assert len(recorded.info.processes) == 1
    assert set(recorded.regions.names) == {"inner", "part"}
    with open(tmp_path / "out", "wb") as out:
        in_cpp = environment(prefix, ENSIO_DIR=str(tmp_path / "run-cpp"))
        assert subprocess.run([tmp_path / "build/in-cpp"], env=in_cpp, stdout=out).returncode == 3
    assert set(ensembles.open(tmp_path / "run-cpp").regions.names) == {"all of it", "loop", "throws"}
    shell("build/in-fortran", tmp_path, prefix, ENSIO_DIR="run-fortran")
    recorded = ensembles.open(tmp_path / "run-fortran")
    assert len(recorded.select(op="write", region="record")) == 4
    shell("build/not-recorded", tmp_path, prefix, ENSIO_DIR="run-none")
    assert not (tmp_path / "run-none").exists()
    shell("mpiexec -n 2 build/with-mpi", tmp_path, prefix, ENSIO_DIR="run-mpi")
    recorded = ensembles.open(tmp_path / "run-mpi")
    assert recorded.tasks == 2
    assert len(recorded.select(call="write")) == 21
    newer = PROJECT.replace("ensio 1.0", "ensio 9.0").format(programs=PROGRAMS)
    (tmp_path / "CMakeLists.txt").write_text(newer)
    configure = ["cmake", "-S", ".", "-B", "other", f"-DCMAKE_PREFIX_PATH={prefix}"]
    refused = subprocess.run(configure, cwd=tmp_path, env=environment(prefix), capture_output=True, text=True)
    assert refused.returncode != 0
    assert "ensio-config.cmake, version: 1.0.0" in refused.stderr


def link(command, folder, **more):
    return subprocess.run(
        ["bash", "-c", f"{ENSIO_CC} {command}"],
        cwd=folder,
        env=environment(BUILD, **more),
        capture_output=True,
        text=True,
    )


def hdf5_flags():
    told = subprocess.run(
        ["pkg-config", "--cflags", "--libs-only-L", "hdf5-serial"], capture_output=True, text=True
    )
    assert told.returncode == 0, "HDF5's development files are missing; run ./dev setup test"
    return told.stdout.strip()


def test_driver_says_that_it_cannot_look_into_shared_hdf5(tmp_path):
    command = f"gcc {PROGRAMS}/hdf5_writes.c -o app {hdf5_flags()} -lhdf5"
    done = link(command, tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(
        "ensio-cc: app does I/O inside shared libraries, where it is not recorded: libhdf5"
    )
    assert "(except the program's own calls of it)" in done.stderr
    assert "ensio run" in done.stderr
    # What it says is true: no call of the program's own touches the file.
    shell("./app", tmp_path, BUILD, ENSIO_DIR="run")
    recorded = ensembles.open(tmp_path / "run")
    seen = {recorded.calls[call].layer for call in recorded.select(file="*/writes.h5").call}
    assert not seen & {"posix", "stdio"}
    shell("ensio run -o preloaded ./app", tmp_path, BUILD)
    assert len(ensembles.open(tmp_path / "preloaded").select(call="pwrite", file="*/writes.h5")) >= 2
    assert link(command, tmp_path, ENSIO_CC_QUIET="1").stderr == ""


def test_driver_is_silent_where_hdf5_is_static_for_its_io_is_seen(tmp_path):
    done = link(f"gcc {PROGRAMS}/hdf5_writes.c -o app {hdf5_flags()} {' '.join(HDF5_STATIC)}", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    shell("strace -f -e trace=pwrite64 -o trace ./app", tmp_path, BUILD, ENSIO_DISABLE="1")
    expected = (tmp_path / "trace").read_text().count("pwrite64(")
    shell("./app", tmp_path, BUILD, ENSIO_DIR="run")
    recorded = ensembles.open(tmp_path / "run")
    assert len(recorded.select(call="pwrite", file="*/writes.h5")) == expected >= 2


@pytest.mark.parametrize("linker", ["", "gcc -pipe", "ensio-cc gcc"])
def test_hdf5_drivers_put_static_libraries_behind_and_their_io_is_seen(tmp_path, linker):
    named = {"HDF5_CLINKER": linker} if linker else {}
    done = link(f"h5cc {PROGRAMS}/hdf5_writes.c -o app", tmp_path, **named)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    shell("strace -f -e trace=pwrite64 -o trace ./app", tmp_path, BUILD, ENSIO_DISABLE="1")
    expected = (tmp_path / "trace").read_text().count("pwrite64(")
    shell("./app", tmp_path, BUILD, ENSIO_DIR="run")
    recorded = ensembles.open(tmp_path / "run")
    assert len(recorded.select(call="pwrite", file="*/writes.h5")) == expected >= 2
    assert len(recorded.select(call="H5Dwrite", file="*/writes.h5")) >= 1


@pytest.mark.parametrize("flavour", ["openmpi", "mpich"])
def test_driver_says_that_it_cannot_look_into_shared_mpi(tmp_path, flavour):
    command = f"mpicc.{flavour} -w {PROGRAMS}/mpiio_calls.c -o app"
    done = link(command, tmp_path)
    assert done.returncode == 0
    assert done.stderr.startswith("ensio-cc: app does I/O inside shared libraries")
    assert "recorded: libmpi" in done.stderr
    assert done.stderr.count("\n") == 1
    assert link(command, tmp_path, ENSIO_CC_QUIET="1").stderr == ""
    # A program that opens no file by MPI loses nothing.
    assert link(f"mpicc.{flavour} {PROGRAMS}/mpi_writes.c -o app", tmp_path).stderr == ""


def test_driver_looks_at_the_program_where_there_is_no_readelf(tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("sh", "gcc", "ld", "as", "sed", "grep", "cat", "dirname", "readlink", "awk", "tr"):
        (tools / tool).symlink_to(shutil.which(tool))
    for flags, said in ((f"{hdf5_flags()} -lhdf5", True), ("", False)):
        source = PROGRAMS / ("hdf5_writes.c" if said else "every_call.c")
        done = subprocess.run(
            ["bash", "-c", f"PATH={tools}; {ENSIO_CC} gcc -w {source} -oapp {flags}"],
            cwd=tmp_path,
            env=environment(BUILD),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert ("app does I/O inside shared libraries" in done.stderr) == said
        assert bool(done.stderr) == said


@pytest.mark.parametrize("options", [[], ["-static"], ["-c"]])
def test_driver_is_silent_for_programs_that_use_neither(tmp_path, options):
    done = link(f"gcc -w {PROGRAMS}/every_call.c {' '.join(options)} -o app", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
