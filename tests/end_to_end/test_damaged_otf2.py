"""OTF2 archives that were cut, overwritten or made up: one sentence and exit 2, or what is left; never a
crash, a hang or a heap of memory. Those in `archives` are kept: what older versions wrote stays readable."""

import os
import random
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from places import BUILD, ROOT

import ensembles
from ensembles.cli.main import main
from ensembles.model.errors import EnsioError
from ensembles.model.events import COLUMNS
from ensembles.readers.foreign.otf2 import source

ARCHIVES = Path(__file__).parent / "archives"
CALLS = {"ours": 3 * 40, "others": 60}


@pytest.fixture(autouse=True)
def program_to_read_with(monkeypatch):
    """The tree's own ensio-otf2."""
    monkeypatch.setenv("PATH", f"{BUILD / 'bin'}:{os.environ['PATH']}")


def read_all(path):
    """Everything that a command might look at."""
    run = ensembles.open(path)
    list(run.chunks(1000))
    repr(run), len(run.regions), run.summary, run.info.processes
    return run


def read_or_sentence(path):
    """The run, or None where a sentence that names the archive says why not."""
    try:
        return read_all(path)
    except EnsioError as error:
        told = str(error)
    assert str(path) in told
    assert "\n" not in told
    return None


@pytest.mark.parametrize("kind", CALLS)
def test_kept_archives_are_read(kind):
    assert len(read_all(ARCHIVES / kind).events) == CALLS[kind]


def damaged(folder, seed):
    """Change bytes of one of the files, or cut it, several times for some seeds."""
    dice = random.Random(seed)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    for _ in range(dice.choice((1, 1, 2, 8))):
        path = dice.choice(files)
        content = bytearray(path.read_bytes())
        if not content:
            continue
        at, what = dice.randrange(len(content)), dice.random()
        if what < 0.15:
            del content[at:]
        elif what < 0.7:
            content[at] ^= 1 << dice.randrange(8)
        else:
            length = dice.choice((1, 2, 4, 8))
            content[at : at + length] = dice.choice((b"\xff", b"\0", b"\x7f", b"\x80")) * length
        path.write_bytes(content)


@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.parametrize("part", ["traces.otf2", "traces.def", "traces/0.evt", "traces/0.def"])
def test_no_cut_of_a_file_loses_calls_in_silence(tmp_path, kind, part):
    whole_run = ensembles.open(ARCHIVES / kind)
    shutil.copytree(ARCHIVES / kind, tmp_path / "archive")
    path = tmp_path / "archive" / part
    whole = path.read_bytes()
    for length in sorted({0, 1, 7, len(whole) // 3, len(whole) // 2, len(whole) - 20, len(whole) - 1}):
        path.write_bytes(whole[: max(length, 0)])
        run = read_or_sentence(tmp_path / "archive")
        if run is None:
            continue
        # Nothing that calls hang on was in what is gone.
        assert part != "traces.def" or length == len(whole) - 1
        for name in COLUMNS:
            np.testing.assert_array_equal(
                getattr(run.events, name), getattr(whole_run.events, name), err_msg=f"{length} {name}"
            )


def test_the_command_ends_with_2_and_a_sentence(tmp_path, capsys):
    shutil.copytree(ARCHIVES / "ours", tmp_path / "archive")
    path = tmp_path / "archive" / "traces" / "0.evt"
    path.write_bytes(path.read_bytes()[:100])
    assert main(["info", str(tmp_path / "archive")]) == 2
    (told,) = capsys.readouterr().err.splitlines()
    assert told.startswith(
        f"ensio: {tmp_path}/archive/traces.otf2 cannot be read: the events of its location 0 are damaged: "
    )


@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.parametrize(
    ("part", "reason"),
    [
        ("traces/1.evt", "the events of its location 1 cannot"),
        ("traces/1.def", "its location 1 has lost its definitions"),
    ],
)
def test_a_location_that_lost_a_file_is_noticed(tmp_path, kind, part, reason):
    shutil.copytree(ARCHIVES / kind, tmp_path / "archive")
    present = tmp_path / "archive" / part
    if kind == "ours":
        present, reason = present.with_stem("65536"), reason.replace("location 1", "location 65536")
    present.unlink()
    with pytest.raises(
        EnsioError, match=f"traces.otf2 cannot be read: .*{reason}|location 0 has lost its definitions"
    ):
        ensembles.open(tmp_path / "archive")


@pytest.mark.parametrize(
    ("end", "moved"), [(1 << 62, 64), ((1 << 63) + 7, 64), ((1 << 64) - 2, 64), (3000, 1 << 60)], ids=hex
)
def test_calls_that_no_clock_and_no_disk_can_have_made_are_left_out_and_counted(tmp_path, end, moved):
    import otf2
    from otf2.enums import IoOperationMode, IoParadigmClass, IoParadigmFlag

    with otf2.writer.open(str(tmp_path / "archive"), timer_resolution=1_000_000_000) as trace:
        root = trace.definitions.system_tree_node("machine")
        paradigm = trace.definitions.io_paradigm(
            "POSIX", "POSIX I/O", IoParadigmClass.SERIAL, IoParadigmFlag.OS
        )
        file = trace.definitions.io_regular_file("/data/x", scope=root)
        handle = trace.definitions.io_handle("x", file=file, io_paradigm=paradigm)
        group = trace.definitions.location_group("rank 0", system_tree_parent=root)
        events = trace.event_writer_from_location(trace.definitions.location("thread", group=group))
        for number, (begin, finish, count) in enumerate([(1000, 1010, 64), (2000, end, moved)]):
            events.io_operation_begin(begin, handle, IoOperationMode.WRITE, 0, 64, number)
            events.io_operation_complete(finish, handle, count, number)
    run = read_all(tmp_path / "archive")
    assert (run.events.duration.tolist(), run.events.moved.tolist()) == ([10], [64])
    assert any("left out 1 call with impossible times or numbers" in note for note in run.notes)


def test_no_other_file_is_taken_for_an_archive(tmp_path):
    for name, content in {
        "text.otf2": b"OTF2 is a format",
        "zeros.otf2": bytes(100),
        "short.otf2": b"\3BOT",
    }.items():
        (tmp_path / name).write_bytes(content)
        assert not source.recognises(str(tmp_path / name), content)
    assert not source.recognises(str(tmp_path), None)
    os.mkfifo(tmp_path / "pipe.otf2")
    assert not source.recognises(str(tmp_path), None)


def stand_in(folder, script):
    """A program in the place of ensio-otf2, which does what libotf2 might do to it."""
    program = folder / "bin" / "ensio-otf2"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("kill -SEGV $$", "the OTF2 library crashed on it"),
        ("kill -ABRT $$", "the OTF2 library crashed on it"),
        ("exec sleep 1000", "the OTF2 library made no progress on it for 1 s"),
        ("exec cat /dev/zero", "the OTF2 library crashed on it"),
        ("exec head -c 100 /dev/urandom", "the OTF2 library crashed on it"),
        ("exit 0", "the OTF2 library crashed on it"),
    ],
)
def test_what_the_library_does_to_its_process_is_told_in_a_sentence(tmp_path, monkeypatch, script, reason):
    monkeypatch.setattr("ensembles.recorder.otf2_program.program", lambda: stand_in(tmp_path, script))
    monkeypatch.setattr(source, "STANDSTILL_S", 1.0)
    with pytest.raises(EnsioError) as caught:
        ensembles.open(ARCHIVES / "ours")
    assert reason in str(caught.value)


