"""The text of strace, against what programs did, against strace's own counts and against ensio's recorder."""

import re
import shutil
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_damaged_strace import WHOLE

import ensembles
from ensembles.cli.main import main
from ensembles.readers.foreign.strace.call_arguments import RECORDED, split_result, unescaped

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")

PROGRAM = """
import os, sys, threading
os.chdir(sys.argv[1])
fd = os.open("a", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
os.write(fd, b"x" * 1000)
os.write(fd, b'") = 7 "' * 10)
d = os.dup(fd)
os.lseek(d, 100, 0)
os.read(fd, 50)
os.pread(d, 10, 5)
os.pwritev(fd, [b"ab", b"cde"], 500)
os.writev(fd, [b"q" * 7, b"r, iov_len=9"])
if os.fork() == 0:
    os.read(fd, 25)
    os.close(fd)
    os._exit(0)
os.wait()
os.read(fd, 5)
ap = os.open("b\\x07 é, <x> = 1", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
os.write(ap, b"1" * 33)
try:
    os.open("none", os.O_RDONLY)
except OSError:
    pass
def thread():
    f = os.open("t", os.O_WRONLY | os.O_CREAT, 0o644)
    os.write(f, b"z" * 12345)
    os.fsync(f)
    os.ftruncate(f, 77)
    os.close(f)
t = threading.Thread(target=thread)
t.start()
t.join()
r, w = os.pipe()
os.write(w, b"hi")
os.read(r, 2)
os.set_inheritable(d, True)
s = os.open("a", os.O_RDONLY)
o = os.open("c", os.O_WRONLY | os.O_CREAT, 0o644)
os.sendfile(o, s, 0, 100)
os.copy_file_range(s, o, 200)
os.mkdir("sub")
f = os.open("sub", os.O_RDONLY)
g = os.open("inner", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=f)
os.write(g, b"deep")
os.execv("/bin/sh", ["sh", "-c", "read -r line <&%d; exit 3" % d])
"""

# rank, thread, call, file, offset, requested, moved, errno; of the files in the folder alone
EXPECTED = [
    (0, 0, "openat", "a", -1, 0, 0, 0),
    (0, 0, "write", "a", 0, 1000, 1000, 0),
    (0, 0, "write", "a", 1000, 80, 80, 0),
    (0, 0, "fcntl", "a", -1, 0, 0, 0),
    (0, 0, "lseek", "a", 100, 0, 0, 0),
    (0, 0, "read", "a", 100, 50, 50, 0),
    (0, 0, "pread", "a", 5, 10, 10, 0),
    (0, 0, "pwritev2", "a", 500, 5, 5, 0),
    (0, 0, "writev", "a", 150, 19, 19, 0),
    (0, 0, "read", "a", 194, 5, 5, 0),
    (0, 0, "openat", "b\x07 é, <x> = 1", -1, 0, 0, 0),
    (0, 0, "write", "b\x07 é, <x> = 1", -1, 33, 33, 0),
    (0, 0, "openat", "none", -1, 0, -1, 2),
    (0, 1, "openat", "t", -1, 0, 0, 0),
    (0, 1, "write", "t", 0, 12345, 12345, 0),
    (0, 1, "fsync", "t", -1, 0, 0, 0),
    (0, 1, "ftruncate", "t", 77, 0, 0, 0),
    (0, 1, "close", "t", -1, 0, 0, 0),
    (0, 0, "openat", "a", -1, 0, 0, 0),
    (0, 0, "openat", "c", -1, 0, 0, 0),
    (0, 0, "sendfile", "a", -1, 100, 100, 0),
    (0, 0, "sendfile_write", "c", 0, 100, 100, 0),
    (0, 0, "copy_file_range_read", "a", 0, 200, 200, 0),
    (0, 0, "copy_file_range", "c", 100, 200, 200, 0),
    (0, 0, "mkdir", "sub", -1, 0, 0, 0),
    (0, 0, "openat", "sub", -1, 0, 0, 0),
    (0, 0, "openat", "sub/inner", -1, 0, 0, 0),
    (0, 0, "write", "sub/inner", 0, 4, 4, 0),
]
CHILD = [(1, 0, "read", "a", 169, 25, 25, 0), (1, 0, "close", "a", -1, 0, 0, 0)]

