"""Every call of the table is recorded as it happened, and happens as it would have without us."""

import errno
import os
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import strace

import ensembles

pytestmark = pytest.mark.quick

BUILDS = {
    "plain": (),
    "64-bit names": ("-D_FILE_OFFSET_BITS=64", "-D_LARGEFILE64_SOURCE"),
    "fortified names": ("-D_FORTIFY_SOURCE=2",),
    "fortified 64-bit names": ("-D_FORTIFY_SOURCE=2", "-D_FILE_OFFSET_BITS=64"),
}

NOT_COUNTED = (
    *("readdir", "fcntl", "fcntl_lock", "sendfile_write", "copy_file_range_read", "splice_write"),
    "sync",  # of no file
)


def names(events) -> list[str]:
    return [events.calls[call].name for call in events.call]


def counted(events) -> Counter:
    """Recorded calls by what strace can distinguish.

    How often the kernel is asked for the entries of a folder is the C library's affair; for each folder it
    also asks once what that is. The other halves of copies are not counted.
    """
    recorded = names(events)
    opened = sum(name == "opendir" and not error for name, error in zip(recorded, events.error, strict=True))
    counts = Counter(strace.SHARED.get(name, name) for name in recorded if name not in NOT_COUNTED)
    return counts + Counter(stat=opened)


@pytest.mark.parametrize("program", ["every_call", "metadata_calls"])
@pytest.mark.parametrize("options", BUILDS.values(), ids=BUILDS.keys())
def test_every_call_is_recorded_and_nothing_changes(recorder, tmp_path, program, options):
    program = recorder.build(program, *options)
    folders = [tmp_path / name for name in ("traced", "untraced", "counted")]
    for folder in folders:
        folder.mkdir()
    traced = recorder.execute(program, folders[0])
    untraced = recorder.untraced(program, folders[1])
    assert traced.stdout == untraced.stdout
    assert traced.stderr == untraced.stderr == b""
    assert traced.returncode == untraced.returncode
    assert traced.returncode in (7, 9)
    for file in folders[1].glob("?.*"):
        assert file.read_bytes() == (folders[0] / file.name).read_bytes()

    kernel = strace.counted(
        [str(program), str(folders[2])],
        tmp_path / "log",
        folders[2],
        env=recorder.environment(ENSIO_DISABLE="1"),
        capture_output=True,
    )
    assert counted(ensembles.open(recorder.run).events) == kernel


def test_calls_between_two_files_keep_both_positions(recorder, tmp_path):
    recorder.execute(recorder.build("metadata_calls"), tmp_path)
    run = ensembles.open(recorder.run)
    events = run.events[run.events.moved > 0]
    done = list(
        zip(
            names(events),
            [run.files[file][-6:] for file in events.file],
            events.offset,
            events.moved,
            strict=True,
        )
    )
    assert done[:13] == [
        ("pwrite", "a.data", 0, 4000),
        ("sendfile_write", "i.data", 0, 50),
        ("sendfile", "a.data", 100, 50),
        ("sendfile_write", "i.data", 50, 60),
        ("sendfile", "a.data", 0, 60),
        ("write", "i.data", 110, 10),
        ("copy_file_range", "i.data", 1000, 70),
        ("copy_file_range_read", "a.data", 200, 70),
        ("copy_file_range", "i.data", 120, 80),
        ("copy_file_range_read", "a.data", 60, 80),
        ("write", "i.data", 200, 10),
        ("read", "a.data", 140, 5),
        ("read", "a.data", 145, 5),
    ]
    assert Counter(names(run.select(call="fcntl"))) == {"fcntl": 2}
    assert len(run.select(call="readdir", file=str(tmp_path) + "*")) == len(list(tmp_path.iterdir())) + 3


