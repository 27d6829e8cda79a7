"""Files that a program opens by a library in each step, whatever the library does in these opens."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_io import KIB, MIB, Made, io_run

import ensembles as en
from ensembles.answers.info import answer_info
from ensembles.diagnosis.finding import Finding
from ensembles.workloads.recorded.accesses import ACCESS_WRITE

NETCDF = [
    Made(
        "nc_open",
        8000,
        inside=[
            *[Made("fopen", 3), Made("fread", 2000, 3 * MIB), Made("fclose", 2)],
            Made("H5Fopen", 900, inside=[Made("open", 5), Made("pread", 2, 512, 0)]),
        ],
    ),
    Made("nc_put_vara", 300, 128 * KIB, inside=[Made("pwrite", 100, 128 * KIB, 4096)]),
    Made("nc_close", 900, inside=[Made("pwrite", 600, KIB, 0), Made("close", 3)]),
]
"""As of netCDF, which reads the whole file in each open."""


def findings(run: en.Run) -> dict[str, Finding]:
    return {each.id: each for each in en.diagnose(run).findings}


def steps(opening: str, closing: str, write: str) -> list[Made]:
    """One step of a program that opens its file for one write."""
    return [Made(opening, 2000), Made(write, 50, 64 * KIB, 0), Made(closing, 500)]


def test_all_that_a_library_does_in_an_open_is_saved_with_it(tmp_path: Path) -> None:
    run = io_run(tmp_path / "run", [NETCDF * 50])
    found = findings(run)["metadata-storm"]
    assert found.severity == "critical"
    assert found.title == (
        "50 opens of 1 file by nc_open, 49 of them of a file that the task had open before, take 8.00 ms "
        "each with all calls inside, in which 150 MiB are read"
    )
    assert found.where.calls == ("nc_open",)
    assert "nc_sync" in found.advice
    low, high = found.gain_s
    # The close of 900 us writes for 600 us, which stays.
    assert low == pytest.approx(0.7 * 49 * 8e-3, rel=0.05)
    assert low < 49 * 8.3e-3 < high
    text = " ".join(str(answer_info(run)).split())
    assert "150 MiB are read inside calls that ask for no bytes: 150 MiB in nc_open" in text


@pytest.mark.parametrize(
    ("opening", "closing", "write"),
    [
        ("H5Fopen", "H5Fclose", "H5Dwrite"),
        ("MPI_File_open", "MPI_File_close", "MPI_File_write_at"),
        ("fopen", "fclose", "fwrite"),
    ],
)
def test_a_file_opened_in_each_step_is_found_in_each_library(
    tmp_path: Path, opening: str, closing: str, write: str
) -> None:
    found = findings(io_run(tmp_path / "run", [steps(opening, closing, write) * 20]))["metadata-storm"]
    assert found.where.calls == (opening,)
    assert found.gain_s[0] < 19 * 2.5e-3 < found.gain_s[1]


def test_objects_opened_with_the_file_are_not_opened_again_either(tmp_path: Path) -> None:
    opens = [Made("H5Fopen", 1000), Made("H5Oopen", 1000), Made("H5Dwrite", 50, KIB), Made("H5Fclose", 10)]
    found = findings(io_run(tmp_path / "run", [opens * 20]))["metadata-storm"]
    assert found.gain_s[0] == pytest.approx(0.7 * 19e-3, rel=0.05)
    assert found.gain_s[1] > 2 * 19e-3


def test_a_file_that_is_made_anew_has_to_be_opened(tmp_path: Path) -> None:
    removed = [*steps("MPI_File_open", "MPI_File_close", "MPI_File_write_at"), Made("unlink", 10)]
    assert "MPI_File_open" not in str(findings(io_run(tmp_path / "a", [removed * 20])))
    once = {n: f"/srv/{n}" for n in range(1, 21)}
    stream = "fopen", "fclose", "fwrite"
    each = [made._replace(file=number) for number in once for made in steps(*stream)]
    assert "metadata-storm" not in findings(io_run(tmp_path / "b", [each], once))
    twice = steps(*stream) * 2
    assert "metadata-storm" not in findings(io_run(tmp_path / "c", [twice]))


def removing(times_us: list[float]) -> list[list[Made]]:
    """Four tasks that meet in each step, before which task 0 removes the file."""
    tasks = []
    for rank in range(4):
        calls: list[Made] = []
        for us in times_us:
            looks = [Made("stat", 6, file=2)] * 10
            removal = [Made("unlink", us), Made("open", 10)] if rank == 0 else []
            waits = Made("MPI_Barrier", 50 if rank == 0 else us + 62)
            calls += [*looks, *removal, Made("pwrite", 100, MIB, 0), waits]
        tasks.append(calls)
    return tasks


def test_long_removals_are_in_the_bound_however_few_they_are(tmp_path: Path) -> None:
    """Most calls on paths are short, and yet all tasks wait for two long ones."""
    run = io_run(tmp_path / "a", removing([6, 20_000, 6, 20_000, 6, 6]), {1: "/srv/a", 2: "/srv/b"})
    found = findings(run)["metadata-storm"]
    assert found.gain_s[1] > 0.6 * 40e-3
    assert "which takes 33." in found.title  # 5 of 6 times


def test_one_long_removal_has_its_entry_of_the_account(tmp_path: Path) -> None:
    run = io_run(tmp_path / "a", [[Made("pwrite", 100, MIB, 0)] * 50 + [Made("unlink", 40_000)]])
    found = en.diagnose(run)
    assert {"metadata-storm", "fewer-calls"}.isdisjoint(each.id for each in found.findings)
    assert found.account is not None
    (entry,) = (each for each in found.account.entries if each.id == "calls")
    assert (entry.call, entry.time_s) == ("unlink", pytest.approx(40e-3, rel=0.01))


def test_opens_of_as_many_files_are_a_finding_that_may_gain_nothing(tmp_path: Path) -> None:
    names = {number: f"/srv/{number}" for number in range(1, 31)}
    each = [Made(name, us, file=number) for number in names for name, us in (("open", 2000), ("close", 9))]
    found = findings(io_run(tmp_path / "c", [each], names))["fewer-calls"]
    assert found.title.startswith("30 calls of open take 2.00 ms each, on 30 paths")
    assert found.gain_s is not None
    assert found.gain_s[0] == 0
    assert found.share_s is not None
    assert 0.9 * 60e-3 < found.share_s < 60e-3


@pytest.mark.parametrize(
    ("open_", "size", "grows", "is_anew"),
    [
        ("open", 4 * MIB, False, True),
        ("fopen", 4 * MIB, False, True),
        ("open", 64 * KIB, False, False),
        ("open", 4 * MIB, True, False),
    ],
)
def test_a_large_file_that_each_open_empties_is_told_as_such(
    tmp_path: Path, open_: str, size: int, grows: bool, is_anew: bool
) -> None:
    write = "fwrite" if open_ == "fopen" else "pwrite"
    calls = [
        made
        for step in range(40)
        for made in (
            Made("open", 9_000) if open_ == "open" else Made("fopen", 9_000, inside=[Made("open", 8_900)]),
            Made(write, 900, size, step * size * grows),
            Made("close" if open_ == "open" else "fclose", 5),
        )
    ]
    found = findings(io_run(tmp_path / "a", [calls]))["metadata-storm"]
    assert ("write only the bytes that change" in found.advice) == is_anew
    assert ("160 MiB are written to 1 file of 4.00 MiB" in found.title) == is_anew


LOCK = {1: "/srv/results.lock", 2: "/srv/results"}


def polls(error: int, name: str, times: int = 100) -> list[Made]:
    return [Made(name, 2, file=1, error=error, gap_us=1000)] * times


def test_calls_that_fail_until_they_succeed_are_polling(tmp_path):
    """A path that comes into being, and a lock file; not one that never comes, or asked for between work."""
    begin, found = Made("pwrite", 500, MIB, file=2), {}
    works = [*[Made("pread", 1, 10, file=2)] * 2, *polls(2, "stat", 1)] * 100
    for name, calls in {
        "comes": [*polls(2, "stat"), Made("stat", 2)],
        "never": polls(2, "stat"),
        "lock": [*polls(17, "open"), Made("open", 2), Made("close", 1), Made("unlink", 5)] * 3,
        "removed if there": [*polls(2, "unlink"), Made("open", 2), Made("close", 1), Made("unlink", 5)],
        "exists": [Made("open", 2), *polls(17, "open")],
        "works": [*polls(2, "stat", 1), *works, Made("stat", 2)],
    }.items():
        run = io_run(tmp_path / name, [[begin, *calls]], LOCK)
        found[name] = findings(run).get("polling")
    assert [name for name, each in found.items() if each is not None] == ["comes", "lock"]
    assert "inotify" in found["comes"].advice
    assert found["comes"].evidence["failed"] == 100
    assert found["comes"].gain_s[1] == pytest.approx(99 * 1.002e-3, rel=0.2)
    assert "is a lock" in found["lock"].advice
    assert found["lock"].where.files == (LOCK[1],)


@pytest.mark.parametrize(
    ("call", "files", "advice"),
    [
        ("msync", {1: "/srv/state"}, "write a mapping back once a step"),
        ("fsync", {1: "/srv/state"}, "sync a file once a step"),
        ("fsync", {1: "/srv", 2: "/srv/state"}, "sync a folder once"),
    ],
    ids=["mapping", "file", "folder"],
)
def test_advice_on_syncs_depends_on_what_is_synced(call, files, advice, tmp_path):
    run = io_run(tmp_path / "a", [[Made(call, 3000)] * 40], files)
    found = findings(run)["fewer-calls"]
    assert found.advice.startswith(advice)


def test_flushes_of_each_record_defeat_any_buffer(tmp_path):
    calls = [Made("fwrite", 0.5, 40), Made("fflush", 3)] * 4000
    found = findings(io_run(tmp_path / "a", [calls]))
    assert "flush a stream once a step" in found["fewer-calls"].advice
    assert "stdio-buffer" not in found


def test_a_folder_that_is_scanned_again_is_not_kept_open(tmp_path):
    """Each scan is followed by a small write, as of a log."""
    files = {1: "/srv/run", 2: "/srv/log"} | {3 + each: f"/srv/run/{each}" for each in range(50)}
    scan = [Made("readdir", 1)] * 50 + [Made("stat", 5, file=3 + each) for each in range(50)]
    log = [Made("open", 3, file=2), Made("pwrite", 20, 13, file=2), Made("close", 1, file=2)]
    found = findings(io_run(tmp_path / "a", [[*scan, *log] * 60], files))
    assert found["metadata-storm"].advice.startswith("scan the folder once")


def rewrites(offset: int) -> list[Made]:
    """Opens of one file for a write at its start, which empties it, or after what it holds."""
    opened = Made("open", 2000, carried=ACCESS_WRITE)
    return [
        each
        for step in range(100)
        for each in (opened, Made("pwrite", 20, KIB, offset * step * KIB), Made("close", 20))
    ]


OF_OTHERS = [Made("pread", 2000, MIB, piece * MIB) for piece in range(40)]


@pytest.mark.parametrize(
    ("tasks", "cause", "trial"),
    [
        ([rewrites(1)], "metadata-storm", "keep-open"),
        ([rewrites(0)], "metadata-storm", ""),
        ([OF_OTHERS * 4], "redundant-reads", "once"),
        ([OF_OTHERS] * 4, "redundant-reads", ""),
        ([[Made("mmap", 2000)] * 100 + rewrites(1)[:6]], "fewer-calls", ""),
        ([[Made("stat", 2, file=2)] * 2 + [Made("mmap", 2000)] * 100], "fewer-calls", ""),
        ([[Made("stat", 2000)] * 100], "metadata-storm", "once"),
    ],
    ids=["appended", "emptied", "read again", "of other tasks", "not replayed", "of other calls", "lookups"],
)
def test_a_trial_is_named_where_it_changes_the_calls_of_the_finding(
    tasks: list[list[Made]], cause: str, trial: str, tmp_path: Path
) -> None:
    run = io_run(tmp_path / "run", tasks, {1: "/scratch/data", 2: "/scratch/other"})
    found = findings(run)[cause]
    assert found.trial == trial
    assert found.to_json().get("try", "") == trial


@pytest.mark.parametrize("name", ["stat", "open"])
def test_few_calls_on_paths_are_not_a_storm(name: str, tmp_path: Path) -> None:
    """Whatever they take: two lookups of a path are not asked again and again."""
    calls = [
        Made(name, 20_000),
        Made(name, 20_000),
        *[Made("pwrite", 50, MIB, at * MIB, 2) for at in range(9)],
    ]
    assert "metadata-storm" not in findings(io_run(tmp_path / "run", [calls], LOCK))


def test_files_made_and_removed_again_are_counted_without_others(tmp_path: Path) -> None:
    """A test of file systems makes and removes many files once, and one large one several times."""
    many = [Made(name, 3, file=2 + at) for name in ("open", "unlink") for at in range(300)]
    large = [Made("open", 10), Made("pwrite", 50, MIB, 0), Made("close", 1), Made("unlink", 40_000)] * 10
    paths = {1: "/srv/large", **{2 + at: f"/srv/{at}" for at in range(300)}}
    title = findings(io_run(tmp_path / "run", [many + large], paths))["metadata-storm"].title
    assert title.startswith("files are made and removed again and again, which takes 36")
    assert "10 times, a task removes a path that it makes again (1 path)" in title


def test_what_the_first_read_of_each_file_waits_for_is_a_cost_of_files(tmp_path: Path) -> None:
    """As of tar: the first of a few records of a file waits for the disk, and no buffer helps."""
    files = {number: f"/srv/{number}" for number in range(1, 201)}
    reads = [
        Made("pread", 300 if at == 0 else 4, 10 * KIB, 10 * KIB * at, file=number)
        for number in files
        for at in range(3)
    ]
    found = findings(io_run(tmp_path / "a", [reads], files))
    assert "small-requests" not in found
    assert "200 calls of pread, the first on a file, take" in found["fewer-calls"].title
    assert found["fewer-calls"].gain_s == pytest.approx((0, 200 * 300e-6), rel=0.1)
    assert "fewer, larger files" in found["fewer-calls"].advice
    of_one_file = [made._replace(us=60, file=1, offset=10 * KIB * at) for at, made in enumerate(reads)]
    assert "small-requests" in findings(io_run(tmp_path / "b", [of_one_file], files))


def test_calls_that_are_not_the_first_on_a_file_do_not_make_those_many(tmp_path: Path) -> None:
    """As of an encoder: one slow record begins each of two files, and large pieces follow."""
    begins = [Made("pread", 12_000, 4 * KIB, 0, file=file) for file in (1, 2)]
    pieces = [Made("pread", 50, 64 * KIB, 64 * KIB * (1 + at), file=1 + at % 2) for at in range(400)]
    calls = [begins[0], *pieces[0::2], begins[1], *pieces[1::2]]
    assert "fewer-calls" not in findings(io_run(tmp_path / "run", [calls], {1: "/srv/1", 2: "/srv/2"}))
