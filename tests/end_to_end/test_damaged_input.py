"""Every format: damaged input is read as before, or read with a note, or refused in one sentence.

Small sound samples are damaged at random places (always the same ones), and all of them is read in a process
of bounded memory and time.
"""

from __future__ import annotations

import gzip
import os
import random
import resource
import shutil
import signal
import struct
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from places import BUILD, PATIENCE_S, ROOT

import ensembles
from ensembles.cli.main import main
from ensembles.model.errors import EnsioError

sys.path[:0] = [str(ROOT / "tests/unit"), str(ROOT / "tests/unit/readers/foreign")]

FOREIGN = ROOT / "tests/unit/readers/foreign/traces"
MUTATIONS, MANY = 40, 2000
MOST_MORE_BYTES = 1 << 30
MOST_S = 60
WITH_SUMS = {"job", "profile job", "process", "trace.h5"}
"""Formats of which every part has a sum: what is not said is as it was."""

PROGRAM = "import os\nfor i in range(40):\n    f = os.open('f%d' % (i % 5), os.O_CREAT | os.O_RDWR)\n"
PROGRAM += "    os.write(f, bytes(1000 * i))\n    os.pread(f, 500, 0)\n    os.close(f)\n"


def recorded(folder: Path, mode: str, job_file: str, *words: str) -> Path:
    """The run directory of a command of ensio."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{BUILD / 'bin'}:{os.environ['PATH']}")
        patch.setenv("ENSIO_MODE", mode)
        patch.setenv("ENSIO_JOBFILE", job_file)
        patch.chdir(folder)
        assert main([words[0], "-o", str(folder / "run"), *words[1:]]) == 0
    return folder / "run"


def replayed(mode: str, job_file: str = "1") -> Callable[[Path], Path]:
    return lambda folder: recorded(folder, mode, job_file, "replay", "ior", "--tasks", "2")


def of_one(mode: str, job_file: str = "1") -> Callable[[Path], Path]:
    return lambda folder: recorded(folder, mode, job_file, "run", "--", sys.executable, "-c", PROGRAM)


def trace_file(folder: Path) -> Path:
    (folder / "made").mkdir()
    assert main(["collect", str(replayed("trace")(folder)), "-o", str(folder / "made/trace.h5")]) == 0
    return folder / "made"


def made_recorder(**layout: object) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        from made_recorder_traces import MadeCall, MadeTrace

        calls = [
            MadeCall("open", ("/data/f", "66"), 10, 20),
            *(
                MadeCall("pwrite", ("/data/f", "0x1", "4096", str(4096 * i)), 100 * i, 100 * i + 50)
                for i in range(1, 30)
            ),
            MadeCall("close", ("/data/f",), 4000, 4010),
        ]
        return MadeTrace(**layout, ranks=[calls, calls[:9], calls]).write(folder / "recorder")  # type: ignore[arg-type]

    return make


def made_darshan(folder: Path) -> Path:
    from made_darshan_logs import traced_log

    (folder / "logs").mkdir()
    traced_log().write(folder / "logs/x.darshan")
    return folder / "logs"


def copied(path: Path, packed: bool = False) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        if path.is_dir():
            return shutil.copytree(path, folder / "copy")
        (folder / "copy").mkdir()
        name = path.name + ".gz" * packed
        (folder / "copy" / name).write_bytes(
            gzip.compress(path.read_bytes()) if packed else path.read_bytes()
        )
        return folder / "copy"

    return make


def unpacked(name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        with tarfile.open(ROOT / f"tests/corpus/runs/{name}.tar.xz") as packed:
            packed.extractall(folder / "unpacked")
        found = folder / "unpacked" / name
        return found if found.is_dir() else found.parent

    return make


SAMPLES: dict[str, Callable[[Path], Path]] = {
    "job": replayed("trace"),
    "profile job": replayed("profile"),
    "process": of_one("trace"),
    "spool": of_one("trace", "0"),
    "tail spools": replayed("tail", "0"),
    "spool of regions": unpacked("regions"),
    "spool of flights": unpacked("flights-aio"),
    "trace.h5": trace_file,
    "otf2": copied(ROOT / "tests/end_to_end/archives/ours"),
    "recorder 3": made_recorder(version="3.0", is_merged=True, packs_times=True),
    "recorder 2": made_recorder(version="2.4"),
    "recorder 2 merged": made_recorder(version="2.4", is_merged=True),
    "dftracer": copied(FOREIGN / "dftracer-1.0.5.pfw"),
    "dftracer packed": copied(FOREIGN / "dftracer-4.3.0.pfw", packed=True),
    "strace": unpacked("strace"),
    "darshan": made_darshan,
}
SLOW = {"darshan": 8, "otf2": 16}
"""Formats that a separate process reads: fewer mutations in the ordinary tests."""


@pytest.fixture(scope="module", params=SAMPLES)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A format, and a sound sample of it."""
    return request.param, SAMPLES[request.param](tmp_path_factory.mktemp("made"))


@pytest.fixture
def sample(made: tuple[str, Path], tmp_path: Path) -> tuple[str, Path]:
    """A format, and a sample of it that may be damaged."""
    return made[0], shutil.copytree(made[1], tmp_path / made[1].name, symlinks=True)