WAYS = {
    "with numbers of processes": ["-o", "LOG"],
    "with paths": ["-y", "-o", "LOG"],
    "with paths and devices": ["-yy", "-o", "LOG"],
    "as on a terminal": [],
    "with long texts": ["-s", "100000", "-o", "LOG"],
}


def traced(command, log, options=("-o", "LOG"), **more):
    options = [str(log) if word == "LOG" else word for word in options]
    with open(log, "w") as errors:
        to = None if str(log) in options else errors
        subprocess.run(["strace", "-f", "-ttt", "-T", *options, *command], check=False, stderr=to, **more)
    return log


def rows(run, folder):
    events = run.events
    inside = str(folder) + "/"
    return [
        (
            int(events.rank[i]),
            int(events.thread[i]),
            events.calls[events.call[i]].name,
            events.files[events.file[i]][len(inside) :],
            int(events.offset[i]),
            int(events.requested[i]),
            int(events.moved[i]),
            int(events.error[i]),
        )
        for i in range(len(events))
        if events.files[events.file[i]].startswith(inside)
    ]


@pytest.mark.parametrize("way", WAYS)
def test_calls_files_offsets_and_errors_are_what_the_program_did(tmp_path, way):
    folder = tmp_path / "w"
    folder.mkdir()
    log = traced([sys.executable, "-c", PROGRAM, folder], tmp_path / "log", WAYS[way])
    run = ensembles.open(log)
    told = rows(run, folder)
    # The shell reads byte by byte from the position that it inherited.
    shell = [row for row in told if row[3] == "a" and row[5] == 1]
    assert [row[4] for row in shell] == list(range(199, 199 + len(shell)))
    assert len(shell) > 100
    assert [row for row in told if row[0] == 0 and row[5] != 1][: len(EXPECTED)] == EXPECTED
    assert [row for row in told if row[0] == 1] == CHILD
    assert [process.rank for process in run.info.processes if process.threads] == [0, 1]
    assert all(process.ended for process in run.info.processes)
    assert run.info.processes[0].command[:2] == ("sh", "-c")
    assert not any("invalid lines" in note for note in run.notes)
    assert any("resolution 1 µs" in note for note in run.notes)
    assert run.info.clock_step_s == 1e-6
    assert run.select(op="read").ensemble().sample.resolution_s in (0.0, 1e-6)


