"""The layer of messages (mpimsg): recorded on request, no I/O, and without it nothing changes."""

import json
from collections import Counter

import numpy as np
import pytest
from test_cost_of_lives import instructions
from test_mpi import FLAVOURS, check_of_calls_of_mpi, compiled, executed

from ensembles.answers.totals import waiting_s
from ensembles.cli.main import main
from ensembles.cli.replay_program import ANY_TASKS
from ensembles.run.information import collect_information
from ensembles.run.tables import totals_by_rank

WITH_MESSAGES = {"ENSIO_LAYERS": "default,mpimsg"}

OF_MPI_4 = {"MPI_Pready", "MPI_Pready_range", "MPI_Pready_list", "MPI_Parrived"} | {
    "MPI_Isendrecv",
    "MPI_Isendrecv_replace",
}
"""Calls that Debian's Open MPI does not have."""


def done_by_mpi(run, rank: int) -> Counter:
    """Name, offset, bytes asked for and moved of a task's calls of MPI, with the layer of messages."""
    events = run.select(layer="mpimsg,mpisync", rank=str(rank))
    names = [events.calls[call].name for call in events.call]
    return Counter(
        zip(names, events.offset.tolist(), events.requested.tolist(), events.moved.tolist(), strict=True)
    )


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_every_call_of_messages_is_recorded_once_with_its_bytes(recorder, flavour):
    program = compiled(recorder, "mpimsg_calls", f"mpicc.{flavour}")
    said, run = executed(recorder, flavour, program, **WITH_MESSAGES)
    assert [done_by_mpi(run, rank) for rank in (0, 1)] == said
    table = {call.name for call in run.calls if call.layer == "mpimsg"}
    assert len(table) == 62 + 2 + 10 + len(OF_MPI_4)
    assert table - OF_MPI_4 <= {name for name, *_ in said[0]}
    assert {"MPI_Test", "MPI_Testany", "MPI_Testall", "MPI_Testsome"} <= {name for name, *_ in said[0]}
    check_of_calls_of_mpi(run)
    events = run.select(layer="mpimsg")
    assert {run.calls[call].op for call in events.call} == {"wait"}
    assert not events.file.any()
    assert (events.offset == -1).all()
    assert not events.depth.any()
    assert run.notes == []


def test_messages_of_mpi_4_count_as_those_of_int(recorder):
    """Large counts (3,000,000,000 of a type) and parts; Debian's MPICH has them, its Open MPI does not."""
    program = compiled(recorder, "mpi4_messages", "mpicc.mpich")
    said, run = executed(recorder, "mpich", program, **WITH_MESSAGES)
    assert [done_by_mpi(run, rank) for rank in (0, 1)] == said
    assert {name for calls in said for name, *_ in calls} >= OF_MPI_4
    check_of_calls_of_mpi(run)
    assert run.notes == []


def test_large_counts_and_persistent_collective_calls_from_fortran(recorder):
    """Debian's MPICH has both in the module mpi_f08, its Open MPI does not."""
    program = compiled(recorder, "large_fortran", "mpif90.mpich")
    said, run = executed(recorder, "mpich", program, **WITH_MESSAGES)
    assert [done_by_mpi(run, rank) for rank in (0, 1)] == said
    assert run.select(call="MPI_Send").requested.max() == 12_000_000_000
    check_of_calls_of_mpi(run)
    assert run.notes == []


@pytest.mark.parametrize("module", ["mpi", "mpi_f08"])
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_messages_from_fortran_are_recorded_as_those_from_c(recorder, flavour, module):
    option = "-DF08" if module == "mpi_f08" else "-UF08"
    program = compiled(recorder, "mpimsg_fortran", f"mpif90.{flavour}", option)
    said, run = executed(recorder, flavour, program, **WITH_MESSAGES)
    frame = Counter({("MPI_Init", -1, 0, 0): 1, ("MPI_Finalize", -1, 0, 0): 1})
    assert [sum(calls.values()) for calls in said] == [37, 37]
    assert [done_by_mpi(run, rank) for rank in (0, 1)] == [calls + frame for calls in said]
    check_of_calls_of_mpi(run)


