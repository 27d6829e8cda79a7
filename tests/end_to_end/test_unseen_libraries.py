"""I/O that no wrapper sees, in shared libraries or by raw calls: said by ensio-cc and ensio info."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from places import BUILD, ENSIO_CC, PROGRAMS
from test_hdf5 import flags, shared, static
from test_linking import environment, shell
from test_mpi import FLAVOURS, compiled

import ensembles
from ensembles.cli.replay_program import ANY_TASKS

ENSIO = Path(sys.executable).with_name("ensio")
MIB = 1 << 20

PRINTING = """program printing
  print *, "no file is opened"
end program
"""
WITHOUT_STREAMS = """#include <fcntl.h>
#include <string>
#include <unistd.h>
int main()
{
    std::string text(2000000, 'x');
    int fd = open("data", O_CREAT | O_WRONLY, 0600);
    return write(fd, text.data(), text.size()) != 2000000;
}
"""
LIBRARY = """#include <stdio.h>
int save(const char *path, long bytes);
int save(const char *path, long bytes)
{
    FILE *file = fopen(path, "w");
    for (long i = 0; i < bytes; i++)
        fwrite("x", 1, 1, file);
    return fclose(file);
}
"""
MOVE = """#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **words)
{
    static char block[1 << 20];
    const int writes = *words[1] == 'w';
    const int fd = open(words[2], writes ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY, 0600);
    for (int i = atoi(words[3]); i > 0; i--)
        if ((writes ? write(fd, block, sizeof block) : read(fd, block, sizeof block)) != sizeof block)
            return 1;
    return count != 4;
}
"""
RING = """#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>
int io_uring_setup(unsigned entries, void *how)
{
    int ring = (int)syscall(SYS_io_uring_setup, entries, how);
    return ring < 0 ? -errno : ring;
}
"""
CALLER = """int save(const char *path, long bytes);
int main(void) { return save("data", 3000000); }
"""


def linked(command, folder):
    done = subprocess.run(
        ["bash", "-c", f"{ENSIO_CC} {command} -o app"],
        cwd=folder,
        env=environment(BUILD),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def notes_of(run, folder):
    shown = shell(f"ensio info {run} --json", folder, BUILD)
    return json.loads(shown.stdout)["notes"]


@pytest.mark.parametrize(
    ("compiler", "source", "library", "option"),
    [
        ("g++", "streams.cpp", "libstdc++.so", "-static-libstdc++"),
        ("gfortran", "unformatted.f90", "libgfortran.so", "-static-libgfortran"),
    ],
)
def test_run_time_library_is_named_with_the_option_that_helps(tmp_path, compiler, source, library, option):
    said = linked(f"{compiler} {PROGRAMS}/{source}", tmp_path)
    assert said.count("\n") == 1
    assert said.startswith(
        f"ensio-cc: app does I/O inside shared libraries, where it is not recorded: {library}"
    )
    assert "start the program with ensio run" in said
    assert option in said
    shell("./app data", tmp_path, BUILD, ENSIO_DIR="run")
    (note,) = notes_of("run", tmp_path)
    assert note.startswith("the kernel counted ")
    assert " written by calls, and 0 B are recorded" in note
    assert f"(loaded: {library}" in note
    # The remedies are true.
    assert linked(f"{compiler} {PROGRAMS}/{source} {option}", tmp_path) == ""
    shell("./app data", tmp_path, BUILD, ENSIO_DIR="static")
    assert notes_of("static", tmp_path) == []
    shell("ensio run -o preloaded ./app data", tmp_path, BUILD)
    assert notes_of("preloaded", tmp_path) == []


@pytest.mark.parametrize(
    ("compiler", "source", "ending"), [("g++", WITHOUT_STREAMS, "cc"), ("gfortran", PRINTING, "f90")]
)
def test_a_run_time_library_whose_files_are_not_used_is_no_alarm(tmp_path, compiler, source, ending):
    (tmp_path / f"app.{ending}").write_text(source)
    assert linked(f"{compiler} app.{ending}", tmp_path) == ""


def test_recorded_bytes_of_a_program_with_shared_libraries_are_no_alarm(tmp_path):
    (tmp_path / "app.cc").write_text(WITHOUT_STREAMS)
    linked("g++ app.cc", tmp_path)
    shell("./app", tmp_path, BUILD, ENSIO_DIR="run")
    assert notes_of("run", tmp_path) == []


def test_any_shared_library_that_opens_files_is_named(tmp_path):
    (tmp_path / "saving.c").write_text(LIBRARY)
    (tmp_path / "app.c").write_text(CALLER)
    (tmp_path / "silent.c").write_text("int save(const char *path, long bytes) { return 0; }\n")
    shell("gcc -shared -fPIC saving.c -o libsaving.so", tmp_path, BUILD)
    shell("gcc -shared -fPIC silent.c -o libsilent.so", tmp_path, BUILD)
    said = linked("gcc app.c -L. -lsaving -Wl,-rpath,$PWD", tmp_path)
    assert "where it is not recorded: libsaving.so;" in said
    shell("./app", tmp_path, BUILD, ENSIO_DIR="run")
    (note,) = notes_of("run", tmp_path)
    assert "libsaving.so" in note
    shell("ensio collect run", tmp_path, BUILD)
    (record,) = (tmp_path / "run").glob("*.spool")  # without calls there is nothing to code
    record.unlink()
    assert notes_of("run/trace.h5", tmp_path) == [note]
    assert linked("gcc app.c -L. -lsilent -Wl,-rpath,$PWD", tmp_path) == ""


def test_a_program_that_other_means_linked_can_be_checked(tmp_path):
    shell(f"g++ {PROGRAMS}/streams.cpp -o app $(ensio link-flags)", tmp_path, BUILD)
    done = shell("ensio-cc --check app", tmp_path, BUILD)
    assert "libstdc++.so" in done.stderr
    shell(f"g++ {PROGRAMS}/streams.cpp -static -o app $(ensio link-flags)", tmp_path, BUILD)
    assert shell("ensio-cc --check app", tmp_path, BUILD).stderr == ""
    missing = subprocess.run([ENSIO_CC, "--check", "no-such-file"], capture_output=True, text=True)
    assert (missing.returncode, missing.stderr.count("\n")) == (2, 1)


HDF5_IN_FORTRAN = """program fields
  use hdf5
  implicit none
  integer :: failed
  integer(hid_t) :: file
  call h5open_f(failed)
  call h5fcreate_f("data.h5", H5F_ACC_TRUNC_F, file, failed)
  call h5fclose_f(file, failed)
  call h5close_f(failed)