def place_of(folder: Path) -> Path:
    """What is opened: the folder, or the only file in it."""
    files = [path for path in folder.iterdir() if path.is_file()]
    single = len(files) == 1 and len(list(folder.iterdir())) == 1
    return files[0] if single else folder


def all_of(folder: Path) -> tuple[list[bytes], list[str]]:
    """Everything that is read, as bytes, and the notes."""
    run = ensembles.open(place_of(folder))
    events, regions = run.events, run.regions
    assert (events.duration >= 0).all()
    assert (events.file < len(run.files)).all()
    assert (events.call < len(run.calls)).all()
    columns = [*events.columns.values(), *regions.columns.values(), *run.surroundings().columns.values()]
    columns += run.summary.to_arrays().values() if run.summary else []
    texts = repr((run.files, run.calls, run.tasks, run.info.processes, regions.names, run.info.flights))
    return [*(np.ascontiguousarray(column).tobytes() for column in columns), texts.encode()], list(run.notes)


def damaged(data: bytes, dice: random.Random) -> bytes:
    """Cut it off, lengthen it, or change some bytes, most of them at the beginning."""
    what = dice.random()
    if what < 0.1:
        return data[: dice.randrange(len(data))]
    if what < 0.2:
        return data + dice.choice((b"\0", b"\xff", data[:7], data[-dice.randrange(1, 99) :]))
    changed = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, 8, 40))):
        at = dice.randrange(min(len(changed), dice.choice((200, 2000, 20_000, 1 << 30))))
        length = dice.choice((1, 2, 4, 8))
        if dice.random() < 0.6:
            changed[at] ^= 1 << dice.randrange(8)
        else:
            changed[at : at + length] = dice.choice((b"\xff", b"\0", b"\x7f", b"\x80", b"\x01")) * length
    return bytes(changed[: max(len(data), 1)])


def in_bounds(told: Path, act: Callable[[], None]) -> None:
    """Do something in a child of bounded memory; it tells where it was when it failed or hung."""
    told.write_text("the sound sample")
    child = os.fork()
    if child == 0:
        code = 99
        try:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            limit = pages * resource.getpagesize() + MOST_MORE_BYTES
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            act()
            code = 0
        except BaseException as error:
            told.write_text(f"{told.read_text()}: {error!r}")
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, told.read_text()


def outcome(folder: Path, sound: tuple[list[bytes], list[str]], has_sums: bool) -> str:
    """Read what is damaged, within the time; fail if it is wrong and nothing says so."""
    signal.alarm(PATIENCE_S)
    try:
        found, notes = all_of(folder)
    except EnsioError as error:
        assert "\n" not in str(error)  # noqa: PT017
        assert not isinstance(error.__cause__, struct.error) or str(error.__cause__) not in str(error)  # noqa: PT017
        return "refused"
    finally:
        signal.alarm(0)
    if found == sound[0]:
        return "the same"
    assert not has_sums or notes != sound[1], "another answer without a note"
    return "another"


def mutate(tmp_path: Path, name: str, folder: Path, seeds: range) -> None:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    contents = [path.read_bytes() for path in files]
    told = tmp_path / "told"

    def act() -> None:
        sound, seen = all_of(folder), set()
        for seed in seeds:
            told.write_text(f"{name}, seed {seed}")
            dice = random.Random(f"{name} {seed}")
            which = dice.randrange(len(files))
            files[which].write_bytes(damaged(contents[which], dice))
            seen.add(outcome(folder, sound, name in WITH_SUMS))
            files[which].write_bytes(contents[which])
        assert seen - {"the same"}, "nothing was damaged"

    in_bounds(told, act)


def test_damaged_input_is_read_or_refused_in_a_sentence(tmp_path: Path, sample: tuple[str, Path]) -> None:
    mutate(tmp_path, *sample, range(SLOW.get(sample[0], MUTATIONS)))


@pytest.mark.long
def test_much_damaged_input_is_read_or_refused_in_a_sentence(
    tmp_path: Path, sample: tuple[str, Path]
) -> None:
    mutate(tmp_path, *sample, range(MUTATIONS, MUTATIONS + MANY))


def put_pipe(path: Path) -> None:
    os.mkfifo(path)


def put_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def put_hole(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(6 << 30)


def put_nothing(path: Path) -> None:
    path.touch()


def test_what_is_no_file_or_a_hole_is_not_read(tmp_path: Path, sample: tuple[str, Path]) -> None:
    """In the place of each file of a trace: a pipe, a device without end, 6 GiB of nothing, no byte."""
    name, folder = sample
    told = tmp_path / "told"

    def act() -> None:
        sound = all_of(folder)
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            path.rename(tmp_path / "kept")
            for put in (put_pipe, put_device, put_hole, put_nothing):
                told.write_text(f"{name}, {path.name}, {put.__name__}")
                put(path)
                used = time.process_time()
                outcome(folder, sound, name in WITH_SUMS)
                assert time.process_time() - used < MOST_S
                path.unlink()
            (tmp_path / "kept").rename(path)

    in_bounds(told, act)
