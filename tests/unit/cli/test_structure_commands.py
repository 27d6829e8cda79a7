"""``ensio phases``, ``ensio ordinals`` and ``ensio rate``, started as a person starts them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from commands_here import executed as ensio
from commands_here import told
from spool_writer import POSIX_CALLS, SpoolContent, write_spool
from synthetic_runs import SyntheticRun, synthetic_run

import ensembles as en
from ensembles.model.c_layout import CONSTANTS, EVENT
from ensembles.model.events import Call
from ensembles.structure.phases.detect import detect_phases, phase_index

pytestmark = pytest.mark.slow

TASKS, EVENTS, PHASES = 12, 62, 5
OPEN, PREAD, PWRITE = 1, 5, 6
MIB = 1 << 20


def refused(*arguments: str | Path) -> str:
    done = ensio(*arguments)
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    return done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


@pytest.fixture(scope="module")
def made(folder: Path) -> SyntheticRun:
    return synthetic_run(folder, TASKS, EVENTS, seed=3, tasks_per_node=4, phases=PHASES)


def spools(
    folder: Path,
    tasks: list[tuple],
    mode: str = "trace",
    files: int = 1,
    moved: np.ndarray | int = MIB,
    more: dict[int, Call] | None = None,
) -> Path:
    """A run directory of tasks, each given by its calls, starts, durations (ns) and files."""
    folder.mkdir()
    for rank, (call, start_ns, duration_ns, file) in enumerate(tasks):
        events = np.zeros(len(call), EVENT.dtype)
        events["call"], events["start"], events["duration"] = call, start_ns, duration_ns
        events["file"], events["requested"], events["moved"] = file, moved, moved
        head = {
            "clock": CONSTANTS["ENSIO_CLOCK_MONOTONIC"],
            "rank": rank,
            "tasks": len(tasks),
            "pid": rank + 9,
        }
        paths = {number: f"/scratch/f{number}" for number in range(1, files + 1)}
        known = POSIX_CALLS | (more or {})
        content = SpoolContent([events], paths, known, properties={"mode": mode}, head=head)
        write_spool(folder / f"{rank}.spool", content)
    return folder


@pytest.fixture(scope="module")
def madbench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixteen reads of each task, whose fourth to eighth get slower and slower; a write after each."""
    random = np.random.default_rng(5)
    typical_ns = 1e6 * np.array([15, 15, 15, 30, 60, 120, 250, 500] + [15] * 8)
    tasks = []
    now = 0
    starts = np.zeros((32, 32), np.int64)
    durations = np.zeros((32, 32), np.int64)
    for number, read_ns in enumerate(typical_ns):
        for kind, ns in enumerate((read_ns, 20e6)):
            starts[:, 2 * number + kind] = now + random.integers(0, 10_000, 32)
            durations[:, 2 * number + kind] = ns * random.lognormal(0, 0.3, 32)
            now = int((starts + durations).max()) + 50_000
    tasks = [(np.tile([PREAD, PWRITE], 16), starts[rank], durations[rank], 1) for rank in range(32)]
    return spools(tmp_path_factory.mktemp("madbench") / "run", tasks)


def test_phases_are_those_of_the_synthetic_run(folder: Path, made: SyntheticRun) -> None:
    result = told("phases", folder)
    assert (result["rule"], result["confidence"], result["complete"]) == ("steps", 1.0, True)
    assert result["count"] == len(result["phases"]) == 2 * PHASES + 2
    each = (EVENTS - 2) // (2 * PHASES)
    begin = [0, *(1 + each * np.arange(2 * PHASES)), EVENTS - 1]
    end_ns = made.start_ns + made.duration_ns
    for entry, low, high in zip(result["phases"], begin, [*begin[1:], EVENTS], strict=True):
        own_end_s = end_ns[:, high - 1] / 1e9
        assert (entry["tasks"], entry["calls"]) == (TASKS, TASKS * (high - low))
        writes, reads = (TASKS * np.count_nonzero(made.call[low:high] == kind) for kind in (PWRITE, PREAD))
        assert (entry["bytes_written"], entry["bytes_read"]) == (writes * MIB, reads * MIB)
        # The clocks of the nodes are aligned to some microseconds.
        assert entry["time_s"] == pytest.approx(own_end_s.max() - made.start_ns[:, low].min() / 1e9, abs=1e-4)
        assert entry["lost_s"] == pytest.approx((own_end_s.max() - own_end_s).sum(), abs=1e-3)
        assert entry["last_call"]["duration_s"] > 0
    assert all(entry["slowest_task"] in range(TASKS) for entry in result["phases"])


