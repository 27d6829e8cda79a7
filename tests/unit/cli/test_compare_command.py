"""ensio compare and ensembles.compare on runs that are written to disk."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from commands_here import executed
from made_spools import made_events, spool
from spool_writer import POSIX_CALLS, SpoolContent, write_spool
from synthetic_runs import synthetic_run

import ensembles as en
from ensembles.cli.main import main
from ensembles.model.c_layout import CONSTANTS, EVENT
from ensembles.model.units import seconds_text

pytestmark = pytest.mark.slow

NUMBER = {call.name: number for number, call in POSIX_CALLS.items()}
TASKS = 4


def write_run(
    folder: Path, seed: int, factor: float = 1.0, phases: int = 40, calls: int = 6, reads: bool = True
) -> Path:
    """A run of phases after which tasks wait: each task writes a few times, and reads once; writes are
    slower by `factor`."""
    rng = np.random.default_rng(seed)
    folder.mkdir()
    events = np.zeros((TASKS, phases, calls + 1), EVENT.dtype)
    events["call"] = NUMBER["pwrite"]
    events["call"][:, :, -1] = NUMBER["pread"]
    duration_s = (
        1e-3
        * factor
        * rng.lognormal(0, 0.2, events.shape)
        * np.exp(0.05 * rng.standard_normal((1, phases, 1)))
    )
    duration_s[:, :, -1] = 5e-5 * rng.lognormal(0, 0.1, (TASKS, phases))
    if not reads:
        events, duration_s = events[:, :, :-1], duration_s[:, :, :-1]
    duration_ns = np.rint(duration_s * 1e9).astype(np.int64)
    before = np.cumsum(duration_ns, axis=2) - duration_ns
    began_ns = np.cumsum(np.append(0, duration_ns.sum(axis=2).max(axis=0)[:-1] + 50_000_000))
    events["start"] = 10**12 + began_ns[None, :, None] + before
    events["duration"] = duration_ns
    events["requested"] = events["moved"] = 1 << 20
    events["offset"], events["file"] = -1, 1
    last = int(events["start"].max()) + 10**9
    for rank in range(TASKS):
        head = {
            "clock": CONSTANTS["ENSIO_CLOCK_MONOTONIC"],
            "pid": 100 + rank,
            "rank": rank,
            "tasks": TASKS,
            "first_ticks": 10**12,
            "first_monotonic_ns": 10**12,
            "first_realtime_ns": 1_700_000_000_000_000_000,
            "last_ticks": last,
            "last_monotonic_ns": last,
            "last_realtime_ns": 1_700_000_000_000_000_000 + last - 10**12,
        }
        properties = {"host": "node0001", "program": "/opt/bin/app", "mode": "trace"}
        content = SpoolContent(
            [events[rank].reshape(-1)], {1: "/scratch/data"}, POSIX_CALLS, properties, head
        )
        write_spool(folder / f"{rank}.spool", content)
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    made = {f"a{i}": write_run(folder / f"a{i}", i) for i in range(5)}
    made |= {f"b{i}": write_run(folder / f"b{i}", 10 + i, factor=1.25) for i in range(5)}
    made["c0"] = write_run(folder / "c0", 20, factor=3.0)
    made["f0"] = write_run(folder / "f0", 21, calls=12)
    return made


def ensio(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return executed("compare", *arguments)


def result(*arguments: str | Path) -> dict:
    done = ensio(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_two_groups_of_runs_are_told_apart_in_what_changed_alone(runs):
    a, b = ([runs[f"{side}{i}"] for i in range(5)] for side in "ab")
    found = result(*a, "--with", *b)
    assert {"op", "verdict", "shift", "tests"} <= set(found)
    assert (found["op"], found["verdict"]) == ("write", "different")
    assert found["shift"]["low"] <= 1.25 <= found["shift"]["high"]
    assert [move["what"] for move in found["moved"]] == ["all"]
    assert (found["tests"]["units"], found["tests"]["sizes"]) == ("runs", [5, 5])
    by_op = {one["op"]: one for one in found["ops"]}
    assert set(by_op) == {"write", "read"}
    assert by_op["read"]["verdict"] == "same"
    assert [group["calls"] for group in found["groups"]] == [5 * TASKS * 240] * 2


def test_two_runs_are_compared_by_their_phases(runs):
    found = result(runs["a0"], runs["c0"], "--op", "write")
    assert found["verdict"] == "different"
    assert found["tests"]["units"] == "blocks of phases"
    assert len(found["ops"]) == 1


def test_exit_code_tells_a_difference_only_if_asked(runs):
    different, alike = [runs["a0"], runs["c0"]], [runs["a0"], runs["a1"]]
    assert ensio(*different).returncode == 0
    assert ensio(*different, "--fail-on", "difference").returncode == 1
    done = ensio(*alike, "--fail-on", "difference", "--op", "read")
    assert done.returncode == 0, done.stdout


def test_an_improvement_never_fails_and_a_slowdown_fails_from_the_given_size_on(runs):
    a, b = ([runs[f"{side}{i}"] for i in range(4)] for side in "ab")
    assert ensio(*a, "--with", *b, "--fail-on", "slower").returncode == 1
    assert ensio(*a, "--with", *b, "--fail-on", "slower=10%").returncode == 1
    assert ensio(*a, "--with", *b, "--fail-on", "slower=40%").returncode == 0
    assert ensio(*b, "--with", *a, "--fail-on", "slower").returncode == 0
    assert ensio(*b, "--with", *a, "--fail-on", "difference").returncode == 1


def test_one_slow_run_against_four_baselines_fails(runs):
    a = [runs[f"a{i}"] for i in range(4)]
    found = result(*a, "--with", runs["c0"])
    assert (found["op"], found["verdict"], found["direction"]) == ("write", "different", "slower")
    failed = ensio(*a, "--with", runs["c0"], "--fail-on", "slower=100%")
    assert failed.returncode == 1
    assert re.search(
        r"ensio: failed: I/O of critical path .*, × 2\.9\d \(p \S+\); span .*; each task: ", failed.stderr
    )
    times_s = [[total_io_s(path) for path in group] for group in (a, [runs["c0"]])]
    more_s = (np.mean(times_s[1]) - np.mean(times_s[0])) / TASKS
    assert f"each task: posix write +{seconds_text(more_s)} (× 2.9" in failed.stderr
    said = json.loads(ensio(*a, "--with", runs["c0"], "--fail-on", "slower=100%", "--json").stdout)["gate"]
    assert (said["whole_runs_fail"], said["undecided"]) == (True, [])
    assert [f"ensio: failed: {reason}" for reason in said["failed"]] == failed.stderr.splitlines()
    assert ensio(*a, "--with", runs["a4"], "--fail-on", "slower").returncode == 0


def test_every_kind_with_another_number_of_calls_is_in_the_headline(tmp_path):
    """Of three groups too: larger writes, and syncs."""
    for name, sizes in {"small": (40, 0), "big": (12, 0), "sync": (12, 12)}.items():
        for number in range(2):
            events = made_events(sum(sizes), seed=number)
            events["call"] = NUMBER["write"]
            events["call"][sizes[0] :] = NUMBER["fsync"]
            events["requested"][sizes[0] :] = events["moved"][sizes[0] :] = 0
            spool(tmp_path / f"{name}{number}" / "0.spool", [events], files={1: "/data/a"}, rank=0)
    groups = [[tmp_path / f"{name}{number}" for number in range(2)] for name in ("small", "big", "sync")]
    text = ensio(*groups[0], "--with", *groups[1], "--with", *groups[2]).stdout
    head = " ".join(text.split("\n\n")[0].split())
    big, sync = head.split("In I/O, whole runs of ")[1:]
    assert re.search(r"posix write -\S+ µs \(× 0\.\d+, 12 calls of \S+ MiB instead of 40 of \S+ MiB\)", big)
    assert "posix sync" not in big
    assert re.search(r"posix write -\S+ µs \(× 0\.\d+, 12 calls of \S+ MiB instead of 40 of \S+ MiB\)", sync)
    assert "µs (12 calls instead of 0)" in sync[sync.index("posix sync +") :]
    assert "a run, mean" in text
    assert "mean time a run" in text


def test_larger_calls_that_take_longer_are_not_slower(tmp_path):
    """A repair: 8 large writes instead of 512 small ones. Each takes longer, all together less."""
    for name, (calls, size, factor) in {"small": (512, 4096, 1.0), "large": (8, 1 << 18, 20.0)}.items():
        for number in range(3):
            events = made_events(calls, seed=number)
            events["call"] = NUMBER["write"]
            events["requested"] = events["moved"] = size
            events["start"] = 10**9 + 10**8 * np.arange(calls)
            spread = np.random.default_rng(number).uniform(0.9, 1.1, calls)
            events["duration"] = np.rint(1e5 * factor * spread)
            spool(tmp_path / f"{name}{number}" / "0.spool", [events], files={1: "/data/a"}, rank=0)
    groups = [[tmp_path / f"{name}{number}" for number in range(3)] for name in ("small", "large")]
    gate = "--fail-on", "slower=10%"
    done = ensio(*groups[0], "--with", *groups[1], *gate)
    assert done.returncode == 0, done.stderr
    assert "in both groups: a run is the same as itself" in ensio(groups[0][0], groups[0][0]).stderr


def write_few_calls(path, seed, factor):
    """Five writes: 25 of a group are too few for a verdict on their durations."""
    events = made_events(5, seed=seed)
    events["call"] = NUMBER["write"]
    # The calls stay in the order of completion, and times of runs of both groups do not overlap.
    events["start"] = 10**9 + 10**8 * np.arange(5)
    events["duration"] = np.rint(1e6 * factor * np.random.default_rng(seed).uniform(0.8, 1.2, 5))
    spool(path / "0.spool", [events], files={1: "/data/a"}, rank=0)
    return path


def test_what_tests_on_whole_runs_find_is_the_headline_and_fails(tmp_path):
    fast = [write_few_calls(tmp_path / f"fast{i}", i, 1.0) for i in range(5)]
    slow = [write_few_calls(tmp_path / f"slow{i}", 10 + i, 2.0) for i in range(5)]
    done = ensio(*fast, "--with", *slow, "--fail-on", "slower=10%")
    found = result(*fast, "--with", *slow)
    # Durations of 25 calls decide nothing, and their time a run does.
    assert (found["verdict"], found["direction"]) == ("different", "slower")
    test = next(one for one in found["run_tests"] if one["what"] == "io_time_s" and one["scope"] == "run")
    # 5 + 5 runs that do not overlap: two of 252 orders; of one task, time in I/O is tested first.
    assert test["p"] == test["holm_p"] == pytest.approx(2 / 252)
    before, after = (np.mean([total_io_s(path) for path in group]) for group in (fast, slow))
    words = " ".join(done.stdout.split())
    assert words.startswith("fails --fail-on slower=10% In I/O, whole runs are slower: time in I/O ")
    (change,) = (one for one in found["run_times"] if one["what"] == "io_time_s")
    assert change["ratio"] == pytest.approx(after / before)
    assert f", × {after / before:.3g} (p {change['adjusted_p']:.2g})" in words
    assert done.returncode == 1
    assert ensio(*slow, "--with", *fast, "--fail-on", "slower").returncode == 0
    assert ensio(*fast, "--with", *slow, "--fail-on", "slower=200%").returncode == 0
    # A filter asks about these calls, not about the whole run.
    filtered = ensio(*fast, "--with", *slow, "--op", "write", "--fail-on", "slower=10%")
    assert filtered.returncode == 1
    assert "failed: posix write +" in filtered.stderr
    assert "failed: time in I/O" not in filtered.stderr


def write_by(path: Path, seed: int, writers: int, factor: float = 1.0) -> Path:
    """A run of 8 phases in each of which 16 writes of about 1 ms are made by the first of four tasks."""
    rng = np.random.default_rng(seed)
    for rank in range(TASKS):
        calls = 16 // writers if rank < writers else 0
        duration_ns = np.rint(1e6 * factor * rng.lognormal(0, 0.1, (8, calls))).astype(np.int64)
        events = np.zeros((8, calls), EVENT.dtype)
        events["call"] = NUMBER["pwrite"]
        phase_ns = 10**12 + 10**9 * np.arange(8)[:, None]
        events["start"] = phase_ns + np.cumsum(duration_ns, axis=1) - duration_ns
        events["duration"] = duration_ns
        events["requested"] = events["moved"] = 1 << 20
        events["offset"], events["file"] = -1, 1
        mine = [events.reshape(-1)] if calls else []
        spool(path / f"{rank}.spool", mine, files={1: "/data/a"}, rank=rank, tasks=TASKS)
    return path


def test_fewer_tasks_that_do_the_io_are_not_faster(tmp_path):
    """Calls are a quarter shorter: the sum falls, although the critical path is three times as long."""
    shared = [write_by(tmp_path / f"shared{i}", i, TASKS) for i in range(5)]
    alone = [write_by(tmp_path / f"alone{i}", 10 + i, 1, 0.75) for i in range(5)]
    found = result(*shared, "--with", *alone)
    totals = {total["what"]: total for total in found["run_totals"]}
    assert totals["io_tasks"]["typical"] == [4, 1]
    assert totals["io_time_s"]["ratios"][0] == pytest.approx(0.75, rel=0.05)
    # Of four tasks the slowest of each phase counts, which makes at least the mean of all.
    before, after = totals["critical_path_s"]["typical"]
    assert 8 * 4e-3 < before < 8 * 4.6e-3
    assert after == pytest.approx(8 * 16 * 0.75e-3, rel=0.05)
    assert after == pytest.approx(totals["io_time_s"]["typical"][1])
    done = ensio(*shared, "--with", *alone, "--fail-on", "slower=10%")
    words = " ".join(done.stdout.split())
    assert words.startswith("fails --fail-on slower=10% In I/O, whole runs are slower: I/O of critical path ")
    assert re.search(r"time in I/O, all tasks \S+ ms \S+ ms × 0\.7", words)
    assert done.returncode == 1
    # The other way round, calls are a third longer each, and neither the path nor the tasks are a slowdown.
    back = ensio(*alone, "--with", *shared, "--fail-on", "slower=50%")
    assert back.returncode == 0
    assert back.stdout.startswith(
        "passes --fail-on slower=50%\nIn I/O, whole runs are faster: I/O of critical path "
    )
    assert "failed" not in back.stderr
    single = ensio(shared[0], alone[0], "--fail-on", "slower=10%")
    assert single.stdout.splitlines()[1].startswith("In I/O, whole runs are slower: I/O of critical path ")
    assert single.returncode == 1


def total_io_s(path):
    return en.open(path).events.duration.sum() * 1e-9


def test_of_single_runs_the_report_says_what_the_command_says(tmp_path):
    """The median stays; the slowest tenth takes 20 times as long."""
    paths = []
    for number, factor in enumerate((1, 20)):
        events = made_events(100, seed=7)
        events["call"] = NUMBER["write"]
        events["start"] = 10**9 + 10**8 * np.arange(100)
        durations = np.random.default_rng(number).uniform(0.95e6, 1.05e6, 100)
        durations[np.random.default_rng(3).permutation(100)[:10]] *= factor
        events["duration"] = np.rint(durations)
        paths.append(tmp_path / f"run{number}")
        spool(paths[-1] / "0.spool", [events], files={1: "/data/a"}, rank=0)
    found = result(*paths)
    quantiles = {entry["level"]: entry["ratio"] for entry in found["quantiles"]}
    assert quantiles[0.95] == pytest.approx(20, rel=0.1)
    assert quantiles[0.5] == pytest.approx(1, rel=0.05)
    words = " ".join(ensio(*paths).stdout.split("\n\n")[0].split())
    ratio = total_io_s(paths[1]) / total_io_s(paths[0])
    assert re.fullmatch(
        rf"In I/O, whole runs are not certainly slower: time in I/O \S+ ms → \S+ ms, × {ratio:.3g}: not "
        rf"certain \(p \S+ if runs vary by 100 %\); span 9\.90 s → 9\.90 s, × 1; posix write \+\S+ ms "
        rf"\(× {ratio:.3g}\), outside of these calls -\S+ ms \(× 0\.98\d?\)\.",
        words,
    )
    assert main(["report", *map(str, paths), "-o", str(tmp_path / "both.html")]) == 0
    page = (tmp_path / "both.html").read_text()
    assert re.search(rf">×\s{ratio:.3g}<", page[: page.index('<section id="verdict"')])
    verdicts = " ".join(page[page.index('<section id="verdict"') :].split())
    assert words in verdicts


def test_another_number_of_calls_is_the_headline_without_any_test(runs):
    """As of fsyncs after every write: one run per group is enough to see that they differ."""
    done = ensio(runs["a0"], runs["f0"])
    headlines, _, _ = done.stdout.partition("\n\n")
    assert ", 1,920 calls instead of 960)" in " ".join(headlines.split())
    assert headlines.startswith("In I/O, whole runs are slower: I/O of critical path ")
    assert headlines.count("25 %") == " ".join(headlines.split()).count("if runs vary by 25 %") == 1
    found = result(runs["a0"], runs["f0"])
    # Twice the time of one kind of calls is not certain of one run each, that of the whole run is.
    assert (found["op"], found["verdict"], found["direction"]) == ("write", "different", None)
    assert "not certain" in found["reason"]
    totals = {total["what"]: total for total in found["totals"]}
    assert (totals["calls"]["typical"], totals["calls"]["ratios"]) == ([960, 1920], [2.0])
    assert totals["bytes"]["typical"] == [960 << 20, 1920 << 20]
    assert totals["mean_size_bytes"]["differs"] is False
    whole = {total["what"]: total for total in found["run_totals"]}
    assert whole["calls"]["typical"] == [960 + 160, 1920 + 160]
    assert whole["files"]["differs"] is False
    assert whole["phases"]["typical"] == [40, 40]
    run = en.open(runs["f0"])
    comparison = en.compare(en.open(runs["a0"]), run, op="write")
    assert (comparison.verdict, comparison.counts_differ) == ("different", True)
    assert {total.what: total for total in comparison.run_totals}["calls"].typical == [1120, 2080]
    same = result(runs["a0"], runs["a1"])
    assert not any(total["is_finding"] for one in same["ops"] for total in one["totals"])


def test_calls_of_another_size_are_told_by_their_size_and_have_no_p(tmp_path):
    """Sixteen times as many calls of a sixteenth of the bytes, which take as long each: 16 times the time."""
    for name, calls, size in (("large", 64, 1 << 18), ("small", 1024, 1 << 14)):
        events = made_events(2 * calls, seed=1)
        events["call"][:calls], events["call"][calls:] = NUMBER["write"], NUMBER["read"]
        events["requested"], events["moved"] = size, size
        spool(tmp_path / name / "0.spool", [events], files={1: "/data/a"}, rank=0)
    text = ensio(tmp_path / "large", tmp_path / "small").stdout
    words = " ".join(text.split("\n\n")[0].split())
    assert ", 1,024 calls of 16.0 KiB instead of 64 of 256 KiB)" in words[words.index("posix write +") :]
    (row,) = (line for line in text.splitlines() if line.startswith("posix write  "))
    found = result(tmp_path / "large", tmp_path / "small", "--op", "write")
    assert "different, slower" in row
    assert "the second run is faster" not in text
    # Text, JSON, Python and gate say the same: durations of other sizes are not compared, times a run are.
    assert (found["verdict"], found["direction"]) == ("different", "slower")
    assert (found["tests"], found["moved"]) == ({}, [])
    assert found["shift"]["median_ratio"] is None
    assert "durations of other sizes are not compared: choose one size (--size)" in found["reason"]
    assert "durations of other sizes are not compared" in " ".join(text.split())
    for filters in ((), ("--op", "write")):
        both = ensio(tmp_path / "large", tmp_path / "small", *filters, "--fail-on", "slower")
        assert (both.returncode, "failed:" in both.stderr) == (1, True)
        back = ensio(tmp_path / "small", tmp_path / "large", *filters, "--fail-on", "slower")
        assert (back.returncode, "failed:" in back.stderr) == (0, False)
    assert ensio(tmp_path / "large", tmp_path / "small", "--fail-on", "difference").returncode == 1
    per_mib = result(tmp_path / "large", tmp_path / "small", "--op", "write", "--per-byte")
    assert per_mib["shift"]["median_ratio"] > 1
    comparison = en.compare(en.open(tmp_path / "large"), en.open(tmp_path / "small"))
    assert (comparison.sizes_differ, comparison.direction) == (True, "slower")
    assert comparison.slowdown == comparison.times[0].ratio
    assert comparison.slowdown > 10


def test_as_many_calls_of_another_size_are_different_by_their_size(tmp_path):
    """Four times the bytes in twice the time: the run is longer, for a reason that is said."""
    for name, size, factor in (("small", 1 << 18, 1), ("large", 1 << 20, 2)):
        events = made_events(200, seed=2)
        events["call"], events["duration"] = NUMBER["write"], factor * events["duration"]
        events["requested"], events["moved"] = size, size
        spool(tmp_path / name / "0.spool", [events], files={1: "/data/a"}, rank=0)
    both = tmp_path / "small", tmp_path / "large"
    done = ensio(*both, "--fail-on", "slower=10%")
    assert done.returncode == 1
    assert re.search(
        r"failed: time in I/O .*, × 2 \(p 0.028 if runs vary by 25 %\); they move × 4 the bytes", done.stderr
    )
    assert ", 200 calls of 1.00 MiB instead of 200 of 256 KiB)" in " ".join(done.stdout.split())
    assert "; they move × 4 the bytes; span " in " ".join(done.stdout.split())
    assert result(*both)["direction"] is None
    # Of the same size they would be.
    assert result(*both, "--call", "write")["shift"]["median_ratio"] == pytest.approx(2, rel=0.05)


def test_calls_that_only_one_group_makes_are_a_finding(runs, tmp_path):
    without = write_run(tmp_path / "without", 30, reads=False)
    found = result(without, runs["a0"])
    assert (found["op"], found["verdict"], found["direction"]) == ("read", "different", "slower")
    assert "160 calls a run instead of 0" in found["reason"]
    assert [group["median_s"] is None for group in found["groups"]] == [True, False]
    assert result(runs["a0"], without)["direction"] == "faster"
    assert "160 calls a run instead of 0" in ensio(without, runs["a0"]).stdout


def test_a_run_is_the_same_as_itself(runs):
    found = result(runs["a0"], runs["a0"], "--op", "read")
    assert found["verdict"] == "same"
    assert [total["ratios"] for total in found["run_totals"] if total["what"] == "span_s"] == [[1.0]]
    again = result(runs["a0"], runs["a1"], "--with", runs["a0"], runs["a1"], "--op", "read")
    # Two runs of each show no tail, and no width, within the margin.
    assert (again["verdict"], again["shift"]["median_ratio"]) == ("inconclusive", 1.0)


def test_text_json_and_python_say_the_same(runs):
    a, b = ([runs[f"{side}{i}"] for i in range(4)] for side in "ab")
    text, found = ensio(*a, "--with", *b).stdout, result(*a, "--with", *b)
    comparison = en.compare(*([en.open(run) for run in side] for side in (a, b)))
    of_all = ("ops", "minor_kinds", "bytes_ratio")
    assert comparison.to_json() == {key: value for key, value in found.items() if key not in of_all}
    assert f"{found['op']}: {found['verdict'].upper()}, {found['direction']}" in text
    ratio = found["shift"]
    assert f"× {ratio['median_ratio']:.3g} ({ratio['low']:.3g} to {ratio['high']:.3g})" in text
    move = found["moved"][0]["effect"]
    assert f"Everything moved by × {move['value']:.3g} ({move['low']:.3g} to {move['high']:.3g})" in text


def test_text_says_verdict_what_moved_and_why(runs):
    done = ensio(runs["a0"], runs["c0"], "--margin", "20%")
    assert "posix write: DIFFERENT, slower" in done.stdout
    assert "Everything moved by × 3" in done.stdout or "Everything moved by × 2.9" in done.stdout
    assert "blocks of phases as units" in done.stdout
    assert "rank p: Wilcoxon-Mann-Whitney" in done.stdout
    assert done.stderr == ""


def test_three_runs_are_three_groups(runs):
    found = result(runs["a0"], runs["a1"], runs["c0"], "--op", "write")
    assert [group["runs"] for group in found["groups"]] == [1, 1, 1]
    assert {move["effect"]["group"] for move in found["moved"]} == {str(runs["c0"])}


def test_filters_choose_what_is_compared(runs):
    found = result(runs["a0"], runs["b0"], "--call", "pread", "--rank", "0-1", "--per-byte")
    assert found["op"] == "read"
    assert found["groups"][0]["calls"] == 2 * 40


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "a comparison needs two groups"),
        (("--op", "sync"), "matches --op sync: the run has read, write"),
        (("--margin", "ten"), "not a share between 0 and 1"),
        (("--level", "0"), "not a share between 0 and 1"),
        (("--fail-on", "faster"), "nothing to fail on"),
        (("--phase", "first"), "neither a number nor a range"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(runs, arguments, sentence):
    second = [] if not arguments else [runs["a1"]]
    done = ensio(runs["a0"], *second, *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


def test_compare_takes_runs_ensembles_and_lists_of_them(runs):
    a, b = ([en.open(runs[f"{side}{i}"]) for i in range(5)] for side in "ab")
    slow = en.open(runs["c0"])
    assert en.compare(a[0], slow).verdict == "different"
    whole = en.compare(a, b, op="write")
    assert (whole.verdict, whole.op, whole.tests["units"]) == ("different", "write", "runs")
    writes = [[run.select(op="write").ensemble() for run in side] for side in (a, b)]
    again = en.compare(*writes)
    assert [part.effects[0].value for part in again.parts] == [part.effects[0].value for part in whole.parts]
    single = en.compare(writes[0][0], slow.select(op="write").ensemble())
    assert (single.verdict, single.tests["units"]) == ("different", "blocks of phases")
    with pytest.raises(en.EnsioError, match="compared with ensembles"):
        en.compare(a[0], writes[0][0])
    with pytest.raises(en.EnsioError, match="cannot be compared"):
        en.compare(a[0], 3)
    with pytest.raises(en.EnsioError, match="without runs"):
        en.compare(a[0], [])


def test_runs_in_mode_profile_are_compared_by_their_summaries(tmp_path):
    """The runs are simulated: durations of real calls would depend on what else the machine does."""
    sides: dict[str, list[Path]] = {"32MiB": [], "512MiB": []}
    for number in range(4):
        for size, paths in sides.items():
            paths.append(tmp_path / f"{size}-{number}")
            options = ["--set", f"block_bytes={size}", "--seed", 4 * len(size) + number, "-o", paths[-1]]
            simulate = ["simulate", "ior", "--fs", "franklin", "--mode", "profile", "--tasks", 64, *options]
            executed(*simulate).check_returncode()
    both = (*sides["32MiB"], "--with", *sides["512MiB"])
    assert result(*both, "--op", "write")["reason"].startswith("320 calls of 512 MiB a run instead of 320")
    found = result(*both, "--call", "write")  # whatever their size
    assert (found["verdict"], found["tests"]["units"]) == ("different", "runs")
    assert [group["calls"] for group in found["groups"]] == [1280, 1280]
    assert found["shift"]["median_ratio"] > 5
    single = result(sides["32MiB"][0], sides["32MiB"][1], "--op", "write")
    assert single["verdict"] == "inconclusive"
    assert "phases are unknown" in single["reason"]
    assert any(str(sides["32MiB"][0]) in note and "summary" in note for note in single["notes"])
    refused = ensio(sides["32MiB"][0], sides["512MiB"][0], "--file", "*.dat")
    assert refused.returncode == 2
    assert "leave the filter out" in refused.stderr


def test_synthetic_runs_of_one_kind_are_not_different(tmp_path):
    for seed in range(8):
        synthetic_run(tmp_path / str(seed), 8, 42, seed=seed)
    sides = [[en.open(tmp_path / str(seed)) for seed in seeds] for seeds in (range(4), range(4, 8))]
    assert en.compare(*sides).verdict != "different"


def test_three_groups_of_five_small_runs_have_p_values(tmp_path: Path) -> None:
    groups = [
        [
            write_run(tmp_path / f"{name}{number}", 100 * g + number, factor, phases=4, calls=2)
            for number in range(5)
        ]
        for g, (name, factor) in enumerate((("fast", 1.0), ("slow", 1.6), ("alike", 1.0)))
    ]
    command = ["compare", *groups[0]]
    for group in groups[1:]:
        command += ["--with", *group]
    found = json.loads(executed(*command, "--json").stdout)
    tests = {(test["scope"], test["what"]): test for test in found["run_tests"]}
    assert {"io_time_s", "span_s"} <= {what for scope, what in tests if scope == "run"}
    assert [what for scope, what in tests if scope == "step"] == [f"phase {k}" for k in range(1, 5)]
    of_io = tests["run", "io_time_s"]
    assert (of_io["method"], [group["runs"] for group in of_io["groups"]]) == ("Kruskal-Wallis", [5, 5, 5])
    assert of_io["p"] < 0.01
    fast_slow, fast_alike, slow_alike = of_io["pairs"]
    assert fast_slow["holm_p"] < 0.05 < 0.2 < fast_alike["holm_p"]
    assert slow_alike["p"] < 0.05
    assert (fast_slow["cliffs_delta"], slow_alike["cliffs_delta"]) == (1.0, -1.0)
    io_s = [[en.open(str(path)).events.duration.sum() * 1e-9 for path in group] for group in groups]
    assert [group["median_s"] for group in of_io["groups"]] == pytest.approx(np.median(io_s, axis=1))
    in_steps_s = sum(test["groups"][1]["high_s"] for (scope, _), test in tests.items() if scope == "step")
    assert in_steps_s >= max(io_s[1]) * (1 - 1e-9)
    text = executed(*command).stdout
    assert max(len(line) for line in text.splitlines() if "/" not in line) <= 80
    assert text.startswith("In I/O, whole runs of slow0 and 4 more are slower: I/O of critical path ")
    table = " ".join(text[text.index("mean time a run") :].split())
    for one in found["ops"]:
        times = " → ".join(map(seconds_text, one["totals"][1]["typical"]))
        assert times in table


def test_single_runs_have_no_test_on_runs(tmp_path: Path) -> None:
    found = en.compare(*(en.open(str(write_run(tmp_path / name, seed))) for seed, name in enumerate("ab")))
    assert found.run_tests == []