end program
"""


def test_hdf5_behind_its_fortran_library_is_named(tmp_path):
    folder = Path("/usr/include/hdf5/serial")
    if not (folder / "hdf5.mod").exists():
        pytest.skip("no HDF5 for Fortran")
    (tmp_path / "app.f90").write_text(HDF5_IN_FORTRAN)
    libraries = "-L/usr/lib/$(gcc -print-multiarch)/hdf5/serial -lhdf5_fortran -lhdf5"
    said = linked(f"gfortran -I{folder} app.f90 {libraries}", tmp_path)
    assert re.search(r"libhdf5_serial_fortran\.so\S*", said)
    assert re.search(r"libhdf5_serial\.so\S*", said)


@pytest.mark.parametrize("command", [["sh", "-c", "./app data; :"], ["make", "-s"], [sys.executable, "-c"]])
@pytest.mark.parametrize("library", [static, shared])
def test_hdf5_inside_a_program_that_another_one_starts_is_told(preload, tmp_path, command, library):
    """Stripped, so that no symbol shows the library."""
    program = preload.build("hdf5_calls", "-s", *flags("cflags"), *library())
    (tmp_path / "app").symlink_to(program)
    (tmp_path / "Makefile").write_text("all:\n\t-./app data 3> log\n")
    script = ["import subprocess; subprocess.run(['./app', 'data'])"] * (command[-1] == "-c")
    environment = os.environ | {"ENSIO_PRELOAD": str(preload.library)}
    started = [ENSIO, "run", "-o", "run", "--", *command, *script]
    subprocess.run(started, cwd=tmp_path, capture_output=True, env=environment)
    assert f"{program} contains HDF5, whose calls" in "".join(notes_of("run", tmp_path)) or library is shared
    assert "HDF5" not in "".join(notes_of("run", tmp_path)) or library is static
    shell("ensio collect run", tmp_path, BUILD)
    assert any("HDF5" in note for note in notes_of("run/trace.h5", tmp_path)) == (library is static)


@pytest.mark.parametrize("mode", ["trace", "profile"])
@pytest.mark.parametrize(
    ("kind", "column", "reason"),
    [
        ("raw", "written_bytes", "through raw system calls"),
        ("alias", "written_bytes", "through raw system calls"),
        ("wide", "written_bytes", "streams of wide characters"),
        ("mmap", "dirtied_bytes", "through mapped files (1 call of mmap)"),
        ("libaio", "dirtied_bytes", "through libaio,"),  # a map that failed is none
    ],
)
def test_a_mebibyte_that_no_wrapper_saw_is_told(recorder, tmp_path, kind, column, reason, mode):
    if (recorder.way, kind) == ("relinked", "alias"):
        return  # the linker lets the recorder in here
    program = recorder.build("moves_unseen")
    recorder.execute(program, tmp_path / "file", kind, 1, environment={"ENSIO_MODE": mode}, check=True)
    run = ensembles.open(recorder.run)
    assert run.unseen is not None
    assert 0.85 * MIB < getattr(run.unseen, column) < 1.1 * MIB
    assert reason in run.unseen.sentence
    assert "not-io" not in {finding.id for finding in ensembles.diagnose(run).findings}


def test_a_ring_that_is_closed_before_the_end_is_named(preload, tmp_path):
    done = preload.execute(preload.build("moves_unseen"), tmp_path / "file", "io_uring", 4)
    if done.returncode == 77:
        pytest.skip("the kernel refuses io_uring")
    assert (done.returncode, done.stderr) == (0, b"")
    assert "through io_uring," in ensembles.open(preload.run).unseen.sentence


def test_a_ring_of_liburing_is_named_however_short_its_life(recorder, tmp_path):
    """The function of liburing, in a separate library, because not every machine has liburing."""
    (tmp_path / "ring.c").write_text(RING)
    library = tmp_path / "libring.so"
    subprocess.run(["gcc", "-shared", "-fPIC", tmp_path / "ring.c", "-o", library], check=True)
    program = recorder.build("moves_unseen", "-Wl,--no-as-needed", library, f"-Wl,-rpath,{tmp_path}")
    done = recorder.execute(program, tmp_path / "file", "liburing", 4)
    if done.returncode == 77:
        pytest.skip("the kernel refuses io_uring")
    assert (done.returncode, done.stderr) == (0, b"")
    assert "through io_uring," in ensembles.open(recorder.run).unseen.sentence


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_what_other_threads_write_in_mpi_init_hides_no_bytes(recorder, tmp_path, flavour):
    """MPI's bytes in MPI_Init are those of its caller and of the threads that begin there."""
    program = compiled(recorder, "writes_beside_mpi", f"mpicc.{flavour}", "-pthread")
    command = [f"mpiexec.{flavour}", "-n", "1", program, tmp_path / "data"]
    done = subprocess.run(command, env=recorder.environment(**ANY_TASKS), check=True, stdout=subprocess.PIPE)
    run = ensembles.open(recorder.run)
    assert int(done.stdout) >= 2 * MIB
    assert run.unseen is not None
    assert MIB <= run.unseen.written_bytes < 1.1 * MIB


