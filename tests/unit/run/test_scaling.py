"""Rates against the number of tasks: each against its own calculation, points and refusals."""

import json

import numpy as np
import pytest
from made_spools import made_events, spool
from spool_writer import POSIX_CALLS
from synthetic_runs import synthetic_run

import ensembles as en
from ensembles.answers.scaling import RunRate, run_rate, runs_in_series, scaling
from ensembles.cli.main import main
from ensembles.model.errors import EnsioError
from ensembles.model.events import Call

MIB = 1 << 20


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two runs of four tasks and one of eight."""
    top = tmp_path_factory.mktemp("scaling")
    made = {}
    for name, tasks, seed in (("a", 4, 1), ("b", 4, 2), ("c", 8, 3)):
        made[name] = top / name
        synthetic_run(made[name], tasks, 62, seed=seed, tasks_per_node=4, phases=3)
    return made


def written_rate(run):
    """Bytes by the time from the first open to the last close, from the events."""
    events = run.events
    names = np.array([call.op for call in events.calls])[events.call]
    moved = events.moved[names == "write"].sum()
    opened = events.start[names == "open"].min()
    closed = (events.start + events.duration)[names == "close"].max()
    return moved / ((closed - opened) * 1e-9)


def test_rates_are_those_of_the_events(folders):
    for path in folders.values():
        run = en.open(path)
        rate = run_rate(run)
        assert (rate.tasks, rate.writers, rate.layer, rate.files) == (run.tasks, run.tasks, "posix", "shared")
        assert rate.bytes == int(run.select(op="write").moved.sum())
        assert rate.bytes_per_s == pytest.approx(written_rate(run))


def test_repetitions_are_one_point(folders):
    runs = {name: en.open(path) for name, path in folders.items()}
    rates = {name: run_rate(run).bytes_per_s for name, run in runs.items()}
    found = scaling(runs.values(), maximum_bytes_per_s=1e12)
    assert [(point.at, len(point.runs)) for point in found.points] == [(4, 2), (8, 1)]
    first, second = found.points
    low, high = sorted((rates["a"], rates["b"]))
    assert (first.low_bytes_per_s, first.high_bytes_per_s) == (low, high)
    assert first.median_bytes_per_s == pytest.approx((low + high) / 2)
    assert first.spread == pytest.approx(high / low)
    assert second.spread is None
    assert first.efficiency == pytest.approx(1)
    assert second.efficiency == pytest.approx(rates["c"] / 8 / (first.median_bytes_per_s / 4))
    assert second.share_of_maximum == pytest.approx(rates["c"] / 1e12)
    assert not found.maximum_is_measured


def test_a_run_of_one_task_is_the_baseline_of_the_series_that_there_are():
    def rate(tasks, files, layer="posix"):
        return RunRate(f"{layer} {tasks} {files}", tasks, 1, tasks, layer, files, tasks * MIB, 1e6 * tasks)

    def series(*rates):
        return sorted((one.layer, one.files, one.tasks) for one in runs_in_series(rates))

    one = rate(1, "shared")
    assert series(one) == [("posix", "shared", 1)]
    per_task = [("posix", "per task", 1), ("posix", "per task", 2)]
    assert series(one, rate(2, "per task")) == per_task
    assert series(one, rate(2, "per task"), rate(4, "shared")) == [
        *per_task,
        ("posix", "shared", 1),
        ("posix", "shared", 4),
    ]
    assert series(rate(1, "2 private"), rate(2, "2 shared")) == [
        ("posix", "2 shared", 1),
        ("posix", "2 shared", 2),
    ]
    # Runs at another layer, or with some other number of files, do not count as series of it.
    assert ("posix", "shared", 1) in series(one, rate(2, "per task", "mpiio"), rate(2, "7"))


def test_a_run_that_counts_twice_is_told(folders, tmp_path, capsys):
    for name, ranks, names in (("one", 1, "a"), ("two", 2, "ab"), ("both", 2, "aa")):
        for rank in range(ranks):
            events = made_events(10, seed=rank)
            spool(tmp_path / name / f"{rank}.spool", [events], files={1: f"/data/{names[rank]}"}, rank=rank)
    paths = [str(tmp_path / name) for name in ("one", "two", "both")]
    told = "Runs of one task are of both kinds"
    assert main(["scaling", *paths]) == 0
    text = capsys.readouterr().out
    assert told in text
    table = text.split("\n\n")[1]  # columns that do not fit into it are below
    assert [line.split()[:2] for line in table.splitlines()].count(["posix", "shared"]) == 2
    assert main(["scaling", *paths[:2]]) == 0  # there is one kind of files
    assert told not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("files", "kinds"),
    [
        # The letters are files: each row is what one task writes, a call of 1 MiB a letter.
        (("SSSab", "SSScd"), "1 shared, 4 private"),
        (("SSTTab", "SSTT"), "2 shared, 2 private"),
        (("SSTT", "SSTT"), "2 shared"),
        (("abc", ""), "3 private"),
        (("a", "b"), "per task"),
        (("S" * 20 + "a", "S" * 20 + "b"), "shared"),
    ],
)
def test_shared_and_private_files_are_counted(tmp_path, files, kinds):
    letters = sorted(set("".join(files)))
    for rank, written in enumerate(files):
        events = made_events(len(written) + 1, seed=rank)
        events["moved"] = events["requested"] = np.r_[[MIB] * len(written), 0]
        events["call"][-1] = next(number for number, call in POSIX_CALLS.items() if call.op == "open")
        events["file"] = [letters.index(letter) + 1 for letter in (*written, letters[0])]
        names = {number: f"/data/{letter}" for number, letter in enumerate(letters, 1)}
        spool(tmp_path / f"{rank}.spool", [events], files=names, rank=rank, tasks=2)
    assert run_rate(en.open(tmp_path)).files == kinds


def test_nodes_are_counted(folders):
    found = scaling([en.open(path) for path in folders.values()], by="nodes")
    assert [(point.at, len(point.runs)) for point in found.points] == [(1, 2), (2, 1)]


def test_every_number_of_the_text_is_in_the_json(folders, capsys):
    paths = [str(path) for path in folders.values()]
    assert main(["scaling", *paths, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["maximum_is_measured"]
    assert told["by"] == "tasks"
    assert main(["scaling", *paths]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 90
    row = next(line for line in lines if line.startswith("posix")).split()
    point = told["points"][0]
    assert row[:4] == ["posix", "shared", "4", "2"]
    assert f"{point['spread']:.3g}" in row


def test_what_has_no_rate_is_refused(folders, tmp_path, capsys):
    with pytest.raises(EnsioError, match="there are no runs"):
        scaling([])
    only_open = tmp_path / "open"
    synthetic_run(only_open, 2, 2)
    assert main(["scaling", str(only_open)]) == 2
    assert "has no write that moved bytes" in capsys.readouterr().err


@pytest.mark.parametrize("rate", ["fast", "0", "-1GB/s"])
def test_a_maximum_that_is_no_rate_is_refused(folders, capsys, rate):
    with pytest.raises(SystemExit) as stopped:
        main(["scaling", str(folders["a"]), f"--maximum={rate}"])
    assert stopped.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_files_of_another_interface_have_their_rate(tmp_path, capsys):
    """Three quarters of the bytes in one file by write, a quarter in another by fwrite."""
    calls = {**POSIX_CALLS, 70: Call("fwrite", "stdio", "write")}
    for rank in range(2):
        events = made_events(16, seed=rank)
        events["requested"] = events["moved"] = MIB
        events["call"][12:], events["file"][12:] = 70, 2
        files = {1: "/data/a.dat", 2: "/data/b.txt"}
        spool(tmp_path / "both" / f"{rank}.spool", [events], files=files, calls=calls, rank=rank)
    run = en.open(tmp_path / "both")
    whole, posix, stdio = (run_rate(run, **filters) for filters in ({}, {"file": "*.dat"}, {"file": "*.txt"}))
    assert [(one.layer, one.bytes) for one in (whole, posix, stdio)] == [
        ("posix", 32 * MIB),
        ("posix", 24 * MIB),
        ("stdio", 8 * MIB),
    ]
    assert (whole.layer_share, posix.layer_share, posix.files) == (0.75, 1, "shared")
    assert main(["scaling", str(tmp_path / "both")]) == 0
    assert "75 % of the bytes were moved by posix" in capsys.readouterr().err
    assert main(["scaling", str(tmp_path / "both"), "--file", "*.txt"]) == 0
    told = capsys.readouterr()
    assert "stdio" in told.out
    assert not told.err
    assert main(["scaling", str(tmp_path / "both"), "--file", "*.none"]) == 2