@pytest.mark.parametrize("layers", [None, "default", "posix,mpiio,mpisync"])
def test_messages_are_not_recorded_unless_they_are_named(recorder, layers):
    program = compiled(recorder, "mpimsg_calls", "mpicc.openmpi")
    more = {} if layers is None else {"ENSIO_LAYERS": layers}
    said, run = executed(recorder, "openmpi", program, **more)
    assert len(run.select(layer="mpisync")) > 0
    told = collect_information(run)
    assert "mpimsg" not in told["layers"]
    # As before, waits for messages are in the totals, and a Test that completes no I/O is nowhere.
    assert told["calls"]["MPI_Wait"]["count"] == sum(
        count for of_task in said for (name, *_), count in of_task.items() if name == "MPI_Wait"
    )
    assert not {"MPI_Test", "MPI_Testall", "MPI_Testany", "MPI_Testsome"} & set(told["calls"])
    assert told["summed_calls"] > 0


def test_waits_for_messages_can_stay_sums(recorder, capsys):
    program = compiled(recorder, "mpimsg_calls", "mpicc.openmpi")
    _, run = executed(recorder, "openmpi", program, ENSIO_POINT_TO_POINT="0", **WITH_MESSAGES)
    assert len(run.select(call="MPI_Isend")) > 0
    assert len(run.select(call="MPI_Wait")) == 0
    assert collect_information(run)["calls"]["MPI_Wait"]["count"] > 0
    # They are in no row of `ensio ranks`, which says how much they took.
    of_rows_s = sum(row.wait_s for row in totals_by_rank(run, "time"))
    assert waiting_s(run) > of_rows_s
    told = [ranks_json(run.path, capsys, *words) for words in ((), ("--rank", "0"))]
    assert told[0]["wait_of_messages_s"] == pytest.approx(waiting_s(run) - of_rows_s)
    calls = [call for call in collect_information(run)["calls"].values() if call["op"] == "wait"]
    waits_s = sum(call["exclusive_time_s"] for call in calls)
    assert told[0]["wait_of_messages_s"] + of_rows_s == pytest.approx(waits_s)
    assert told[1]["wait_of_messages_s"] is None  # sums have no ranks


def ranks_json(path: str, capsys, *words: str) -> dict:
    capsys.readouterr()
    assert main(["ranks", path, *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_messages_are_no_io(recorder, flavour):
    """The bytes and the time of messages enter no total of I/O, and the writes between them do."""
    program = compiled(recorder, "messages", f"mpicc.{flavour}")
    rounds = 50
    run = recorder.tasks(flavour, program, rounds, **WITH_MESSAGES)
    told = collect_information(run)
    assert told["calls"]["MPI_Isend"]["count"] == told["calls"]["MPI_Irecv"]["count"] == 2 * rounds
    assert not any(told["calls"][name]["is_io"] for name in ("MPI_Isend", "MPI_Irecv", "MPI_Wait"))
    assert told["bytes_written"] == 2 * sum(i // 5 % 3 + 1 for i in range(0, rounds, 5))
    assert told["bytes_read"] == 0
    io = run.select(op="read,write,open,close,seek,sync,meta")
    assert told["io_time_s"] == pytest.approx(float(io.duration[io.depth == 0].sum()) * 1e-9)
    sent = run.select(call="MPI_Isend")
    assert sent.requested.tolist() == [4] * (2 * rounds)
    assert not sent.moved.any()
    posted = run.select(call="MPI_Isend,MPI_Irecv,MPI_Wait", rank="0")
    names = [run.calls[call].name for call in posted.call]
    assert names == ["MPI_Isend", "MPI_Irecv", "MPI_Wait", "MPI_Wait"] * rounds
    assert (np.diff(posted.start) >= 0).all()
    assert (posted.end[:-1] <= posted.start[1:]).all()


FEW, MANY = 2_000, 12_000
OFF_INSTRUCTIONS = 60
"""Of a message that is not recorded; 47 were measured by preload."""

ON_INSTRUCTIONS = 650
"""Of a recorded message, with its coding in the job file; 515 were measured, and 439 of pwrite."""


def test_a_message_costs_as_much_as_another_call_and_little_without_the_layer(recorder):
    program = compiled(recorder, "message_cost", "mpicc.mpich", "-O2")

    def per_call(execute, **more):
        few, many = (instructions(execute, program, calls, **ANY_TASKS, **more) for calls in (FEW, MANY))
        return (many - few) / (MANY - FEW)

    untraced = per_call(recorder.untraced)
    assert per_call(recorder.execute) - untraced < OFF_INSTRUCTIONS
    assert 100 < per_call(recorder.execute, **WITH_MESSAGES) - untraced < ON_INSTRUCTIONS