def test_copies_are_read_from_one_file_and_written_to_the_other(recorder, tmp_path):
    recorder.execute(recorder.build("copies"), tmp_path)
    run = ensembles.open(recorder.run)
    moving = run.select(op="read,write", file=f"{tmp_path}/*")
    done = list(
        zip(
            names(moving),
            [Path(run.files[file]).name for file in moving.file],
            *(column.tolist() for column in (moving.offset, moving.requested, moving.moved, moving.error)),
            strict=True,
        )
    )
    assert done == [
        ("pwrite", "from", 0, 4000, 4000, 0),
        # As much as there is, then the end of the file.
        ("copy_file_range", "to", 0, 4000, 4000, 0),
        ("copy_file_range_read", "from", 0, 4000, 4000, 0),
        ("copy_file_range", "to", 4000, 0, 0, 0),
        ("sendfile_write", "to", 4000, 3990, 3990, 0),
        ("sendfile", "from", 10, 3990, 3990, 0),
        ("splice", "from", 0, 600, 600, 0),  # into a pipe
        ("splice_write", "to", 100, 600, 600, 0),  # and out of it
        ("sendfile", "from", 0, 700, 700, 0),  # into a socket
        ("splice_write", "to", 7990, 50, 50, 0),  # from a pipe of the program's own
        ("copy_file_range", "from", 0, 0, -1, errno.EBADF),  # not open for writing
        ("sendfile", "from", 4000, 0, -1, errno.EINVAL),  # into a file that appends
    ]
    assert (tmp_path / "to").stat().st_size == 7990 + 50
    # Both halves of a call have its time, and sums have it once.
    assert moving.start[1] == moving.start[2]
    assert moving.duration[1] == moving.duration[2]
    assert moving.depth[[1, 2]].tolist() == [1, 0]
    # Both are calls of the program, which no other one contains.
    assert moving.outermost.all()
    assert run.ensemble(op="write", size="3000..4096").n == 3
    copies = ("copy_file_range", "copy_file_range_read")
    whole = moving.duration[np.isin(names(moving), copies) & (moving.depth == 0)].sum()
    assert round(sum(file.io_time_s for file in run.by_file(call=",".join(copies))) * 1e9) == whole


@pytest.mark.parametrize("options", BUILDS.values(), ids=BUILDS.keys())
def test_locks_and_lists_of_folders_are_calls_and_change_nothing(recorder, tmp_path, options):
    program = recorder.build("locks", *options)
    folders = [tmp_path / name for name in ("traced", "untraced")]
    for folder in folders:
        folder.mkdir()
    traced = recorder.execute(program, folders[0])
    untraced = recorder.untraced(program, folders[1])
    assert traced.stdout == untraced.stdout
    assert traced.returncode == untraced.returncode == 6
    run = ensembles.open(recorder.run)
    events = run.select(call="fcntl_lock,flock,lockf,scandir,getw,putw,realpath,mkdir,fcloseall", rank=0)
    done = list(
        zip(names(events), *(column.tolist() for column in (events.moved, events.error)), strict=True)
    )
    again, waited = (errno.EAGAIN, int(traced.stderr))
    assert done == [
        ("fcntl_lock", 0, 0),
        ("fcntl_lock", -1, errno.EINVAL),
        ("fcntl_lock", -1, errno.EFAULT),
        ("fcntl_lock", 0, 0),
        ("fcntl_lock", 0, 0),
        ("fcntl_lock", -1, again),
        ("fcntl_lock", 0, 0),
        ("flock", 0, 0),
        ("flock", -1, again),
        ("flock", 0, 0),
        ("lockf", 0, 0),
        ("lockf", 0, 0),
        ("putw", 4, 0),
        ("putw", 4, 0),
        ("getw", 4, 0),
        ("getw", 4, 0),
        ("getw", 0, 0),
        ("scandir", 0, 0),
        ("scandir", -1, errno.ENOENT),
        ("realpath", -1, errno.ENOENT),
        ("realpath", 0, 0),
        ("mkdir", 0, 0),
        ("mkdir", -1, errno.EINVAL),
        ("fcloseall", 0, 0),
        ("flock", 0, 0),  # waits for the child
    ]
    assert 0 < events.duration[-1] <= waited
    assert {run.files[file] for file in events.file[:12].tolist()} == {str(folders[0] / "data")}
    assert not run.select(call="fcntl")
    (folder,) = folders[0].glob("made.*")
    assert {str(folder), str(folders[0] / "missing")} < set(run.files)


def test_what_inline_stdio_moves_between_calls_is_counted_once(recorder, tmp_path):
    """A read counts what its buffer got, of which at most a page is left before a seek."""
    program, file, lines = recorder.build("inline_stdio"), tmp_path / "file", tmp_path / "lines"
    recorder.execute(program, file, lines, check=True)
    run = ensembles.open(recorder.run)
    moved = {op: int(run.select(file=str(file), op=op).moved.sum()) for op in ("read", "write")}
    assert moved["write"] == file.stat().st_size
    assert file.stat().st_size - 1 <= moved["read"] < file.stat().st_size + 2 * 4096
    assert {"__uflow", "__overflow"} < set(names(run.select(file=str(file))))
    assert set(names(run.select(file=str(lines), op="write"))) == {"fputs"}
    assert run.info.kernel_bytes.excluded_written == 0