def test_memory_of_the_reading_process_is_bounded():
    """The limit that the process is told to set itself ends it, here before it has begun."""
    command = [BUILD / "bin/ensio-otf2", "read", ARCHIVES / "others/traces.otf2", str(8 << 20)]
    # Started by a small process: what starts another lends it its own peak of memory.
    script = (
        "import resource, subprocess, sys; done = subprocess.run(sys.argv[1:], capture_output=True);"
        "print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    said = subprocess.run(
        [sys.executable, "-S", "-c", script, *command], capture_output=True, text=True, check=True
    ).stdout
    status, peak_kib = map(int, said.split())
    assert status != 0
    assert peak_kib < 1 << 18


def test_sanitizers_find_nothing(tmp_path):
    """Sanitizers of addresses and of undefined behaviour, on whole and on damaged archives, and writing."""
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "otf2"], check=True, capture_output=True, text=True
    )
    sources = sorted((ROOT / "libtrace/otf2").glob("*.c"))
    program = tmp_path / "ensio-otf2"
    subprocess.run(
        ["gcc", "-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-D_GNU_SOURCE",
         '-DENSIO_VERSION="0"', f"-I{ROOT / 'libtrace/include'}", *sources, "-o", program,
         *flags.stdout.split()],
        check=True,
    )  # fmt: skip
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    complaints = []
    for kind in CALLS:
        for seed in (None, *range(1000, 1005)):
            folder = tmp_path / f"{kind}-{seed}"
            shutil.copytree(ARCHIVES / kind, folder)
            if seed is not None:
                damaged(folder, seed)
            command = [program, "read", folder / "traces.otf2", "0"]
            try:
                done = subprocess.run(
                    command, env=environment, capture_output=True, timeout=10 if seed else 600
                )
            except subprocess.TimeoutExpired:  # libotf2 goes round in damage; Python ends that
                assert seed is not None
                continue
            assert done.returncode == 0 or seed is not None
            if b"libtrace/otf2" in done.stderr:
                complaints.append((kind, seed, done.stderr[-2000:]))
    assert complaints == []
    stream = subprocess.run(
        [sys.executable, "-c", "import sys, ensembles; from ensembles.writers.exchange import otf2; "
         "otf2._tell(sys.stdout.buffer, ensembles.open(sys.argv[1]), 2)", ARCHIVES / "others"],
        check=True, capture_output=True,
    ).stdout  # fmt: skip
    (tmp_path / "written").mkdir()
    done = subprocess.run(
        [program, "write", tmp_path / "written", "traces"], input=stream, env=environment, capture_output=True
    )
    assert (done.returncode, done.stderr) == (0, b"")
    for length in (0, 8, 100, len(stream) // 2, len(stream) - 5):
        (tmp_path / f"cut-{length}").mkdir()
        done = subprocess.run(
            [program, "write", tmp_path / f"cut-{length}", "traces"],
            input=stream[:length],
            env=environment,
            capture_output=True,
        )
        assert done.returncode == 2
        assert done.stderr.startswith(b"the input ")
        assert done.stderr.count(b"\n") == 1