def test_a_text_that_was_cut_says_that_its_end_is_missing(tmp_path):
    log = traced([sys.executable, "-c", PROGRAM, tmp_path], tmp_path / "log", next(iter(WAYS.values())))
    missing = "processes whose end is missing"
    assert not any(missing in note for note in ensembles.open(log).notes)
    text = log.read_bytes()
    ends = [place for place, byte in enumerate(text) if byte == 10]
    (cut := tmp_path / "cut").write_bytes(text[: ends[len(ends) // 2] + 1])  # behind a line
    assert any(missing in note for note in ensembles.open(cut).notes)
    cut.write_bytes(text[: ends[len(ends) // 2] + 9])  # inside of one
    assert any(missing in note for note in ensembles.open(cut).notes)
    cut.write_bytes(text[:-3])
    assert any(missing in note for note in ensembles.open(cut).notes)


PROGRAMS = {
    "cp": ["cp", "-r", "/etc/alternatives", "copied"],
    "dd": ["dd", "if=/dev/zero", "of=big", "bs=4k", "count=200", "conv=fsync"],
    "sqlite3": ["sqlite3", "db", "create table t(x); insert into t values (1),(2); select sum(x) from t;"],
    "python": [sys.executable, "-c", "open('f', 'w').write('x' * 99999)"],
    "sh": ["sh", "-c", "for i in 1 2 3; do echo $i > f$i; cat f$i; done"],
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_as_many_calls_as_strace_itself_counts(tmp_path, program):
    if shutil.which(PROGRAMS[program][0]) is None:
        pytest.skip(f"{PROGRAMS[program][0]} is not installed")
    log = traced(
        PROGRAMS[program], tmp_path / "log", ["-C", "-o", "LOG"], cwd=tmp_path, stdout=subprocess.DEVNULL
    )
    text = log.read_text(errors="replace")
    body, _, summary = text.partition("% time     seconds")
    assert summary
    body_file = tmp_path / "body"
    body_file.write_text(body)
    run = ensembles.open(body_file)
    counted = {}
    for line in summary.splitlines():
        words = line.split()
        if len(words) in (5, 6) and words[-1] in RECORDED:
            counted[words[-1]] = (int(words[3]), int(words[4]) if len(words) == 6 else 0)
    assert counted["openat"][0] > 0
    told, left_out = ours(run, body)
    told.pop("copy_file_range_read", None)  # the other half of a call that counts already
    assert told.keys() <= counted.keys()
    missing = {name: counted[name][0] - told.get(name, (0, 0))[0] for name in counted}
    assert min(missing.values()) == 0
    assert sum(missing.values()) == left_out
    assert all(errors <= counted[name][1] for name, (_, errors) in told.items())


def ours(run, text):
    """Calls and failed calls by name of the system call, with those that are not I/O by our rules; how many
    are said to be left out, as they are on pipes and the like."""
    left_out = Counter()
    for line in text.splitlines():
        if re.search(r" (mmap\(.*MAP_ANON|fcntl\((?!.*(F_DUPFD|SETLK)))", line):
            left_out[re.search(r" (mmap|fcntl)\(", line)[1]] += 1
    names = {"fstatat": "newfstatat", "pread": "pread64", "pwrite": "pwrite64", "getdents": "getdents64"}
    names |= {"posix_fadvise": "fadvise64", "fcntl_lock": "fcntl"}
    events = run.events
    told = {}
    for number, call in enumerate(events.calls):
        mine = events.call == number
        if mine.any():
            name = names.get(call.name, call.name)
            if name == "fstat" and " fstat(" not in text:
                name = "newfstatat"  # with an empty path
            count, failed = told.get(name, (0, 0))
            told[name] = (count + int(mine.sum()), failed + int((events.moved[mine] < 0).sum()))
    for name, count in left_out.items():
        have = told.get(name, (0, 0))
        told[name] = (have[0] + count, have[1])
    pipes = [re.match(r"calls on pipes, .* left out: ([\d,]+)", note) for note in run.notes]
    return told, sum(int(match[1].replace(",", "")) for match in pipes if match)


def test_bytes_are_those_that_dd_says(tmp_path):
    log = traced(PROGRAMS["dd"], tmp_path / "log", ["-y", "-o", "LOG"], cwd=tmp_path)
    run = ensembles.open(log)
    writes = run.select(op="write", file=str(tmp_path / "big"))
    assert writes.moved.tolist() == [4096] * 200
    assert writes.offset.tolist() == [4096 * i for i in range(200)]
    assert np.all(np.diff(writes.start) >= writes.duration[:-1])


LINES = """\
100 1700000000.000000 execve("/bin/x", ["x"], 0x7f /* 3 vars */) = 0 <0.000300>
100 1700000000.000100 openat(AT_FDCWD, "/d/f", O_RDWR) = 3 <0.000010>
100 1700000000.000200 read(3,  <unfinished ...>
101 1700000000.000250 read(0, "", 10) = 0 <0.000001>
100 1700000000.000300 <... read resumed>"abc", 4096) = 3 <0.000110>
100 1700000000.000400 read(3, 0x7ffd, 10) = ? ERESTARTSYS (To be restarted if SA_RESTART is set) <0.5>
100 1700000000.000500 --- SIGINT {si_signo=SIGINT} ---
100 1700000000.000600 read(3, "d", 10) = 1 <0.000002>
100 1700000000.000700 write(3, "x", 1) = -1 ENOSPC (No space left on device) <0.000003>
100 1700000000.000800 fsync(3 <unfinished ...>
100 1700000000.000900 +++ killed by SIGKILL +++
what is this
102 1700000000.001000 <... pread64 resumed>"abc", 3, 7) = 3 <0.000110>
"""


def test_calls_in_two_lines_signals_restarts_errors_and_kills(tmp_path):
    (tmp_path / "log").write_text(LINES)
    run = ensembles.open(tmp_path / "log")
    events = run.events
    assert [events.calls[call].name for call in events.call[events.rank == 0]] == [
        "openat",
        "read",
        "read",
        "write",
    ]
    mine = events[events.rank == 0]
    assert mine.start.tolist() == [100_000, 200_000, 600_000, 700_000]
    assert mine.duration.tolist() == [10_000, 110_000, 2_000, 3_000]
    assert mine.offset.tolist() == [-1, 0, 3, 4]
    assert mine.moved.tolist() == [0, 3, 1, -1]
    assert mine.error.tolist() == [0, 0, 0, 28]
    notes = " ".join(run.notes)
    for sentence in ("invalid lines skipped: 1", "beginning is missing: 1", "end of the file or process: 1"):
        assert sentence in notes
    assert "(only the last attempt counts): 1" in notes
    assert "processes killed: 1" in notes


def test_lines_without_a_number_are_those_of_the_process_that_was_alone(tmp_path):
    (tmp_path / "log").write_text(
        '1700000000.000000 openat(AT_FDCWD, "/d/f", O_RDWR) = 3 <0.00001>\n'
        "1700000000.000100 clone(child_stack=NULL, flags=SIGCHLD) = 101 <0.00001>\n"
        '1700000000.000200 read(3, "abc", 3) = 3 <0.00001>\n'
        "strace: Process 101 attached\n"
        '[pid 101] 1700000000.000300 read(3, "de", 2) = 2 <0.00001>\n'
        '[pid 100] 1700000000.000400 read(3, "f", 1 <unfinished ...>\n'
        "[pid 101] 1700000000.000500 +++ exited with 0 +++\n"
        "1700000000.000600 <... read resumed>) = 1 <0.00020>\n"
        "1700000000.000700 +++ exited with 0 +++\n"
    )
    run = ensembles.open(tmp_path / "log")
    assert [process.pid for process in run.info.processes] == [100, 101]
    assert run.events.rank.tolist() == [0, 0, 0, 1]
    assert run.events.offset.tolist() == [-1, 0, 5, 3]
    assert not any("invalid lines" in note for note in run.notes)


def test_child_may_come_before_its_parent_is_named(tmp_path):
    """The child is followed while the call that made it is under way, and its parent has no number yet."""
    (tmp_path / "log").write_text(
        '1700000000.000000 openat(AT_FDCWD, "/d/f", O_RDWR) = 3 <0.00001>\n'
        '1700000000.000100 read(3, "abc", 3) = 3 <0.00001>\n'
        "1700000000.000200 clone(child_stack=NULL, flags=SIGCHLDstrace: Process 101 attached\n"
        " <unfinished ...>\n"
        '[pid 101] 1700000000.000300 read(3, "de", 2) = 2 <0.00001>\n'
        "[pid 100] 1700000000.000400 <... clone resumed>) = 101 <0.00020>\n"
        "[pid 101] 1700000000.000500 +++ exited with 0 +++\n"
        '1700000000.000600 read(3, "f", 1) = 1 <0.00001>\n'
        "1700000000.000700 +++ exited with 0 +++\n"
    )
    run = ensembles.open(tmp_path / "log")
    assert [process.pid for process in run.info.processes] == [100, 101]
    assert run.events.rank.tolist() == [0, 0, 0, 1]
    assert run.events.offset.tolist() == [-1, 0, 5, 3]
    assert not any("make no sense" in note for note in run.notes)


def test_hostile_numbers_are_bounded(tmp_path):
    (tmp_path / "log").write_text(
        '100 1700000000.000000 openat(AT_FDCWD, "/d/f", O_RDWR) = 3 <0.00001>\n'
        f'100 1700000000.000100 read(3, "", {1 << 90}) = {1 << 90} <0.00001>\n'
        f"100 1700000000.000200 lseek(3, {1 << 80}, SEEK_SET) = {1 << 80} <{1 << 80}.00001>\n"
        f"100 1700000000.000300 mmap(NULL, {1 << 80}, PROT_READ, MAP_SHARED, 3, {1 << 80}) = 0x7f <0.00001>\n"
        "100 99999999999.000300 fsync(3) = 0 <0.00001>\n"
    )
    run = ensembles.open(tmp_path / "log")
    assert len(run.events) == 3
    assert run.events.moved.max() < 1 << 50
    assert run.events.duration.max() == 10_000
    assert any("left out 2 calls with impossible times or numbers" in note for note in run.notes)
    assert main(["info", str(tmp_path / "log")]) == 0


def test_long_lines_are_passed_over(tmp_path):
    text = LINES + f'100 1700000001.000000 write(3, "{"x" * 3_000_000}", 5) = 5 <0.000001>\n'
    (tmp_path / "log").write_text(text + LINES.splitlines(keepends=True)[3] + "y" * 5_000_000)
    run = ensembles.open(tmp_path / "log")
    assert len(run.events) == 6
    assert any("invalid lines skipped: 3" in note for note in run.notes)


def test_positions_that_two_threads_race_for_are_not_told(tmp_path):
    (tmp_path / "log").write_text(
        '100 1700000000.000000 openat(AT_FDCWD, "/d/f", O_RDWR) = 3 <0.00001>\n'
        "100 1700000000.000100 clone(flags=CLONE_VM|CLONE_FILES|CLONE_THREAD) = 101 <0.00001>\n"
        "100 1700000000.000200 read(3,  <unfinished ...>\n"
        '101 1700000000.000210 read(3, "b", 1) = 1 <0.00001>\n'
        '100 1700000000.000220 <... read resumed>"a", 1) = 1 <0.00002>\n'
        "100 1700000000.000230 lseek(3, 50, SEEK_SET) = 50 <0.00001>\n"
        '101 1700000000.000240 read(3, "c", 1) = 1 <0.00001>\n'
    )
    run = ensembles.open(tmp_path / "log")
    assert run.tasks == 1
    assert run.events.thread.tolist() == [0, 0, 1, 0, 1]
    assert run.events.offset.tolist() == [-1, -1, -1, 50, 50]


def by_call(run):
    """How often each function moved which bytes, without what depends on numbers of processes."""
    events = run.events
    rows = zip(events.call.tolist(), events.requested.tolist(), events.moved.tolist(), strict=True)
    return run.tasks, Counter((events.calls[call].name, *row) for call, *row in rows)


SHELL = ["sh", "-c", "echo aaaa > f; (echo bb > g; sleep 0.1; cat f > h); wait"]


def test_options_that_add_to_the_lines_change_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    expected = by_call(ensembles.open(traced(SHELL, tmp_path / "plain", ["-y", "-o", "LOG"])))
    for option in ("-i", "-n", "-k", "-r"):
        log = traced(SHELL, tmp_path / option, ["-y", option, "-o", "LOG"])
        assert by_call(ensembles.open(log)) == expected, option


def test_differences_of_times_are_added_up(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    expected = by_call(ensembles.open(traced(SHELL, tmp_path / "plain", ["-y", "-o", "LOG"])))
    subprocess.run(["strace", "-f", "-r", "-T", "-y", "-o", tmp_path / "log", *SHELL], check=True)
    run = ensembles.open(tmp_path / "log")
    assert by_call(run) == expected
    assert 0.1 < (run.events.start + run.events.duration).max() / 1e9 < 60
    assert run.info.start is None
    assert main(["info", str(tmp_path / "log")]) == 0
    assert re.search(r"start +unknown\n", capsys.readouterr().out)
    made = [f"     {step}.250000 read(3</f>, 5) = 5 <0.000100>\n" for step in (0, 1, 0)]
    (tmp_path / "made").write_text("".join(made))
    assert (ensembles.open(tmp_path / "made").events.start / 1e9).tolist() == [0, 1.25, 1.5]


def test_a_folder_with_a_file_for_each_process_is_one_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    expected = ensembles.open(traced(SHELL, tmp_path / "plain", ["-y", "-o", "LOG"]))
    (tmp_path / "d").mkdir()
    subprocess.run(["strace", "-ff", "-ttt", "-T", "-o", tmp_path / "d" / "s", *SHELL], check=True)
    run = ensembles.open(tmp_path / "d")
    assert by_call(run) == by_call(expected)
    # The descriptors of the parent are those of its children.
    written = [run.files[file] for file, op in zip(run.events.file, run.events.op, strict=True) if op == 1]
    assert {str(tmp_path / name) for name in "fgh"} <= set(written)
    for file in (tmp_path / "d").iterdir():
        file.write_text(re.sub(r"^\d+\.", "     0.", file.read_text(), flags=re.MULTILINE))
    with pytest.raises(ensembles.EnsioError, match=r"strace -r.* trace with strace -ff -ttt"):
        ensembles.open(tmp_path / "d")


def test_a_trace_without_births_says_that_threads_are_tasks(tmp_path):
    program = "import threading as t; [t.Thread(target=open, args=('/etc/hostname',)).start() for _ in 'ab']"
    command = [sys.executable, "-c", program]
    calls = "trace=openat,read,close"
    run = ensembles.open(traced(command, tmp_path / "few", ["-y", "-e", calls, "-o", "LOG"]))
    assert run.tasks == 3
    assert any("threads among them are shown as tasks" in note for note in run.notes)
    run = ensembles.open(traced(command, tmp_path / "all", ["-y", "-o", "LOG"]))
    assert run.tasks == 1
    assert not any("shown as tasks" in note for note in run.notes)


@pytest.mark.parametrize(("close", "count"), [("0", 1), ("-1 EBADF (Bad file descriptor)", 0)])
def test_a_descriptor_that_is_not_open_is_of_no_unknown_file(tmp_path, close, count):
    path = tmp_path / "log"
    path.write_text(
        '100 1700000000.000000 openat(AT_FDCWD</d>, "/d/a", O_RDONLY) = 3</d/a> <0.000010>\n'
        f"100 1700000000.000100 close(7) = {close} <0.000010>\n"
    )
    run = ensembles.open(path)
    assert run.reading.ranks.count.sum() == 2
    assert [note for note in run.notes if "unknown files" in note] == [
        "calls on unknown files (use strace -y): 1"
    ] * count


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('openat(AT_FDCWD, "f", O_RDONLY) = 3\nread(3, "", 1) = 0\n', "no system call with a time"),
        ('100 12:00:01 read(3, "", 1) = 0\n100 12:00:01 read(3, "", 1) = 0\n', "no system call with a time"),
        ('1700000000.000000 read(3, "", 1) = 0\n', "has no durations of calls"),
    ],
)
def test_a_text_without_times_is_refused_with_the_remedy(tmp_path, capsys, text, why):
    (tmp_path / "log").write_text(text)
    assert main(["info", str(tmp_path / "log")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert why in line
    assert "strace -f -ttt -T" in line


@given(st.binary(max_size=40))
@settings(max_examples=50, derandomize=True)
def test_names_come_back_from_straces_way_of_writing_them(raw):
    special = {0x0A: r"\n", 0x09: r"\t", 0x0D: r"\r", 0x22: r"\"", 0x5C: r"\\"}
    raw = raw.replace(b"\0", b"")
    written = "".join(
        special.get(byte) or (chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}") for byte in raw
    )
    assert unescaped(written) == raw.decode("utf-8", "surrogateescape")


def test_a_result_is_found_behind_texts_that_look_like_one():
    arguments, result = split_result('3, ") = 9 <0.5>", 11) = 11 <0.000005>')
    assert arguments == '3, ") = 9 <0.5>", 11'
    assert (result.value, result.duration_ns) == (11, 5_000)
    _, opened = split_result('AT_FDCWD, "a = b", O_RDONLY) = 3</d/a = b> <0.000005>')
    assert (opened.value, opened.path) == (3, "/d/a = b")


def request(kind: str, number: str, size: int, at: int) -> str:
    begin = f"aio_data=0, aio_lio_opcode=IOCB_CMD_{kind}, aio_fildes={number}</data/{number}>"
    buffer = f'aio_buf="aio_nbytes=9, aio_lio_opcode="..., aio_nbytes={size}'
    vector = f"aio_buf=[{{iov_base=0x1, iov_len={size}}}]"
    return f"{{{begin}, {vector if kind == 'PWRITEV' else buffer}, aio_offset={at}}}"


def asynchronous(*lines: str) -> str:
    added = "".join(f"7 1700000000.55000{at} {line} <0.000001>\n" for at, line in enumerate(lines))
    return WHOLE.replace("7 1700000000.6", added + "7 1700000000.6")


def mapping(how: str, size: int, path: str = "/data/5") -> str:
    return f"mmap(NULL, {size}, {how}, 5<{path}>, 0) = 0x7f0000000000"


def test_requests_of_libaio_are_events_with_the_bytes_that_they_asked_for(tmp_path):
    """A batch, of which the kernel took two; a vector; a failure; a sync; and the wait."""
    batch = [("PWRITE", "5", 4096, 0), ("PREAD", "6", 512, 1024), ("PWRITE", "5", 9, 9)]
    lines = (
        f"io_submit(0x7f, 3, [{', '.join(request(*one) for one in batch)}]) = 2",
        f"io_submit(0x7f, 1, [{request('PWRITEV', '5', 100, 7)}]) = 1",
        f"io_submit(0x7f, 1, [{request('PWRITE', '5', 100, 7)}]) = -1 EAGAIN (Temporarily unavailable)",
        "io_submit(0x7f, 1, [{aio_data=0, aio_lio_opcode=IOCB_CMD_FSYNC, aio_fildes=5</data/5>}]) = 1",
        "io_getevents(0x7f, 1, 1, [{data=0, obj=0x5, res=4096, res2=0}], NULL) = 1",
    )
    (tmp_path / "log").write_text(asynchronous(*lines))
    run = ensembles.open(tmp_path / "log")
    columns = [
        getattr(run.events, name).tolist() for name in ("call", "file", "offset", "requested", "moved")
    ]
    found = [
        (run.calls[call].name, run.files[file], *rest)
        for call, file, *rest in zip(*columns, strict=True)
        if run.calls[call].name.startswith(("aio", "io_"))
    ]
    assert Counter(found) == Counter(
        [
            ("aio_write", "/data/5", 0, 4096, 4096),
            ("aio_read", "/data/6", 1024, 512, 512),
            ("aio_write", "/data/5", 7, 100, 100),
            ("aio_write", "/data/5", 7, 100, -1),
            ("aio_fsync", "/data/5", -1, 0, 0),
            ("io_getevents", "", -1, 0, 0),
        ]
    )
    assert run.unseen is None
    assert run.events.outermost.all()
    assert run.by_rank()[0].io_time_s * 1e9 == run.events.duration[run.events.depth == 0].sum()
    assert "requests of io_submit, with the bytes that they asked for: 5" in run.notes
    assert not any("unknown files" in note for note in run.notes)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("io_uring_enter(7<anon_inode:[io_uring]>, 1, 0, 0, NULL, 0) = 1", "1 call of io_uring_enter may"),
        ("io_uring_enter(7, 1, 0, 0, NULL, 0) = -1 EBUSY (Device or resource busy)", None),
        (f"io_submit(0x7f, 40, [{request('PWRITE', '5', 1, 0)}, ...]) = 40", "1 call of io_submit may"),
        (f"io_submit(0x7f, 2, [{request('PWRITE', '5', 1, 0)}, ...]) = 1", None),
        (mapping("PROT_READ|PROT_WRITE, MAP_SHARED", 4096), "accesses to mapped files may"),
        (mapping("PROT_READ, MAP_PRIVATE", 600_000), "accesses to mapped files may"),
        (mapping("PROT_READ, MAP_PRIVATE", 40_000), None),
        (mapping("PROT_READ, MAP_PRIVATE|MAP_DENYWRITE", 600_000), None),  # the first map of a library
        (mapping("PROT_READ, MAP_SHARED", 600_000, "/usr/lib/locale/locale-archive"), None),
    ],
)
def test_calls_that_hide_what_they_move_are_unseen_and_there_is_no_verdict(tmp_path, line, said):
    (tmp_path / "log").write_text(asynchronous(line))
    run = ensembles.open(tmp_path / "log")
    assert (run.unseen is None) == (said is None)
    if said:
        assert run.unseen.sentence.startswith(said)
        assert run.unseen.is_much
        assert run.unseen.sentence in run.notes
    assert ("not-io" in {finding.id for finding in ensembles.diagnose(run).findings}) == (said is None)


def test_devices_are_no_files_and_no_bytes_of_them_are_read_again(tmp_path):
    program = (
        "for i in range(20):\n    open('/dev/urandom', 'rb', buffering=0).read(6)\nopen('f', 'w').write('x')"
    )
    log = traced([sys.executable, "-c", program], tmp_path / "log", ["-y", "-o", "LOG"], cwd=tmp_path)
    run = ensembles.open(log)
    assert str(tmp_path / "f") in run.files
    assert not any(path.startswith(("/dev/", "/proc/")) for path in run.files[1:])
    assert any("devices" in note for note in run.notes)