def test_events_hold_what_the_calls_did(recorder, tmp_path):
    program = recorder.build("every_call")
    recorder.execute(program, tmp_path)
    events = ensembles.open(recorder.run).select(file="*/a.data")
    done = list(zip(names(events), events.offset, events.requested, events.moved, events.error, strict=True))
    assert done == [
        ("open", -1, 0, 0, 0),
        ("write", 0, 100, 100, 0),
        ("pwrite", 1000, 10, 10, 0),
        ("writev", 100, 110, 110, 0),
        ("pwritev", 2000, 110, 110, 0),
        ("pwritev2", 3000, 110, 110, 0),
        ("pwritev2", 210, 100, 100, 0),
        ("lseek", 310, 0, 0, 0),
        ("lseek", 5, 0, 0, 0),
        ("read", 5, 100, 100, 0),
        ("pread", 1000, 10, 10, 0),
        ("readv", 105, 110, 110, 0),
        ("preadv", 2000, 110, 110, 0),
        ("preadv2", 3000, 110, 110, 0),
        ("preadv2", 215, 100, 100, 0),
        ("lseek", 315, 0, 0, 0),
        ("fsync", -1, 0, 0, 0),
        ("fdatasync", -1, 0, 0, 0),
        ("ftruncate", 500, 0, 0, 0),
        ("dup", -1, 0, 0, 0),
        ("dup2", -1, 0, 0, 0),
        ("dup3", -1, 0, 0, 0),
        ("read", 315, 10, 10, 0),
        ("lseek", 325, 0, 0, 0),
        ("close", -1, 0, 0, 0),
        ("close", -1, 0, 0, 0),
        ("close", -1, 0, 0, 0),
        ("pwrite", 0, 10, 10, 0),
        ("close", -1, 0, 0, 0),
    ]
    appended = ensembles.open(recorder.run).select(file="*/b.data", call="write")
    assert appended.offset.tolist() == [0, 100]


def test_failures_hold_the_errno_that_the_program_saw(recorder, tmp_path):
    program = recorder.build("every_call")
    said = [
        line.rsplit(maxsplit=2) for line in recorder.execute(program, tmp_path).stdout.decode().splitlines()
    ]
    nowhere = ("read(-1", "close(999", "dup2(999", "open((char *)8")  # no file is meant that could be named
    seen = Counter(int(error) for call, _, error in said if int(error) and not call.startswith(nowhere))
    events = ensembles.open(recorder.run).events
    failed = events[events.error > 0]
    assert Counter(failed.error.tolist()) == seen
    assert len(seen) >= 4
    assert np.all(failed.moved == -1)
    assert np.all(events.moved[events.error == 0] >= 0)


def test_time_stamps_are_ordered_and_inside_the_run(recorder, tmp_path):
    program = recorder.build("every_call")
    recorder.execute(program, tmp_path)
    events = ensembles.open(recorder.run).events
    assert np.all(events.duration > 0)
    assert np.all(np.diff(events.start) > 0)
    assert np.all(events.start[1:] >= events.end[:-1] - 1)
    assert np.all(events.depth == 0)


# Files that a program opens by fopen are opened, and asked what they are, inside the C library, where no
# wrapper sees it.
OPENED_BY_STDIO = {"fio": 1, "sqlite3": 1}

FIO = [
    "fio",
    "--name=job",
    "--size=256k",
    "--bs=4k",
    "--rw=randrw",
    "--ioengine=psync",
    "--numjobs=2",
    "--fallocate=none",
]

PYTHON = """
import os
with open("{folder}/out", "wb", buffering=0) as file:
    file.write(b"x" * 1000)
descriptor = os.open("{folder}/out", os.O_RDWR)
os.pread(descriptor, 10, 5)
os.writev(descriptor, [b"a", b"bc"])
os.fsync(descriptor)
os.close(descriptor)
"""


