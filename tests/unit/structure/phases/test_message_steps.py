"""Steps in which tasks exchange messages and make no I/O: phases, where the messages were recorded."""

import json
from pathlib import Path

import numpy as np
import pytest
from made_runs import BEGAN_UNIX_NS
from simulated import CALLS, FILES, NUMBERS, Program
from spool_writer import SpoolContent, write_spool
from test_long_runs import run_of

import ensembles as en
from ensembles.diagnosis.diagnose import diagnose
from ensembles.model.c_layout import CONSTANTS, EVENT
from ensembles.model.events import Events
from ensembles.run.information import collect_information
from ensembles.structure.phases.detect import detect_phases, find_phases
from ensembles.structure.phases.table import PhaseTable

RANKS = 12
STEPS = ("write", "ranges", "messages", "compute", "write", "messages", "read")


def two_phase_like(seed: int, with_layer: bool = True, rounds: int = 3) -> tuple[Events, np.ndarray]:
    """Steps between barriers: writes, two collective calls, messages, nothing, writes, messages, reads."""
    program = Program(RANKS, seed)
    for kind in STEPS * rounds:
        if kind in ("write", "read"):
            program.io(f"p{kind}", 2)
        elif kind == "ranges":  # all tasks meet in these calls, too
            for _ in range(2):
                program.meet("MPI_Allgather", size=4, ends_phase=False)
        elif kind == "messages":
            for _ in range(3):
                if with_layer:
                    program.call("MPI_Isend", 900, size=1 << 10)
                program.call("MPI_Waitall", program.rng.integers(1_000, 9_000, RANKS), size=0)
        else:
            program.compute(1_000_000)
        program.meet(ends_phase=kind != "compute" and (with_layer or kind in ("write", "read")))
    return program.recorded()


def numbers_of(kinds: tuple[str, ...], rounds: int) -> list[int]:
    """Numbers of the phases of these kinds; a step of computing has none."""
    steps = [kind for kind in STEPS * rounds if kind != "compute"]
    return [number for number, kind in enumerate(steps, 1) if kind in kinds]


