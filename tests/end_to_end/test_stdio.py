"""Calls on streams are recorded as they happened, and happen as they would have without us."""

import functools
import os
import subprocess
from collections import Counter

import commands_here
import pytest

import ensembles

BUILDS = {
    "plain": (),
    "64-bit names": ("-D_FILE_OFFSET_BITS=64",),
    "fortified names": ("-D_FORTIFY_SOURCE=2",),
    "fortified 64-bit names": ("-D_FORTIFY_SOURCE=2", "-D_FILE_OFFSET_BITS=64"),
    "no names put in for others": ("-fno-builtin", "-O0"),
}


def done(events) -> list[tuple]:
    """What the program says of its calls: name, requested, moved, errno, offset."""
    names = [events.calls[call].name for call in events.call]
    columns = (events.requested, events.moved, events.error, events.offset)
    return list(zip(names, *(column.tolist() for column in columns), strict=True))


def counts(events) -> Counter:
    return Counter(events.calls[call].name for call in events.call)


def said(execute, program, folder) -> tuple[subprocess.CompletedProcess, list[tuple]]:
    """Run a program that tells on descriptor 3 what it did."""
    folder.mkdir()
    log = folder.parent / f"{folder.name}.log"
    command = ("sh", "-c", 'exec "$0" "$1" 3>"$2"', program, folder, log)
    finished = execute(*command, stdin=subprocess.DEVNULL)
    lines = [line.split() for line in log.read_text().splitlines()]
    return finished, [(name, *map(int, numbers)) for name, *numbers in lines]


@pytest.mark.parametrize("options", BUILDS.values(), ids=BUILDS.keys())
def test_events_are_what_the_program_did_and_nothing_changes(recorder, tmp_path, options):
    program = recorder.build("stdio_calls", *options)
    traced, expected = said(recorder.execute, program, tmp_path / "traced")
    untraced, without = said(recorder.untraced, program, tmp_path / "untraced")
    assert traced.returncode == untraced.returncode == 7
    assert (traced.stdout, traced.stderr) == (untraced.stdout, untraced.stderr) == (b"", b"")
    assert expected == without
    for name in ("a.data", "b.data"):
        assert (tmp_path / "traced" / name).read_bytes() == (tmp_path / "untraced" / name).read_bytes()

    run = ensembles.open(recorder.run)
    assert done(run.select(layer="stdio", file="*/a.data")) == expected
    table = {call.name for call in run.calls if call.layer == "stdio"}
    elsewhere = {"tmpfile", "putw", "getw", "fcloseall", "__uflow", "__overflow"}  # test_calls.py
    assert {name for name, *_ in expected} == table - elsewhere
    (failed,) = done(run.select(file="*/missing/c.data"))
    assert failed == ("fopen", 0, -1, 2, -1)
    assert counts(run.select(file="*/b.data")).keys() >= {"freopen", "fclose"}
    assert counts(run.select(call="tmpfile")) == {"tmpfile": 1}
    assert not run.select(layer="stdio").depth.any()
    assert run.notes == []


def test_static_programs_record_the_same(relinked, tmp_path):
    program = relinked.build("stdio_calls", "-static")
    finished, expected = said(relinked.execute, program, tmp_path / "data")
    assert finished.returncode == 7
    assert done(ensembles.open(relinked.run).select(layer="stdio", file="*/a.data")) == expected


def test_names_of_newer_libraries_record_the_same(recorder, tmp_path):
    newer, plain, renamed = (tmp_path / name for name in ("libnewer.so", "plain.o", "renamed.o"))
    source, program = recorder.source("stdio_calls"), tmp_path / "program"
    subprocess.run(["gcc", "-shared", "-fPIC", recorder.source("newer_scanf"), "-o", newer], check=True)
    subprocess.run(["gcc", "-O2", "-w", "-c", source, "-o", plain], check=True)
    scanfs = ("fscanf", "vfscanf", "scanf", "vscanf")
    names = [f"--redefine-sym=__isoc99_{name}=__isoc23_{name}" for name in scanfs]
    subprocess.run(["objcopy", *names, plain, renamed], check=True)
    driver = [recorder.driver] if recorder.way == "relinked" else []
    libraries = ["-Wl,--no-as-needed", newer, f"-Wl,-rpath,{tmp_path}"]
    subprocess.run([*driver, "gcc", renamed, *libraries, "-o", program], check=True)
    finished, expected = said(recorder.execute, program, tmp_path / "data")
    assert finished.returncode == 7
    events = ensembles.open(recorder.run).select(layer="stdio", file="*/a.data")
    assert done(events[events.depth == 0]) == expected  # preloaded, what that library calls is seen too
    assert Counter(name for name, *_ in expected)["fscanf"] == 4


