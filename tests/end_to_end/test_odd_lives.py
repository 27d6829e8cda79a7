"""What breaks tracers: positions moved unseen, children past fork handlers, closed streams, jumps."""

import pytest

import ensembles

FILE = "out"


def live(recorder, tmp_path, name):
    """Run one of the programs of ``odd_lives.c``, and return its run and the lines that it printed."""
    done = recorder.execute(recorder.build("odd_lives"), name, tmp_path / FILE, timeout=600)
    assert done.returncode == 6
    return ensembles.open(recorder.run), (done.stdout or done.stderr).decode().splitlines()


def test_offsets_are_right_whatever_moved_the_position(recorder, tmp_path):
    run, lines = live(recorder, tmp_path, "positions")
    told = [int(line.rsplit(" ", 1)[1]) for line in lines]
    writes = run.select(call="write", file=f"*/{FILE}", size="1")
    assert len(told) == 8
    assert writes.offset.tolist() == told


def test_vector_that_the_kernel_did_not_read_is_not_read(recorder, tmp_path):
    run, lines = live(recorder, tmp_path, "vector")
    assert lines == ["-1 9"]
    writes = run.select(call="writev", file=f"*/{FILE}")
    assert (writes.requested.tolist(), writes.error.tolist()) == ([0], [9])


@pytest.mark.parametrize(("name", "processes"), [("fork_storm", 301), ("fork_handler", 2)])
def test_children_of_every_kind_record_and_nothing_waits_for_ever(recorder, tmp_path, name, processes):
    run, lines = live(recorder, tmp_path, name)
    assert lines == ["done"]
    assert len({process.pid for process in run.info.processes}) == processes
    opened, closed = (run.select(op=op, file=f"*/{FILE}") for op in ("open", "close"))
    assert len(opened) == len(closed) >= processes


def test_closed_output_stays_closed(recorder, tmp_path):
    run, lines = live(recorder, tmp_path, "closed_output")
    assert lines == ["silent"]
    assert len(run.select(call="write", file=f"*/{FILE}")) == 200


def test_call_that_was_jumped_out_of_leaves_no_depth(recorder, tmp_path):
    run, lines = live(recorder, tmp_path, "jumps")
    assert lines == ["after 0"]
    after = run.select(file=f"*/{FILE}")
    assert after.depth.tolist() == [0] * len(after)


def test_children_that_find_no_place_to_record_are_counted(recorder, tmp_path):
    run, lines = live(recorder, tmp_path, "homeless_child")
    assert lines == ["written"]
    assert (tmp_path / FILE).read_bytes() == b"data"
    assert run.notes == [
        "1 forked process could not be recorded (no space, or the run directory was gone): their calls "
        "are missing"
    ]