def fill(folder):
    """Puts files into a folder: one, a folder of many, and an archive of these."""
    (folder / "in").write_bytes(b"0123456789" * 1234)
    (folder / "many").mkdir()
    for number in range(20):
        (folder / "many" / str(number)).write_bytes(b"x" * 1000 * number)
    subprocess.run(["tar", "-cf", folder / "in.tar", "-C", folder, "many"], check=True)


@pytest.mark.parametrize(
    "command",
    [
        ["dd", "if=/dev/zero", "of={folder}/out", "bs=4096", "count=200", "conv=fsync"],
        ["dd", "if={folder}/in", "of={folder}/out", "bs=1000", "iflag=fullblock", "seek=3"],
        [*FIO, "--directory={folder}", "--output=/dev/null"],
        ["/usr/bin/python3", "-S", "-c", PYTHON],
        ["sqlite3", "{folder}/out.db", "create table t (a, b); insert into t values (1, 2), (3, 4);"],
        ["cp", "-r", "{folder}/many", "{folder}/copied"],
        ["tar", "-cf", "{folder}/out.tar", "-C", "{folder}", "many"],
        ["tar", "-xf", "{folder}/in.tar", "-C", "{folder}"],
    ],
    ids=["dd-write", "dd-copy", "fio", "python", "sqlite3", "cp", "tar-create", "tar-extract"],
)
def test_counts_of_foreign_programs_equal_what_the_kernel_saw(preload, tmp_path, command):
    counts = {}
    for way in ("kernel", "ours"):
        folder = tmp_path / way
        folder.mkdir()
        fill(folder)
        words = [word.replace("{folder}", str(folder)) for word in command]
        if way == "kernel":
            counts[way] = strace.counted(words, tmp_path / "log", folder, capture_output=True)
        else:
            preload.execute(*words, check=True)
            events = ensembles.open(preload.run).select(file=f"{folder}*", layer="posix")
            counts[way] = counted(events)
    counts["kernel"]["open"] -= OPENED_BY_STDIO.get(command[0], 0)
    del counts["kernel"]["stat"], counts["ours"]["stat"]
    assert counts["ours"].total() > 0
    assert counts["ours"] == counts["kernel"]


# What the C library does for a stream by itself, to the kernel: each file that it opens it also closes.
STREAMS = {"fopen": "open", "fclose": "close"}


def test_counts_of_git_equal_what_the_kernel_saw(preload, tmp_path):
    """Git reads its configuration through streams: opens and closes count, what is read does not."""
    environment = {"HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
    counts = {}
    for way in ("kernel", "ours"):
        folder = tmp_path / way
        folder.mkdir()
        fill(folder)
        (folder / "in.tar").unlink()  # it holds times, and is never twice the same
        plain = os.environ | environment
        subprocess.run(["git", "init", "-q", folder], env=plain, check=True)
        command = ["git", "-C", str(folder), "add", "."]
        if way == "kernel":
            counts[way] = strace.counted(command, tmp_path / "log", folder, env=plain, capture_output=True)
        else:
            preload.execute(*command, check=True, environment=environment)
            run = ensembles.open(preload.run)
            mine = run.select(file=f"{folder}*")
            streams = [name for name in names(mine) if name in STREAMS]
            counts[way] = counted(run.select(file=f"{folder}*", layer="posix"))
            counts[way] += Counter(STREAMS[name] for name in streams)
    for ignored in ("stat", "read"):
        del counts["kernel"][ignored], counts["ours"][ignored]
    assert counts["ours"]["write"] > 20
    assert counts["ours"] == counts["kernel"]


def test_counts_of_an_mpi_program_equal_what_the_kernel_saw(recorder, tmp_path):
    program = recorder.build("mpi_lives", compiler="mpicc.mpich")
    counts = {}
    for way in ("kernel", "ours"):
        folder = tmp_path / way
        folder.mkdir()
        command = ["mpiexec.mpich", "-n", "2", str(program), "finalised", str(folder)]
        if way == "kernel":
            environment = recorder.environment(ENSIO_DISABLE="1")
            options = {"env": environment, "capture_output": True}
            counts[way] = strace.counted(command, tmp_path / "log", folder, **options)
        else:
            recorder.execute(*command, check=True)
            counts[way] = counted(ensembles.open(recorder.run).select(file=f"{folder}/*", layer="posix"))
    assert counts["ours"] == {"open": 2, "write": 21, "close": 2}
    del counts["kernel"]["open"]  # the launcher looks for files by relative names, which count as inside
    assert counts["kernel"] == {"write": 21, "close": 2}
