"""Bad pointers, endless paths, results in the place of paths: errors are those of the plain program."""

import os
from collections import Counter

import pytest
from places import PATIENCE_S
from test_mpi import compiled

import ensembles
from ensembles.cli.replay_program import ANY_TASKS

MODES = ("trace", "profile", "tail")
BUILDS = {
    "plain": (),
    "fortified 64-bit names": ("-D_FORTIFY_SOURCE=2", "-D_FILE_OFFSET_BITS=64"),
}
QUIET = ANY_TASKS | {"ENSIO_BANNER": "none"}


def outcome(execute, program, folder, **options) -> tuple[int, list[str], bytes]:
    """Exit status, lines printed (a call with its result and errno each) and errors of a program."""
    folder.mkdir()
    done = execute(program, cwd=folder, timeout=PATIENCE_S, **options)
    return done.returncode, done.stdout.decode().splitlines(), done.stderr


@pytest.mark.parametrize("options", BUILDS.values(), ids=BUILDS.keys())
def test_every_result_and_errno_is_that_of_the_plain_program(recorder, tmp_path, options):
    program = recorder.build("hostile_calls", *options)
    plain = outcome(recorder.untraced, program, tmp_path / "plain")
    assert plain[0] == 5
    assert len(plain[1]) > 900
    for mode in MODES:
        recorder.run = tmp_path / f"run-{mode}"
        recorded = outcome(recorder.execute, program, tmp_path / mode, environment={"ENSIO_MODE": mode})
        assert recorded == plain
        run = ensembles.open(recorder.run)
        assert run.mode == mode
        # The request whose memory went away without its result having been asked for is not an event.
        assert [process.dropped_events for process in run.info.processes] == [1]


def test_static_programs_get_the_same(relinked, tmp_path):
    program = relinked.build("hostile_calls", "-static")
    plain = outcome(relinked.untraced, program, tmp_path / "plain")
    assert plain[0] == 5
    assert outcome(relinked.execute, program, tmp_path / "recorded") == plain


def test_a_path_that_the_result_replaced_is_recorded_and_one_that_is_lost_has_no_name(recorder, tmp_path):
    folder = tmp_path / "data"
    status, *_ = outcome(recorder.execute, recorder.build("hostile_calls"), folder)
    assert status == 5
    run = ensembles.open(recorder.run)
    done = run.select(call="stat,lstat,fstatat,statx,readlink,readlinkat")
    done = done[done.error == 0]
    files = [run.files[file] for file in done.file.tolist()]
    found = Counter(zip((done.calls[call].name for call in done.call), files, strict=True))
    assert found == {
        ("stat", f"{folder}/a.data"): 6,
        ("lstat", f"{folder}/a.data"): 1,
        ("fstatat", f"{folder}/a.data"): 2,
        ("statx", f"{folder}/a.data"): 1,
        ("readlink", f"{folder}/l"): 2,
        ("readlinkat", f"{folder}/l"): 1,
        ("stat", ""): 1,  # these began before the result and ran into it
        ("readlink", ""): 1,
    }
    # A path that cannot be read to its end has no event; all others have theirs.
    missing = run.select(file=f"{folder}/missing/file")
    assert len(missing) > 20
    assert not [path for path in run.files if path.endswith("u" * 10) and len(path) < 4000]


@pytest.mark.parametrize("flavour", ["openmpi", "mpich"])
def test_mpi_refuses_wrong_arguments_as_without_us(recorder, tmp_path, flavour):
    program = compiled(recorder, "hostile_mpi", f"mpicc.{flavour}")
    plain = outcome(recorder.untraced, program, tmp_path / "plain", environment=QUIET)
    assert plain[0] == 5, plain
    assert len(plain[1]) > 5
    assert outcome(recorder.execute, program, tmp_path / "recorded", environment=QUIET) == plain
    assert os.listdir(tmp_path / "recorded") == os.listdir(tmp_path / "plain")