@pytest.mark.parametrize("kind", ["sparse", "pipe"])
def test_where_all_calls_are_recorded_nothing_is_told(recorder, tmp_path, kind):
    recorder.execute(recorder.build("moves_unseen"), tmp_path / "file", kind, 8, check=True)
    assert ensembles.open(recorder.run).unseen is None


def test_a_process_that_leaves_by_a_raw_call_has_ended(preload, tmp_path):
    """``ensio run`` reads the counters of the process before it is reaped."""
    program = preload.build("moves_unseen")
    command = [ENSIO, "run", "-o", preload.run, "--", program, tmp_path / "file", "raw", "3", "exit"]
    environment = {"ENSIO_PRELOAD": str(preload.library)}
    subprocess.run(command, check=True, capture_output=True, env=os.environ | environment)
    run = ensembles.open(preload.run)
    assert run.unseen is not None
    assert run.notes == [run.unseen.sentence]
    assert run.unseen.written_bytes == 3 * MIB


def test_a_process_without_an_end_lasts_until_it_was_gone(preload, tmp_path):
    """``ensio run`` reads the clock, too, whether the process left by a raw call or was killed."""
    script = "import ctypes, os, sys, time; open('f', 'w').close(); time.sleep(0.4); "
    for number, end in enumerate(("ctypes.CDLL(None).syscall(231, 7)", "os.kill(os.getpid(), 9)")):
        place = tmp_path / str(number)
        command = [ENSIO, "run", "-o", place, "--", sys.executable, "-c", script + end]
        environment = {"ENSIO_PRELOAD": str(preload.library)}
        begin = time.monotonic()
        done = subprocess.run(command, capture_output=True, cwd=tmp_path, env=os.environ | environment)
        assert done.returncode == (137 if number else 7)
        assert 0.4 < ensembles.open(place).length_s < time.monotonic() - begin


