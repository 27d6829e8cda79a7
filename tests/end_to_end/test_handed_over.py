"""Processes that go on as another program or as a child, and descriptors that come back as something else."""

from collections import Counter

import ensembles


def written(run) -> Counter:
    """Writes by what follows the dot in the file's name."""
    files = run.select(call="write", file="*/out.*").file.tolist()
    return Counter(run.files[file].rsplit(".", 1)[1] for file in files)


def test_exec_of_a_program_that_is_not_recorded_ends_the_recording_in_order(recorder, tmp_path):
    program = recorder.build("handed_over")
    done = recorder.execute(program, "children", tmp_path / "out", timeout=600)
    assert (done.returncode, done.stderr) == (0, b"")
    run = ensembles.open(recorder.run)
    assert written(run) == {"before": 8}
    assert run.notes == []
    assert all(process.ended for process in run.info.processes)


def test_a_process_whose_exec_fails_goes_on(recorder, tmp_path):
    program = recorder.build("handed_over")
    done = recorder.execute(program, "failed_exec", tmp_path / "out", timeout=600)
    assert done.returncode == 0
    run = ensembles.open(recorder.run)
    assert written(run) == {"before": 1, "after": 1}
    assert run.notes == []


def test_a_daemon_has_other_standard_streams(recorder, tmp_path):
    program = recorder.build("handed_over")
    done = recorder.execute(program, "become_daemon", tmp_path / "out", timeout=600)
    assert done.returncode == 0
    assert (tmp_path / "out.output").read_bytes() == b"seen"
    run = ensembles.open(recorder.run)
    assert written(run) == {"output": 1, "daemon": 3}
    assert run.notes == []


def test_descriptors_that_were_closed_unseen_and_came_back_are_no_files(recorder, tmp_path):
    program = recorder.build("unseen_closes")
    done = recorder.execute(program, tmp_path / "file", timeout=600)
    assert done.returncode == 20
    run = ensembles.open(recorder.run)
    on_file = run.select(file="*/file")
    counts = Counter(run.calls[call].name for call in on_file.call.tolist())
    assert counts == {"open": 31, "write": 30, "close": 1}


def test_a_path_that_the_kernel_did_not_look_at_is_not_looked_at(recorder):
    program = recorder.build("wrong_pointers")
    done = recorder.execute(program, timeout=600)
    assert (done.returncode, done.stdout) == (0, b"8\n")
