"""A path that was seen before means another file by now: its calls still get the right name."""

import os
import random
import subprocess
from collections import Counter

import pytest
from places import PATIENCE_S

import ensembles


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "work"
    made.mkdir()
    return made.resolve()


def recorded_writes(recorder, folder) -> Counter:
    """The writes below the folder, by file and bytes."""
    run = ensembles.open(recorder.run)
    assert run.info.dropped_events == 0
    events = run.select(call="write", file=f"{folder}*")
    names = [os.path.relpath(run.files[file], folder) for file in events.file.tolist()]
    return Counter(zip(names, events.requested.tolist(), strict=True))


def said_writes(output: bytes) -> Counter:
    """The writes that the program says it made."""
    words = (line.rsplit(" ", 1) for line in output.decode().splitlines())
    return Counter((name, int(size)) for name, size in words if int(size) > 0)


def recorded_looks(recorder, folder) -> Counter:
    """The calls of stat below the folder, by file."""
    run = ensembles.open(recorder.run)
    files = run.select(call="stat", file=f"{folder}/*").file.tolist()
    return Counter(os.path.normpath(os.path.relpath(run.files[file], folder)) for file in files)


def said_looks(output: bytes) -> Counter:
    """The program looks at each file that it has written, but not at one without a name."""
    names = (line.rsplit(" ", 1)[0] for line in output.decode().splitlines())
    return Counter(
        os.path.normpath(name) for name in names if name[0] != "#" and name not in ("first", "second")
    )


def normal(writes: Counter) -> Counter:
    """The recorder keeps `..` in a path; it means the same file here."""
    total: Counter = Counter()
    for (name, size), count in writes.items():
        total[(os.path.normpath(name), size)] += count
    return total


@pytest.mark.parametrize(
    "what", ["folders", "walks", "threads", "renamed", "replaced", "same_memory", "child"]
)
def test_path_that_means_another_file(recorder, folder, what):
    program = recorder.build("seen_paths")
    done = recorder.execute(program, what, folder, timeout=PATIENCE_S)
    assert done.returncode == 20, done.stderr
    said = said_writes(done.stdout)
    assert sum(said.values()) >= 5
    assert normal(recorded_writes(recorder, folder)) == normal(said)
    assert recorded_looks(recorder, folder) == said_looks(done.stdout)


def test_folder_by_descriptor_that_means_another_one(recorder, folder):
    program = recorder.build("seen_paths")
    done = recorder.execute(program, "below_descriptors", folder, timeout=PATIENCE_S)
    assert done.returncode == 20, done.stderr
    said = normal(said_writes(done.stdout))
    assert len(said) == 40
    assert normal(recorded_writes(recorder, folder)) == said
    run = ensembles.open(recorder.run)
    looks = run.select(call="fstatat", file=f"{folder}/*").file.tolist()
    names = Counter(os.path.relpath(run.files[file], folder) for file in looks)
    assert names == Counter(name for name, size in said if size < 9000)


def test_handlers_that_jump_out_of_calls_on_new_paths(recorder, folder):
    program = recorder.build("seen_paths", "-pthread")
    done = recorder.execute(program, "jumping", folder, timeout=PATIENCE_S)
    assert done.returncode == 20, done.stderr
    *lines, jumped = done.stdout.splitlines(keepends=True)
    assert int(jumped.split()[1]) > 100
    said, recorded = said_writes(b"".join(lines)), recorded_writes(recorder, folder)
    assert sum(said.values()) > 10_000
    # A jump may come after a write and before its event, or after the event and before the program notes it.
    assert sum((said - recorded).values()) <= int(jumped.split()[1])
    for (name, size), count in recorded.items():
        kind, _, number = name.partition(".")
        assert kind in ("jump", "beside")
        assert (size, count) == (1 + int(number), 1)


def test_folder_that_a_library_changes(recorder, folder, tmp_path):
    source, library = tmp_path / "go.c", tmp_path / "go.so"
    source.write_text("#include <unistd.h>\nint go(const char *path) { return chdir(path); }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", source, "-o", library], check=True)
    done = recorder.execute(recorder.build("seen_paths", "-ldl"), "of_library", folder, library)
    assert done.returncode == 20, done.stderr
    assert normal(recorded_writes(recorder, folder)) == said_writes(done.stdout)


