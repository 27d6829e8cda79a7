"""What other tracers are known to miss, to count wrongly, or to break: a test for each."""

import re
import shutil
import subprocess
from collections import Counter

import pytest
from places import BUILD, ROOT

import ensembles

TEXT = b"0123456789" * 20


def counts(events) -> Counter:
    return Counter(events.calls[call].name for call in events.call)


def run_same(recorder, tmp_path, what, *options):
    """Run one of the programs of ``known_failures.c`` recorded and not; return its outputs and its run."""
    program, data = recorder.build("known_failures", *options), tmp_path / "data"
    printed = []
    for execute in (recorder.untraced, recorder.execute):
        data.write_bytes(TEXT)
        done = execute(program, what, data, timeout=600)
        assert (done.returncode, done.stderr) == (5, b"")
        printed.append(done.stdout.decode())
    return printed, ensembles.open(recorder.run)


FORTIFIED = {
    "read": "__read_chk",
    "pread": "__pread_chk",
    "fread": "__fread_chk",
    "fgets": "__fgets_chk",
    "fprintf": "__fprintf_chk",
    "open": "__open_2",
}


@pytest.mark.parametrize(("call", "symbol"), FORTIFIED.items())
def test_fortified_calls_are_recorded(recorder, preload, tmp_path, call, symbol):
    plain = preload.build("known_failures", "-D_FORTIFY_SOURCE=2")
    wanted = subprocess.run(["nm", "-u", plain], capture_output=True, text=True, check=True).stdout
    assert re.search(rf"\b{symbol}\b", wanted), f"the compiler made no call of {symbol}"
    printed, run = run_same(recorder, tmp_path, "fortified", "-D_FORTIFY_SOURCE=2")
    assert printed[0] == printed[1]
    assert counts(run.select(file=str(tmp_path / "data")))[call] == 1


def test_stat_family_is_recorded(recorder, tmp_path):
    printed, run = run_same(recorder, tmp_path, "statuses")
    assert printed == ["00000\n", "00000\n"]
    ours = counts(run.select(file=str(tmp_path / "data")))
    assert {"stat": 1, "lstat": 1, "fstat": 1, "fstatat": 1, "statx": 1}.items() <= ours.items()


def test_stat_family_of_older_programs_is_recorded(preload, tmp_path):
    printed, run = run_same(preload, tmp_path, "old_statuses", "-DOLD_STAT")
    assert printed == ["000\n", "000\n"]
    ours = counts(run.select(file=str(tmp_path / "data")))
    assert {"stat": 1, "lstat": 1, "fstat": 1}.items() <= ours.items()


def test_child_writes_no_event_into_its_parents_file(recorder, tmp_path):
    printed, run = run_same(recorder, tmp_path, "parent_and_child")
    parent, child = map(int, printed[1].split())
    assert len(run.info.processes) == 2
    writes = {"parent": {"before": 10, "parent": 3000}, "child": {"child": 5000}}
    for name, pid in (("parent", parent), ("child", child)):
        (record,) = recorder.run.glob(f"*-{pid}-*.ensio")
        alone = tmp_path / f"alone-{name}"
        alone.mkdir()
        shutil.copy(record, alone)
        mine = ensembles.open(alone)
        files = mine.select(call="write", file=f"{tmp_path}/data.*").file.tolist()
        names = Counter(mine.files[file].rsplit(".")[-1] for file in files)
        assert names == writes[name]


def test_children_end_as_they_would(recorder, tmp_path):
    printed, run = run_same(recorder, tmp_path, "ends_of_children")
    assert printed[0] == printed[1]
    assert Counter(printed[0].split()) == {"b00": 10, "c00": 10, "d00": 10, "6": 10, "f": 10, "e00": 10}
    assert len(run.info.processes) == 61


def test_two_threads_are_counted_exactly(recorder, tmp_path):
    _, run = run_same(recorder, tmp_path, "two_threads")
    assert counts(run.select(file=str(tmp_path / "data"))) == {"open": 2, "pread": 200_000, "close": 2}
    assert run.info.dropped_events == 0


SETTINGS = sorted(
    {
        name
        for source in (ROOT / "libtrace").rglob("*.c")
        for name in re.findall(r'"(ENSIO_[A-Z_]+)"', source.read_text())
    }
)
ABSURD = {
    "too large": "99999999999999999999999999",
    "just too large": "18446744073709551616",
    "negative": "-1",
    "not finite": "1e999",
    "format": "%n%s%n%s",
    "long": "x" * 100_000,
    "not text": "\udcff\udcfe",
    "separators": ",,:,!*:,/,",
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_absurd_settings_never_hurt_the_program(recorder, tmp_path, setting):
    program = recorder.build("acknowledge")
    alone = recorder.untraced(program, tmp_path / "out", 200).stdout
    for name, value in ABSURD.items():
        folder = tmp_path / name
        folder.mkdir()
        environment = {"ENSIO_DIR": str(folder / "run")} | {setting: value}
        done = recorder.execute(
            program, tmp_path / "out", 200, cwd=folder, environment=environment, timeout=600
        )
        assert (done.returncode, done.stdout) == (0, alone), name
        assert all(line.startswith(b"ensio: ") for line in done.stderr.splitlines()), name


def test_memory_settings_that_overflow_lose_nothing(recorder, tmp_path):
    program = recorder.build("acknowledge")
    for budget in ("18446744073709551615", "18446744073709551617", "9223372036854775808"):
        recorder.run = tmp_path / budget
        recorder.execute(program, tmp_path / "out", 5000, environment={"ENSIO_MAX_BYTES": budget}, check=True)
        run = ensembles.open(recorder.run)
        assert len(run.select(call="pwrite")) == 5000
        assert run.info.dropped_events == 0


def test_static_program_holds_the_wrappers_and_no_shared_library(relinked, tmp_path):
    program = relinked.build("acknowledge", "-static")
    dynamic = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
    assert "There is no dynamic section" in dynamic
    symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    assert " T __wrap_pwrite\n" in symbols
    relinked.execute(program, tmp_path / "out", 100, check=True)
    assert len(ensembles.open(relinked.run).select(call="pwrite")) == 100


def test_dynamic_program_needs_no_shared_library_of_ours(relinked):
    program = relinked.build("acknowledge")
    dynamic = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
    assert "NEEDED" in dynamic
    assert "ensio" not in dynamic.lower().replace(str(BUILD).lower(), "")


CALLGRIND = ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null")


def test_cyclic_offsets_cost_what_others_cost(recorder, tmp_path):
    """Counted in instructions of 10,000 calls more, not in time."""
    if not shutil.which("valgrind"):
        pytest.skip("valgrind is not installed")
    binary = BUILD / "bin" / ("ensio-bench-relinked" if recorder.way == "relinked" else "ensio-bench-program")
    environment = {"ENSIO_EXCLUDE": "", "ENSIO_JOBFILE": "0"}  # no coding at the end

    def instructions(call, calls):
        done = recorder.execute(*CALLGRIND, binary, call, calls, environment=environment, check=True)
        return int(re.search(rb"Collected : (\d+)", done.stderr)[1])

    ascending, cyclic = (
        (instructions(call, 12_000) - instructions(call, 2_000)) / 10_000 for call in ("pwrite", "cyclic")
    )
    assert 50 < ascending < 1000
    assert abs(cyclic - ascending) < 30  # the program's own division is among these
