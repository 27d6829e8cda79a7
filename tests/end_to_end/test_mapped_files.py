"""Files in memory: what is mapped, synchronised and unmapped is known by file and offset."""

import re
import subprocess
from collections import Counter

import pytest

import ensembles

BUILDS = {
    "plain": (),
    "64-bit names": ("-D_FILE_OFFSET_BITS=64",),
    "64-bit names by hand": ("-D_LARGEFILE64_SOURCE", "-Dmmap=mmap64"),
}
PAGE = 4096
CALLS = ("mmap", "munmap", "msync", "mremap")


def done(run) -> list[str]:
    """Events as the program tells them."""
    events = run.events
    rows = zip(events.file, events.call, events.offset, events.requested, events.error, strict=True)
    return [
        f"{run.files[file].rsplit('/', 1)[1]} {run.calls[call].name} {offset} {requested} {error}"
        for file, call, offset, requested, error in rows
        if run.calls[call].name in CALLS
    ]


@pytest.mark.parametrize("options", BUILDS.values(), ids=BUILDS.keys())
def test_mapped_files_are_known_by_their_addresses(recorder, tmp_path, options):
    program = recorder.build("mapped_files", *options)
    traced = recorder.execute(program, "calls", tmp_path, check=False)
    assert (traced.returncode, traced.stderr) == (5, b"")
    assert (tmp_path / "a").read_bytes()[3 * PAGE :].startswith(b"written in memory")
    untraced = recorder.untraced(program, "calls", tmp_path)
    assert traced.stdout == untraced.stdout
    run = ensembles.open(recorder.run)
    assert sorted(done(run)) == sorted(traced.stdout.decode().splitlines())
    assert len({process.pid for process in run.info.processes}) == 2
    assert run.notes == []
    assert not run.events.moved[run.events.error == 0].any()


def test_static_programs_record_the_same(relinked, tmp_path):
    finished = relinked.execute(relinked.build("mapped_files", "-static"), "calls", tmp_path)
    assert finished.returncode == 5
    assert sorted(done(ensembles.open(relinked.run))) == sorted(finished.stdout.decode().splitlines())


def test_kernel_saw_as_many_maps_of_files(recorder, tmp_path):
    program = recorder.build("mapped_files")
    recorder.execute(program, "calls", tmp_path)
    log = tmp_path / "log"
    subprocess.run(
        ["strace", "-f", "-y", "-e", "trace=mmap", "-o", log, program, "calls", tmp_path],
        env=recorder.environment(ENSIO_DISABLE="1"),
        capture_output=True,
    )
    kernel = re.findall(rf"mmap\(.*<{re.escape(str(tmp_path))}/[ab]>, (\w+)\)", log.read_text())
    recorded = ensembles.open(recorder.run).select(call="mmap")
    assert Counter(int(offset, 0) for offset in kernel) == Counter(recorded.offset.tolist())


def test_threads_that_map_at_once_keep_their_files_apart(recorder, tmp_path):
    program = recorder.build("mapped_files")
    assert recorder.execute(program, "threads", tmp_path, timeout=600).returncode == 5
    run = ensembles.open(recorder.run)
    for thread in range(4):
        file = str(tmp_path / f"t{thread}")
        maps, syncs, ends = (run.select(call=call, file=file) for call in ("mmap", "msync", "munmap"))
        offsets = [i % 5 * PAGE for i in range(2000)]
        assert maps.offset.tolist() == offsets
        assert syncs.offset.tolist() == [offset + PAGE for offset in offsets]
        assert ends.offset.tolist() == [offset + part for offset in offsets for part in (0, PAGE)]


def test_more_maps_than_there_is_room_for_stay_without_their_end(recorder, tmp_path):
    recorder.execute(recorder.build("mapped_files"), "many", tmp_path)
    run = ensembles.open(recorder.run)
    counts = Counter(run.calls[call].name for call in run.events.call)
    assert counts["mmap"] == 5000
    assert counts["munmap"] == 4096


def check_allocator(recorder, tmp_path, *options):
    program = recorder.build("own_malloc", *options)
    finished = recorder.execute(program, tmp_path / "out", timeout=600)
    assert (finished.returncode, finished.stdout, finished.stderr) == (5, b"allocated\n", b"")
    assert (tmp_path / "out").read_bytes()[4096:].startswith(b"through memory\0")
    run = ensembles.open(recorder.run)
    counts = Counter(run.calls[call].name for call in run.select(file=str(tmp_path / "out")).call)
    assert counts == dict.fromkeys(("open", "ftruncate", "mmap", "msync", "munmap", "close"), 200)


def test_allocator_that_maps_memory_is_never_called_back(recorder, tmp_path):
    check_allocator(recorder, tmp_path)


def test_allocator_of_a_static_program_is_never_called_back(relinked, tmp_path):
    check_allocator(relinked, tmp_path, "-static")