def test_the_table_of_phases_has_a_row_for_each(folder: Path, made: SyntheticRun) -> None:
    done = ensio("phases", folder)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith(
        "12 phases: no barrier between I/O calls was recorded; all ranks were in lockstep"
    )
    first = 1 + next(number for number, line in enumerate(lines) if line.startswith("-----"))
    assert [line.split()[0] for line in lines[first : first + 12]] == [str(n) for n in range(1, 13)]
    assert "written" in lines[first - 2]
    assert "MiB" in lines[first + 1]
    assert lines[first + 6].endswith(" pread")
    assert "9 more phases: raise" in ensio("phases", folder, "--limit", "3").stdout


def test_filters_choose_calls_of_the_phases_of_the_whole_run(folder: Path, made: SyntheticRun) -> None:
    result = told("phases", folder, "--op", "read", "--rank", "3-5")
    assert result["count"] == 12
    assert [entry["phase"] for entry in result["phases"]] == [7, 8, 9, 10, 11]
    assert {entry["tasks"] for entry in result["phases"]} == {3}
    result = told("phases", folder, "--phase", "2,4-5")
    assert [entry["phase"] for entry in result["phases"]] == [2, 4, 5]


def test_chunks_of_a_run_give_the_phases_of_its_events(folder: Path, made: SyntheticRun) -> None:
    run = en.open(folder)
    events = run.events
    expected = phase_index(events)
    np.testing.assert_array_equal(detect_phases(run).phase_index(events), expected)
    np.testing.assert_array_equal(events.phase, expected)
    some = detect_phases(run, most_events=2 * run.reading.most_events // 3)
    assert "detected in 3 of 12 tasks" in some.sentence
    np.testing.assert_array_equal(some.phase_index(events), expected)


def test_madbench_reads_worsen_from_the_fourth_to_the_eighth(madbench: Path) -> None:
    result = told("ordinals", madbench, "--op", "read")
    assert result["op"] == "read"
    assert [entry["ordinal"] for entry in result["ordinals"]] == list(range(1, 17))
    assert {entry["n"] for entry in result["ordinals"]} == {32}
    trend = result["trend"]
    assert (trend["worsening"], trend["from"], trend["to"]) == (True, 4, 8)
    assert trend["rise"] == pytest.approx(500 / 15, rel=0.4)
    reads = en.open(madbench).select(op="read", ordinal=6)
    sixth = result["ordinals"][5]
    assert sixth["median_s"] == pytest.approx(np.median(reads.duration) / 1e9)
    assert sixth["p90_s"] == pytest.approx(np.quantile(reads.duration, 0.9) / 1e9)
    assert not told("ordinals", madbench, "--op", "write")["trend"]["worsening"]
    text = ensio("ordinals", madbench, "--op", "read").stdout
    assert "Trend: gets slower from ordinal 4 to 8: " in text


def test_without_op_the_operation_that_takes_most_time_is_shown(madbench: Path) -> None:
    assert told("ordinals", madbench)["op"] == "read"


def test_filters_of_ordinals(madbench: Path) -> None:
    result = told("ordinals", madbench, "--op", "read", "--where", "ordinal=4-8", "--rank", "0-9")
    assert [entry["ordinal"] for entry in result["ordinals"]] == [4, 5, 6, 7, 8]
    assert {entry["n"] for entry in result["ordinals"]} == {10}
    result = told("ordinals", madbench, "--op", "read", "--phase", "3-5")  # a phase a read, one a write
    assert [entry["ordinal"] for entry in result["ordinals"]] == [2, 3]
    assert "name one with --op" in refused("ordinals", madbench, "--op", "read,write")


def test_ordinals_within_phases(folder: Path, made: SyntheticRun) -> None:
    done = ensio("ordinals", folder, "--op", "write", "--by", "phase", "--json")
    result = json.loads(done.stdout)
    assert [(entry["ordinal"], entry["n"]) for entry in result["ordinals"]] == [
        (n, TASKS * PHASES) for n in range(1, 7)
    ]
    assert "12 phases" in done.stderr


def test_rates_add_up_to_the_bytes(folder: Path, made: SyntheticRun) -> None:
    result = told("rate", folder)
    assert [entry["op"] for entry in result["rates"]] == ["read", "write"]
    for entry in result["rates"]:
        assert entry["bytes"] == TASKS * 30 * MIB
        assert 0.8 < sum(plateau["share"] for plateau in entry["plateaus"]) <= 1.0001
        curve = np.array(result["curve"][f"{entry['op']}_bytes_per_s"])
        assert curve.sum() * result["curve"]["cell_s"] == pytest.approx(TASKS * 30 * MIB)
        for plateau in entry["plateaus"]:
            mean = plateau["bytes"] / (plateau["to_s"] - plateau["from_s"])
            assert plateau["bytes_per_s"] == pytest.approx(mean, rel=0.1)
            assert plateau["low_bytes_per_s"] <= plateau["bytes_per_s"] <= plateau["high_bytes_per_s"]
    text = ensio("rate", folder, "--op", "write")
    assert text.returncode == 0
    assert text.stdout.startswith("write: 360 MiB over ")
    assert "read:" not in text.stdout
    assert "select these" in refused("rate", folder, "--op", "open")


def test_runs_that_keep_no_calls_are_refused_where_these_are_needed(tmp_path: Path) -> None:
    tasks = [([PWRITE] * 5, np.arange(5) * 10**6, np.full(5, 10**5), 1) for _ in range(2)]
    run = spools(tmp_path / "run", tasks, mode="profile")
    for command in ("phases", "rate"):
        message = refused(command, run)
        assert "recorded in mode profile" in message
        assert "ensio run --mode trace" in message


@pytest.mark.parametrize("command", ["phases", "ordinals", "rate"])
def test_a_run_without_calls_is_no_failure_or_a_plain_sentence(tmp_path: Path, command: str) -> None:
    run = spools(tmp_path / "run", [([], [], [], 1)])
    done = ensio(command, run)
    assert done.returncode in (0, 2)
    assert "Traceback" not in done.stderr


def test_ordinals_are_of_one_layer_and_name_the_others(tmp_path: Path) -> None:
    """The n-th write of a file by one layer and that of a log by another do not form an ensemble."""
    fprintf = max(POSIX_CALLS) + 1
    calls = np.tile([PWRITE, fprintf], 20)
    starts = np.arange(40) * 2_000_000
    tasks = [(calls, starts, np.tile([1_000_000, 1_000], 20), np.tile([1, 2], 20)) for _ in range(4)]
    run = spools(
        tmp_path / "run",
        tasks,
        files=2,
        moved=np.tile([MIB, 43], 20),
        more={fprintf: Call("fprintf", "stdio", "write")},
    )
    result = told("ordinals", run, "--op", "write")
    assert {entry["n"] for entry in result["ordinals"]} == {4}
    assert [entry["median_s"] for entry in result["ordinals"]] == pytest.approx([1e-3] * 20)
    (note,) = (note for note in result["notes"] if note.startswith("taken are"))
    assert note.startswith(
        "taken are 80 writes of posix, which moved > 99.9 % of the bytes; left out: 80 writes"
    )
    other = told("ordinals", run, "--op", "write", "--layer", "stdio")
    assert [entry["median_s"] for entry in other["ordinals"]] == pytest.approx([1e-6] * 20)