@pytest.mark.parametrize("seed", range(5))
def test_steps_between_barriers_are_phases_where_messages_are_recorded(seed):
    events, truth = two_phase_like(seed)
    phases = find_phases(events)
    assert (phases.rule, phases.count) == ("barriers", 18)
    io_or_data = ~np.isin(events.call, [NUMBERS["MPI_Barrier"]])
    np.testing.assert_array_equal(phases.phase_index(events)[io_or_data], truth[io_or_data])
    assert list(phases.message_steps) == numbers_of(("ranges", "messages"), 3)
    table = PhaseTable(phases)
    table.add(events)
    totals = table.totals()
    assert [entry.phase for entry in totals] == list(range(1, 19))
    for entry in totals:
        mine = events[io_or_data & (truth == entry.phase)]
        is_io = entry.phase not in phases.message_steps
        assert entry.calls == (len(mine) if is_io else 0)
        assert entry.messages == (0 if is_io else len(mine))
        assert entry.message_bytes == (0 if is_io else int(mine.requested.sum()))
        assert entry.tasks == RANKS
        assert entry.start_s == pytest.approx(mine.start.min() * 1e-9)
        assert entry.end_s == pytest.approx(mine.end.max() * 1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_without_the_layer_such_steps_have_no_number_and_are_counted(seed):
    events, truth = two_phase_like(seed, with_layer=False)
    phases = find_phases(events)
    assert (phases.rule, phases.count, phases.message_steps) == ("barriers", 9, ())
    io = np.isin(events.call, [NUMBERS["pwrite"], NUMBERS["pread"]])
    np.testing.assert_array_equal(phases.phase_index(events)[io], truth[io])
    # Of each round: two collective calls divide "ranges" into three; "messages", "compute", "messages".
    found = phases.steps_without_io()
    assert found["steps"] == 3 * 6
    used = np.flatnonzero(phases.number > 0)
    between = np.diff(phases.cuts_ns)[[n - 1 for n in range(1, len(phases.number) - 1) if n not in used]]
    assert found["time_s"] == pytest.approx(between.sum() * 1e-9)


@pytest.mark.parametrize("parts", [1, 2, 5])
def test_the_table_does_not_depend_on_how_events_are_divided(parts):
    events, _ = two_phase_like(1)
    phases = find_phases(events)
    whole = PhaseTable(phases)
    whole.add(events)
    tables = []
    which = np.random.default_rng(parts).integers(0, parts, len(events))
    for part in range(parts):
        tables.append(PhaseTable(phases))
        tables[-1].add(events[np.flatnonzero(which == part)])
    for other in tables[1:]:
        tables[0].merge(other)
    assert tables[0].totals() == whole.totals()


def test_long_runs_have_the_same_steps():
    events, _ = two_phase_like(4, rounds=5)
    run = run_of(events)
    whole = find_phases(events)
    sampled = detect_phases(run, most_events=len(events) // 2)
    assert (sampled.count, sampled.message_steps) == (whole.count, whole.message_steps)
    np.testing.assert_array_equal(sampled.phase_index(events), whole.phase_index(events))


def written(folder: Path, events: Events) -> en.Run:
    """A run directory with these events, opened."""
    folder.mkdir()
    for rank in range(RANKS):
        mine = events[np.flatnonzero(events.rank == rank)]
        mine = mine[np.argsort(mine.end, kind="stable")]
        rows = np.zeros(len(mine), EVENT.dtype)
        for name in ("duration", "requested", "moved", "file"):
            rows[name] = getattr(mine, name)
        rows["start"] = mine.start + 10**12
        rows["call"] = mine.call + 1
        rows["offset"] = -1
        lasted = int(events.end.max())
        head = {
            "clock": CONSTANTS["ENSIO_CLOCK_MONOTONIC"],
            **{"pid": 100 + rank, "rank": rank, "tasks": RANKS},
            **{"first_ticks": 10**12, "first_monotonic_ns": 10**12, "first_realtime_ns": BEGAN_UNIX_NS},
            **{"last_ticks": 10**12 + lasted, "last_monotonic_ns": 10**12 + lasted},
            "last_realtime_ns": BEGAN_UNIX_NS + lasted,
        }
        properties = {"host": "node0001", "program": "/opt/app", "command": "app", "mode": "trace"}
        properties["start_unix_ns"] = str(BEGAN_UNIX_NS)
        calls = {number + 1: call for number, call in enumerate(CALLS)}
        content = SpoolContent([rows], dict(enumerate(FILES[1:], 1)), calls, properties, head)
        write_spool(folder / f"{rank}.spool", content)
    return en.open(folder)


@pytest.mark.parametrize("seed", range(3))
def test_messages_enter_no_total_and_no_finding(seed, tmp_path):
    """The same I/O without the messages has the same findings, totals and durations."""
    events, _ = two_phase_like(seed, rounds=6)
    is_message = np.isin(events.call, [NUMBERS["MPI_Isend"], NUMBERS["MPI_Waitall"]])
    silent = events[np.flatnonzero(~is_message)]
    with_messages, without = written(tmp_path / "with", events), written(tmp_path / "without", silent)
    assert detect_phases(with_messages).count > detect_phases(without).count
    told, plain = collect_information(with_messages), collect_information(without)
    for key in ("bytes_read", "bytes_written", "frequent_sizes", "files", "slowest_call"):
        assert told[key] == plain[key], key
    assert told["io_time_s"] == pytest.approx(plain["io_time_s"])
    assert told["time_in_io"] == pytest.approx(plain["time_in_io"])
    found, expected = diagnose(with_messages), diagnose(without)
    assert json.dumps(found.to_json()["findings"]) == json.dumps(expected.to_json()["findings"])
    assert found.unexplained_s == expected.unexplained_s
    one, other = with_messages.ensemble(op="write"), without.ensemble(op="write")
    assert (one.n, one.modes().to_json()) == (other.n, other.modes().to_json())
    assert one.tail(tasks=64).to_json() == other.tail(tasks=64).to_json()