def test_path_that_names_a_descriptor(recorder, folder):
    program = recorder.build("seen_paths")
    done = recorder.execute(program, "descriptors", folder, environment={"ENSIO_EXCLUDE": ""})
    assert done.returncode == 20, done.stderr
    writes = ensembles.open(recorder.run).select(call="write", file="/proc/self/fd/50")
    assert writes.requested.tolist() == [4, 4]


def test_handlers_at_any_moment(recorder, folder):
    program = recorder.build("seen_paths")
    done = recorder.execute(program, "handlers", folder, timeout=PATIENCE_S)
    assert done.returncode == 20, done.stderr
    handled = int(done.stdout.split()[-1])
    assert handled > 100
    by_name: Counter = Counter()
    for (name, size), count in recorded_writes(recorder, folder).items():
        by_name[(name.split(".")[0], size)] += count
    assert by_name == {("handler", 11): 2 * handled, ("main", 13): 8001}
    run = ensembles.open(recorder.run)
    copies = run.select(call="pwrite", file=f"{folder}/main.*")
    assert len(copies) == 8000
    opened = run.select(call="open", file=f"{folder}/*")
    assert len(opened) == 8001 + handled
    assert len(run.select(call="close", file=f"{folder}/*")) == 16_001 + 2 * handled


def test_descriptors_that_change_hands(recorder, folder):
    program = recorder.build("seen_paths")
    done = recorder.execute(program, "storms", folder, timeout=PATIENCE_S)
    assert done.returncode == 20, done.stderr
    expected: Counter = Counter()
    for own in "abcd":
        for i in range(40):
            expected[(f"storm.{own}.{i}", 100 + ord(own))] = expected[(f"storm.{own}.{i}", 1)] = 125
    assert recorded_writes(recorder, folder) == expected
    # Positions belong to the open file: the duplicate goes on where the first descriptor ended.
    run = ensembles.open(recorder.run)
    events = run.select(call="write", file=f"{folder}/storm.a.*")
    offsets = Counter(zip(events.requested.tolist(), events.offset.tolist(), strict=True))
    assert offsets == {(100 + ord("a"), 0): 5000, (1, 100 + ord("a")): 5000}


MASK = (1 << 64) - 1


def mix(value: int, word: int) -> int:
    """As in libtrace/core/bounded_string.c."""
    value = ((value ^ word) * 0x9E3779B97F4A7C15) & MASK
    return value ^ value >> 29


def hash_of(path: bytes) -> int:
    """The hash of an absolute path whose length is a multiple of eight."""
    assert len(path) % 8 == 0
    value = mix(1, len(path))
    for at in range(0, len(path), 8):
        value = mix(value, int.from_bytes(path[at : at + 8], "little"))
    return mix(value, 0)


def test_paths_with_the_same_hash_are_two_files(recorder, folder):
    """The last two words of a path are chosen so that their hashes meet."""
    start = os.fsencode(folder) + b"/"
    start += b"x" * (-len(start) % 8)
    value = mix(1, len(start) + 16)
    for at in range(0, len(start), 8):
        value = mix(value, int.from_bytes(start[at : at + 8], "little"))
    letters, second = random.Random(1), b"BBBBBBBB"
    for _ in range(1_000_000):
        first, other = (bytes(letters.choices(range(ord("a"), ord("z") + 1), k=8)) for _ in range(2))
        tail = mix(value, int.from_bytes(first, "little")) ^ mix(value, int.from_bytes(other, "little"))
        last = (tail ^ int.from_bytes(second, "little")).to_bytes(8, "little")
        if first != other and last.isascii() and last.decode().isprintable() and b"/" not in last:
            break
    else:
        pytest.fail("no such path was found")
    paths = [start + first + second, start + other + last]
    assert hash_of(paths[0]) == hash_of(paths[1])
    program = recorder.build("seen_paths")
    text = b"".join(path + b"\n" for path in paths * 2)
    done = recorder.execute(program, "listed", folder, input=text)
    assert done.returncode == 20, done.stderr
    names = [os.path.relpath(os.fsdecode(path), folder) for path in paths]
    assert recorded_writes(recorder, folder) == {
        (name, size): 1 for size, name in enumerate(names * 2, start=1)
    }