def test_files_that_a_launcher_maps_are_no_io_of_its_program(preload, tmp_path):
    """Also where they were written to storage before it deletes them, which the kernel does not take off."""
    (tmp_path / "syncs.c").write_text(
        "#include <mpi.h>\n#include <stdlib.h>\nint main(void) { MPI_Init(0, 0);\n"
        'int failed = system("find $TMPDIR/ompi* -type f | xargs sync"); MPI_Finalize(); return failed; }\n'
    )
    subprocess.run(["mpicc.openmpi", "syncs.c", "-o", "syncs"], check=True, cwd=tmp_path)
    command = [ENSIO, "run", "-o", preload.run, "--", "mpiexec.openmpi", "-n", "4", "./syncs"]
    environment = os.environ | ANY_TASKS | {"ENSIO_PRELOAD": str(preload.library), "TMPDIR": str(tmp_path)}
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path, env=environment)
    assert ensembles.open(preload.run).unseen is None


def test_bytes_of_children_are_not_counted_in_their_parents_too(preload, tmp_path):
    """A forked child with pipes only, a child program, and one behind a shell."""
    script = (
        "import os, subprocess; data = b'x' * 3000000; open('a', 'wb').write(data)\n"
        "subprocess.run(['cp', 'a', 'b'], check=True)\n"
        "subprocess.run('cat a | cat > c; :', shell=True, check=True)\n"
        "ends = os.pipe(); pid = os.fork()\n"
        "for i in range(700 * (not pid)): os.write(ends[1], data[:4096]); os.read(ends[0], 4096)\n"
        "if not pid: os._exit(0)\n"
        "os.waitpid(pid, 0)"
    )
    preload.execute(sys.executable, "-c", script, cwd=tmp_path, check=True)
    assert ensembles.open(preload.run).unseen is None


@pytest.mark.parametrize(("what", "column"), [("w", "written_bytes"), ("r", "read_bytes")])
@pytest.mark.parametrize("mib", [1, 50])
@pytest.mark.parametrize("last", ["static", "dynamic"])
@pytest.mark.parametrize("launcher", [["sh", "-c"], ["env", "A=1", "nice", "bash", "-c"]])
def test_static_programs_of_unrecorded_shells_are_told(preload, tmp_path, launcher, last, mib, what, column):
    """``ensio run`` keeps what the kernel counted in the shell, and readers take off what is recorded."""
    (tmp_path / "move.c").write_text(MOVE)
    for name, options in (("static", ["-static"]), ("dynamic", [])):
        subprocess.run(["gcc", *options, "move.c", "-o", name], cwd=tmp_path, check=True)
    subprocess.run(["./static", "w", "data", "50"], cwd=tmp_path, check=True)

    def unseen(*commands):
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        command = [ENSIO, "run", "-o", "run", "--", *launcher, "; ".join(commands)]
        environment = os.environ | {"ENSIO_PRELOAD": str(preload.library)}
        subprocess.run(command, check=True, capture_output=True, cwd=tmp_path, env=environment)
        return ensembles.open(tmp_path / "run").unseen

    file = "data" if what == "r" else "new"
    assert unseen(f"./dynamic {what} {file} {mib}", "./dynamic r data 3 | cat > /dev/null") is None
    found = unseen(
        *[f"./static {what} {file} {mib}", "./dynamic w other 1"][:: 1 if last == "dynamic" else -1]
    )
    assert found is not None
    # What the recorder itself may have written after it took the counters is taken off.
    assert (mib - 0.5) * MIB < getattr(found, column) < (mib + 0.2) * MIB
    assert "static" in found.sentence