def test_threads_that_share_a_stream_lose_no_call(recorder, tmp_path):
    out, threads, calls = tmp_path / "out", 2, 20_000
    recorder.execute(recorder.build("stdio_threads"), out, threads, calls, check=True)
    lines = out.read_text().splitlines()
    assert sorted(lines) == [f"{'ab'[thread]}{i:06d}" for thread in range(threads) for i in range(calls)]
    run = ensembles.open(recorder.run)
    assert counts(run.select(file=str(out))) == {"fopen": 1, "fprintf": threads * calls, "fclose": 1}
    assert int(run.select(call="fprintf").moved.sum()) == out.stat().st_size
    assert run.notes == []


def test_excluded_paths_are_left_out(recorder, tmp_path):
    excluded = {"ENSIO_EXCLUDE": f"{tmp_path}/o*"}
    program = recorder.build("stdio_threads")
    recorder.execute(program, tmp_path / "out", 1, 10, environment=excluded, check=True)
    run = ensembles.open(recorder.run)
    assert len(run.events) == 0
    assert run.info.processes[0].excluded_calls >= 2  # the threads' are added when their windows change


def test_layers_that_are_not_named_are_not_recorded(recorder, tmp_path):
    program = recorder.build("stdio_calls")
    for layer in ("posix", "stdio"):
        recorder.run = tmp_path / layer
        execute = functools.partial(recorder.execute, environment={"ENSIO_LAYERS": layer})
        _, expected = said(execute, program, tmp_path / f"data-{layer}")
        run = ensembles.open(recorder.run)
        assert {run.calls[call].layer for call in run.events.call} == {layer}
        if layer == "stdio":
            assert done(run.select(file="*/a.data")) == expected
        else:
            assert counts(run.select(file="*/a.data"))["open"] == 1


def test_unknown_layer_is_told_in_a_sentence_and_ignored(recorder, tmp_path):
    program = recorder.build("stdio_threads")
    finished = recorder.execute(
        program, tmp_path / "out", 1, 10, environment={"ENSIO_LAYERS": "posix,tape"}, check=True
    )
    message = finished.stderr.decode()
    assert message.startswith('ensio: ENSIO_LAYERS names "tape"')
    assert message.count("\n") == 1
    assert len(ensembles.open(recorder.run).select(file=str(tmp_path / "out"))) == 0


def test_cxx_streams_work(preload, tmp_path):
    program, out = tmp_path / "streams", tmp_path / "out"
    source = preload.source("formatted_streams").with_suffix(".cpp")
    subprocess.run(["g++", "-O2", source, "-o", program], check=True)
    finished = preload.execute(program, out)
    assert (finished.returncode, finished.stdout, finished.stderr) == (3, b"499500\n", b"")
    run = ensembles.open(preload.run)
    here = counts(run.select(file=str(out)))
    assert here["fopen"] == here["fclose"] == 2
    writes = run.select(file=str(out), op="write")
    assert int(writes.moved.sum()) == os.path.getsize(out)
    assert writes.offset.tolist()[0] == 0
    reads = run.select(file=str(out), op="read")
    assert int(reads.moved.sum()) == os.path.getsize(out)


def test_both_layers_are_told_apart_and_bytes_count_once(recorder, tmp_path):
    recorder.execute(recorder.build("stdio_threads"), tmp_path / "out", 1, 100, check=True)
    info = commands_here.told("info", recorder.run)
    assert info["calls"]["fprintf"]["layer"] == "stdio"
    assert info["bytes_written"] == (tmp_path / "out").stat().st_size == 800
