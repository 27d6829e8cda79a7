"""What a finding tells a reader: shares of one length, calls on paths, bounds that hold, places."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from made_io import KIB, Made, io_run

import ensembles as en
from ensembles.answers.info import answer_info
from ensembles.cli.main import main
from ensembles.diagnosis.call_sites import symbol_hint, with_sites
from ensembles.diagnosis.diagnose import diagnose
from ensembles.diagnosis.finding import Finding, Where
from ensembles.run.information import collect_information

SYNCED = [Made("pwrite", 20, 4 * KIB), Made("fsync", 5000)] * 60
"""60 records of 4 KiB, each with an fsync of 5 ms: 300 ms of syncs."""

JOURNAL = [
    Made("open", 20, file=2),
    Made("pwrite", 10, 4 * KIB, 0, file=2),
    Made("close", 5, file=2),
    Made("unlink", 3000, file=2),
]
TWO = {1: "/srv/table.db", 2: "/srv/table.db-journal"}


LATE_US = 19.7e6
"""Computation of a program before its first call: it runs for 20.0 s."""

BEGAN_NS = 1_700_000_000 * 10**9
LONG = {
    "first_realtime_ns": BEGAN_NS,
    "last_realtime_ns": BEGAN_NS + round((LATE_US + 60 * 5022) * 1e3),
}


def findings(run: en.Run) -> dict[str, Finding]:
    return {found.id: found for found in en.diagnose(run).findings}


def test_all_shares_are_of_the_whole_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """300 ms of syncs are nearly all of the time between calls, and 1.5 % of a run of 20 s."""
    run = io_run(tmp_path / "run", [SYNCED], starts_us=[LATE_US], head=LONG)
    diagnosis = en.diagnose(run)
    found = {each.id: each for each in diagnosis.findings}
    assert {each.severity for each in diagnosis.findings} == {"note"}
    assert {"not-io", "sync-per-write"} <= set(found)
    assert diagnosis.run_s == pytest.approx(20.0, rel=1e-3)
    assert {each.evidence["run_s"] for each in diagnosis.findings} == {diagnosis.run_s}
    assert not any("span_s" in each.evidence for each in diagnosis.findings)
    assert found["not-io"].evidence["io_share"] == pytest.approx(0.301 / 20, rel=0.01)
    assert str(diagnosis).startswith("I/O is 2 % of 20.0 s. Explained: 98 % of it")
    assert main(["diagnose", run.path, "--json", "--fail-on", "warning"]) == 0
    assert json.loads(capsys.readouterr().out)["run_s"] == diagnosis.run_s


def test_the_same_calls_in_a_short_run_are_critical(tmp_path: Path) -> None:
    run = io_run(tmp_path / "run", [SYNCED])
    assert findings(run)["sync-per-write"].severity == "critical"
    assert "once after many records" in findings(run)["sync-per-write"].advice
    steps = [Made("pwrite", 200, 2 * KIB * KIB), Made("fsync", 5000)] * 60
    advice = findings(io_run(tmp_path / "steps", [steps]))["sync-per-write"].advice
    assert "once in several steps, or when the file is closed" in advice
    assert "not-io" not in findings(run)


def test_sums_have_the_same_denominator(tmp_path: Path) -> None:
    from ensembles.diagnosis.rules import disk_waits, not_io

    rules = [rule.of_sums() for rule in (not_io.rule, disk_waits.sync_per_write)]
    run = io_run(tmp_path / "run", [SYNCED], starts_us=[LATE_US], head=LONG)
    found = [diagnose(run, [rule]).findings[0] for rule in rules]
    assert [each.severity for each in found] == ["note", "note"]
    assert [each.evidence["run_s"] for each in found] == [pytest.approx(20.0, rel=1e-3)] * 2


def test_calls_on_open_files_are_no_calls_on_paths(tmp_path: Path) -> None:
    """As tar, which reads a folder: each entry is another one."""
    calls = [Made("open", 20), *[Made("readdir", 100)] * 300, Made("close", 5)]
    calls += [Made("mmap", 50), Made("fstat", 50)] * 100
    assert "metadata-storm" not in findings(io_run(tmp_path / "run", [calls]))


def test_one_slow_call_on_a_path_is_not_what_asking_once_saves(tmp_path: Path) -> None:
    """As an open that empties a large file, among looks at the same path."""
    calls = [Made("stat", 3)] * 20 + [Made("open", 3), Made("close", 3)] * 20
    slow = [*calls, Made("open", 34_000), Made("close", 3), Made("pwrite", 20_000, 10, 0)]
    assert "metadata-storm" not in {
        name: each
        for name, each in findings(io_run(tmp_path / "slow", [slow])).items()
        if each.gain_s[1] > 1e-3
    }
    # Many slow ones are.
    storm = [*[Made("open", 3_000), Made("close", 3)] * 20, *slow]
    assert findings(io_run(tmp_path / "storm", [storm]))["metadata-storm"].gain_s[0] > 0.02


def test_closes_and_fstats_go_with_their_opens_and_are_not_counted(tmp_path: Path) -> None:
    each = [Made("open", 30), Made("fstat", 10), Made("pwrite", 10, 10, 0), Made("close", 10)]
    found = findings(io_run(tmp_path / "run", [each * 200]))["metadata-storm"]
    assert found.title == "200 calls on paths, 199 of them for the same path again, take 30.0 µs each"
    assert set(found.where.calls) == {"open"}
    # 199 times an open, an fstat and a close.
    low, high = found.gain_s
    assert low < 199 * 50e-6 < high
    assert high <= 200 * 50e-6 * (1 + 1e-9)


@pytest.mark.parametrize("name", ["lseek", "fcntl", "fstat", "posix_fadvise"])
def test_calls_that_go_with_each_open_go_with_it(tmp_path: Path, name: str) -> None:
    """As of a Fortran program that opens a file at its end for each line."""
    line = [Made("open", 3), Made(name, 10), Made("pwrite", 10, 90, 0), Made("close", 3)]
    found = findings(io_run(tmp_path / "run", [line * 200]))["metadata-storm"]
    assert found.share_s == pytest.approx(199 * 16e-6, rel=0.05)
    # Others, which the program makes as well, stay.
    more = [*line, *[Made(name, 10)] * 3]
    found = findings(io_run(tmp_path / "more", [more * 200]))["metadata-storm"]
    assert found.share_s == pytest.approx(199 * 16e-6, rel=0.05)


def test_paths_that_are_asked_for_in_turn_are_asked_for_again(tmp_path: Path) -> None:
    paths = {1: "/scratch/a", 2: "/scratch/b", 3: "/scratch/c"}
    one = [Made("stat", 30, file=1)] * 300
    turns = [Made("stat", 30, file=1 + at % 3) for at in range(300)]
    found = findings(io_run(tmp_path / "turns", [turns], paths))["metadata-storm"]
    assert "300 calls on paths, 297 of them for paths that the task asked for before" in found.title
    alone = findings(io_run(tmp_path / "one", [one], paths))["metadata-storm"]
    assert found.gain_s == pytest.approx(alone.gain_s, rel=0.03)
    each_once = {n: f"/scratch/{n}" for n in range(1, 301)}
    once = [Made("stat", 30, file=1 + at) for at in range(300)]
    assert "metadata-storm" not in findings(io_run(tmp_path / "once", [once], each_once))


def test_files_that_are_moved_to_their_places_again_and_again(tmp_path: Path) -> None:
    def step(*sync: Made) -> list[Made]:
        write = Made("pwrite", 20, 100, 0)
        return [Made("open", 900), write, *sync, Made("close", 10), Made("rename", 900)]

    found = findings(io_run(tmp_path / "moved", [step() * 50]))["metadata-storm"]
    assert "made and moved again" in found.title
    assert "before it is moved to its place" in found.advice
    assert set(found.where.calls) == {"open", "rename"}
    # A file that is synced before it is moved is whole for its readers: as a checkpoint should be.
    whole = step(Made("fsync", 5000))
    safe = findings(io_run(tmp_path / "safe", [whole * 10]))
    assert "sync-per-write" not in safe
    assert not [each for each in safe.values() if "moved" in each.title]
    # A few bytes that replace the file each time are a habit, whatever another file gets.
    log = [Made("pwrite", 1, 30, 30 * at, 2) for at in range(4_000)]
    often = findings(io_run(tmp_path / "often", [log + whole * 50], {1: "/scratch/a", 2: "/scratch/log"}))
    assert often["sync-per-write"].evidence["syncs"] == 50
    # The sync of a file that is moved is needed; those of another file of the task are not.
    synced = [Made("pwrite", 1, 30, 0, 2), Made("fsync", 1_000, file=2)] * 100
    for name, calls in (("after", [*synced, *whole]), ("before", [*whole * 3, *synced])):
        found = findings(io_run(tmp_path / name, [calls], {1: "/scratch/a", 2: "/scratch/log"}))
        assert found["sync-per-write"].evidence["syncs"] == 100
        assert found["sync-per-write"].share_s == pytest.approx(99 * 1e-3, rel=0.05)


def test_a_file_that_is_made_and_removed_again_should_be_kept(tmp_path: Path) -> None:
    """As a journal of SQLite: asking once does not help, as the file is another one each time."""
    found = findings(io_run(tmp_path / "run", [JOURNAL * 50], TWO))["metadata-storm"]
    assert "made and removed again" in found.title
    assert "keep the file" in found.advice
    assert "journal_mode" in found.advice
    assert "ask once" not in found.advice
    assert found.severity == "critical"
    assert [check.name for check in found.checks] == ["made-and-removed"]
    low, high = found.gain_s
    assert low < 49 * 3025e-6 < high


def test_files_that_are_removed_once_are_no_storm(tmp_path: Path) -> None:
    files = {number: f"/srv/part{number}" for number in range(1, 51)}
    calls = [
        Made(name, us, file=n) for n in files for name, us in (("open", 20), ("close", 5), ("unlink", 3000))
    ]
    assert "metadata-storm" not in findings(io_run(tmp_path / "run", [calls], files))


def test_a_single_task_gains_no_more_than_its_calls_take(tmp_path: Path) -> None:
    found = findings(io_run(tmp_path / "synced", [SYNCED]))["sync-per-write"]
    assert found.gain_s[1] <= 60 * 5e-3 * (1 + 1e-9)
    calls = [Made("pwrite", 5, 128, 128 * number, gap_us=15) for number in range(2000)]
    found = findings(io_run(tmp_path / "small", [calls]))["small-requests"]
    assert found.gain_s[1] <= 2000 * 5e-6 * (1 + 1e-9)


def test_info_says_that_means_are_of_whole_calls(tmp_path: Path) -> None:
    inner = [Made("pwrite", 900, 64 * KIB)]
    nested = io_run(tmp_path / "a", [[Made("MPI_File_write_at", 1000, 64 * KIB, 0, inside=inner)] * 4])
    plain = io_run(tmp_path / "b", [inner * 4])
    told = "Exclusive time: without recorded inner calls; mean and longest: of whole calls"
    assert told in str(answer_info(nested))
    assert told not in str(answer_info(plain))


PROGRAM = """
#include <fcntl.h>
#include <unistd.h>
static __attribute__((noinline)) void dump(int file) { if (write(file, "x", 1) != 1) _exit(1); }
int main(int argc, char **words)
{
    int file = open(words[1], O_CREAT | O_WRONLY, 0600);
    for (int i = 0; i < 50; i++) dump(file);
    if (write(file, "y", 1) != 1) return 1;
    return argc < 2;
}
"""


def recorded(folder: Path, name: str, *flags: str) -> en.Run:
    """Build a program, run it recorded, and open the run."""
    source = folder / "dump.c"
    source.write_text(PROGRAM)
    program = folder / name
    subprocess.run(["gcc", "-O1", *flags, str(source), "-o", str(program)], check=True)
    record = folder / f"{name}.run"
    subprocess.run(["ensio", "run", "-o", str(record), "--", str(program), str(folder / "out")], check=True)
    return en.open(record)


def places(run: en.Run) -> dict[str, float]:
    (found,) = with_sites(run, [_writes()])
    return dict(found.where.sites)


def _writes() -> Finding:
    return Finding("not-io", 0.9, Where(op="write", tasks=1), {}, (), "look", None, "little")


def test_places_are_lines_functions_or_a_module_and_never_addresses(tmp_path: Path) -> None:
    with_lines = places(recorded(tmp_path, "lines", "-g"))
    # Shares are of the time: one of the 51 calls has another place, which may be named or not.
    functions = {re.sub(r":\d+$", "", label) for label in with_lines}
    assert functions - {"main, dump.c"} == {"dump, dump.c"}
    assert "dump (symbols)" in places(recorded(tmp_path, "symbols"))
    stripped = recorded(tmp_path, "stripped", "-s")
    assert places(stripped) == {"stripped (no symbol here)": 1.0}
    named = with_sites(stripped, [_writes()])
    assert symbol_hint(stripped, named) == (
        "stripped lacks symbols: build with -g, and do not strip, to see functions and lines"
    )


def test_programs_of_one_name_are_named_once(tmp_path: Path) -> None:
    source = tmp_path / "dump.c"
    source.write_text(PROGRAM)
    programs = [tmp_path / folder / "tool" for folder in ("one", "two")]
    for program in programs:
        program.parent.mkdir()
        subprocess.run(["gcc", "-O1", "-s", str(source), "-o", str(program)], check=True)
    line = "; ".join(f"{program} {tmp_path}/out" for program in programs)
    record = tmp_path / "run"
    subprocess.run(["ensio", "run", "-o", str(record), "--", "sh", "-c", line], check=True)
    run = en.open(record)
    modules = {frame.module for site in run.info.sites[1:] for frame in site.frames}
    assert {str(program) for program in programs} <= modules
    finding = replace(_writes(), where=Where(op="write", tasks=2))
    assert symbol_hint(run, with_sites(run, [finding])).startswith("tool lacks symbols: build with -g")


def test_a_pipeline_names_its_programs(tmp_path: Path) -> None:
    record = tmp_path / "run"
    command = f"head -c 100000 /dev/zero > {tmp_path}/a; cat {tmp_path}/a | wc -c > {tmp_path}/b"
    subprocess.run(["ensio", "run", "-o", str(record), "--", "sh", "-c", command], check=True)
    run = en.open(record)
    told = collect_information(run)
    names = [Path(entry["program"]).name for entry in told["programs"]]
    assert {"cat", "wc"} <= set(names)
    text = " ".join(str(answer_info(run)).split())
    assert re.search(r"programs .*cat \(rank \d\)", text)
    assert "cat" in repr(run)
    assert "wc" in repr(run)
