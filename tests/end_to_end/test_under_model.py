"""Real programs under the model of a parallel file system: only how long their calls take is the model's."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from places import BUILD, PRELOAD
from test_mpi import compiled

import ensembles
from ensembles.cli.replay_program import ANY_TASKS
from ensembles.model.errors import EnsioError
from ensembles.workloads.simulation.live_model import environment_for, held_back, shared_model

MIB = 1 << 20

QUIET = """
targets 1
stripe_count 1
target_MB_per_s {MB_per_s}
stream_MB_per_s 1e6
link_MB_per_s 1e6
absorb_MB_per_s 1e6
link_latency_us 0
request_ms 0
commit_ms 0
mds_op_ms {mds_op_ms}
mds_create_ms {mds_op_ms}
request_noise 0
call_noise 0
mds_noise 0
cache_MiB 0
page_cache_MiB 0
readahead_KiB 0
tasks_per_node 1
"""
"""One target of a known rate and nothing else, so that the model's times follow from bytes and rate alone."""

MB_PER_S = 10.48576
MIB_S = 0.1
"""What a MiB takes at that rate."""
OPERATION_S = 0.05


def quiet(MB_per_s: float = MB_PER_S, mds_op_ms: float = 1e3 * OPERATION_S) -> str:
    return QUIET.format(MB_per_s=MB_per_s, mds_op_ms=mds_op_ms)


FAST = quiet(1e6, 0)
"""A file system that adds nothing."""


@pytest.fixture
def data(tmp_path):
    """A folder under the model, with a file of 4 MiB."""
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "file").write_bytes(np.random.default_rng(1).bytes(4 * MIB))
    return folder


def run_under(model, data, command, environment=None, **options):
    under = environment_for(model, [data], environment or dict(os.environ))
    return subprocess.run([str(word) for word in command], env=under, capture_output=True, **options)


def python(text: str, *arguments) -> list:
    return [sys.executable, "-c", text, *arguments]


def test_recorded_durations_are_the_models(recorder, data):
    program = recorder.build("under_model")
    with shared_model(quiet(), 1) as model:
        run_under(model, data, [program, data / "file", "some"], recorder.environment(), check=True)
        counted = held_back(model)
    events = ensembles.open(recorder.run).select(file=str(data / "file"))
    durations = {
        call: events.duration[[events.calls[number].name == call for number in events.call]] / 1e9
        for call in ("pread", "stat", "open")
    }
    assert [len(durations[call]) for call in ("pread", "stat", "open")] == [4, 4, 1]
    assert durations["pread"].min() >= MIB_S
    assert durations["stat"].min() >= OPERATION_S
    # How late a call comes back is the machine's; the best of four is not twice as long as it should be.
    assert durations["pread"].min() < 2 * MIB_S
    assert durations["stat"].min() < 2 * OPERATION_S
    assert counted.calls == 4 + 4 + 1 + 1
    assert counted.model_s == pytest.approx(4 * MIB_S + 6 * OPERATION_S, rel=1e-6)
    assert counted.bytes_read == 4 * MIB


def test_processes_share_the_model(preload, data):
    program = preload.build("under_model")
    with shared_model(quiet(), 1) as model:
        under = environment_for(model, [data], dict(os.environ))
        readers = [
            subprocess.Popen(
                [program, data / "file", "threads"],
                env=under | {"OMPI_COMM_WORLD_RANK": str(rank)},
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(4)
        ]
        said = [reader.communicate()[0].split() for reader in readers]
        counted = held_back(model)
    assert [reader.returncode for reader in readers] == [0] * 4
    assert [right for right, _ in said] == ["4"] * 4
    assert counted.bytes_read == 16 * MIB
    # 16 readers of one target: the bytes of all pass it one after the other.
    assert counted.model_s >= 16 * MIB_S
    assert counted.without_slot_calls == counted.nested_calls == counted.let_go_calls == counted.restarts == 0


@pytest.mark.parametrize(
    "options", [(), ("-D_FORTIFY_SOURCE=2", "-D_FILE_OFFSET_BITS=64")], ids=["plain", "fortified"]
)
@pytest.mark.parametrize("name", ["every_call", "metadata_calls", "wrong_pointers"])
def test_results_are_unchanged(recorder, tmp_path, name, options):
    program = recorder.build(name, *options)
    folders = [tmp_path / part for part in ("under", "alone")]
    for folder in folders:
        folder.mkdir()
    with shared_model(FAST, 1) as model:
        under = run_under(model, tmp_path, [program, folders[0]], recorder.environment(), cwd=folders[0])
        counted = held_back(model)
    alone = recorder.untraced(program, folders[1], cwd=folders[1])
    assert (under.stdout, under.stderr, under.returncode) == (alone.stdout, alone.stderr, alone.returncode)
    assert counted.calls > (30 if name != "wrong_pointers" else -1)
    contents = [{file.name: file.read_bytes() for file in folder.glob("?.*")} for folder in folders]
    assert contents[0] == contents[1]


def test_only_files_in_the_folder_are_under_the_model(tmp_path, data):
    other = tmp_path / "data.other"
    other.mkdir()
    (tmp_path / "link").symlink_to(data)
    text = "import sys, os\nfor path in sys.argv[1:]:\n  os.close(os.open(path, os.O_RDWR | os.O_CREAT))"
    with shared_model(FAST, 1) as model:
        run_under(model, data, python(text, other / "a", tmp_path / "b"), check=True)
        assert held_back(model).calls == 0
        run_under(model, data, python(text, data / "a"), check=True)
        assert held_back(model).calls == 2
        run_under(model, data, python(text, "../data/./b"), check=True, cwd=other)
        assert held_back(model).calls == 4
        run_under(model, tmp_path / "link", python(text, data / "a", tmp_path / "link" / "a"), check=True)
        assert held_back(model).calls == 8


def test_a_handler_in_a_call_that_is_held_back_runs_at_once(preload, data):
    program = preload.build("under_model")
    with shared_model(quiet(), 1) as model:
        said = run_under(model, data, [program, data / "file", "handler"], check=True).stdout
        counted = held_back(model)
    handled, error, took = said.split()
    assert (handled, error) == (b"1", b"77")
    assert float(took) >= MIB_S
    assert counted.nested_calls == 1


def test_a_jump_out_of_a_call_that_is_held_back_leaves_it_behind(preload, data):
    program = preload.build("under_model")
    with shared_model(quiet(), 1) as model:
        said = run_under(model, data, [program, data / "file", "jump"], check=True).stdout
        counted = held_back(model)
    assert float(said) >= MIB_S
    assert counted.nested_calls == 0


def test_a_thread_is_cancelled_as_ever(preload, data):
    program = preload.build("under_model")
    with shared_model(quiet(), 1) as model:
        under = run_under(model, data, [program, data / "file", "cancel"], check=True)
        counted = held_back(model)
    assert float(under.stdout.split()[1]) >= MIB_S
    assert counted.let_go_calls == 0


def test_children_of_every_kind_are_under_the_model(preload, data):
    program = preload.build("under_model")
    with shared_model(quiet(), 1) as model:
        under = run_under(model, data, [program, data / "file", "children"], check=True)
        counted = held_back(model)
    assert sorted(under.stderr.decode().strip()) == ["0", "4", "4", "4"]
    assert under.stdout == (data / "file").read_bytes()
    assert counted.bytes_read == 3 * MIB + 4 * MIB


def test_a_process_that_is_killed_leaves_its_share_to_the_others(preload, data):
    program = preload.build("under_model")
    with shared_model(quiet(MB_per_s=0.001), 1) as model:
        under = environment_for(model, [data], dict(os.environ))
        stuck = subprocess.Popen([program, data / "file", "forever"], env=under, stdout=-1, text=True)
        assert stuck.stdout.readline() == "begins\n"
        while held_back(model).calls < 2:
            time.sleep(0.01)
        stuck.send_signal(signal.SIGKILL)
        assert stuck.wait() == -signal.SIGKILL
        stuck.stdout.close()
        text = "import os, sys; os.pread(os.open(sys.argv[1], os.O_RDONLY), 400, 0)"
        run_under(model, data, python(text, data / "file"), check=True)
        before = held_back(model)
        run_under(model, data, python(text, data / "file"), check=True)
        counted = held_back(model)
    # 400 bytes at 1000 bytes/s: had the dead process still its half, it would be twice as long.
    assert counted.model_s - before.model_s == pytest.approx(0.4 + OPERATION_S, rel=1e-6)
    assert counted.gone_callers >= 2
    assert counted.restarts == 0
    assert counted.let_go_calls == 0


def test_mpi_tasks_are_under_the_model_with_the_calls_of_their_libraries(recorder, data):
    program = compiled(recorder, "mpiio_totals", "mpicc")
    environment = recorder.environment(**ANY_TASKS)
    preloaded = environment.pop("LD_PRELOAD", None)
    with shared_model(quiet(), 1) as model:
        under = environment_for(model, [data], environment | ({"LD_PRELOAD": preloaded} if preloaded else {}))
        tasks = ["mpiexec", "-n", "2", program, data]
        subprocess.run(tasks, env=under, check=True, capture_output=True)
        counted = held_back(model)
    # Each task writes 64 KiB collectively and as much without blocking, and reads 16 KiB.
    assert counted.bytes_written == 2 * (64 << 10)
    assert counted.asynchronous_calls == 2
    assert counted.bytes_read >= 2 * (16 << 10)
    assert counted.model_s >= (counted.bytes_written + counted.bytes_read) / 1e6 / MB_PER_S
    events = ensembles.open(recorder.run).select(file=str(data / "data"))
    synced = [events.calls[call].name == "MPI_File_open" for call in events.call]
    assert events.duration[synced].min() / 1e9 >= OPERATION_S
    assert sorted(set(events.rank.tolist())) == [0, 1]


def test_a_program_goes_on_where_there_is_no_model(data, tmp_path):
    library = BUILD / "lib" / "libensio-pfs.so"
    environment = dict(os.environ) | {
        "LD_PRELOAD": str(library),
        "ENSIO_PFS": str(tmp_path / "nowhere"),
        "ENSIO_PFS_ROOT": str(data),
    }
    under = subprocess.run(["cat", data / "file"], env=environment, capture_output=True)
    assert under.stdout == (data / "file").read_bytes()
    assert under.returncode == 0
    assert b"no call is delayed, because there is no model in ENSIO_PFS=" in under.stderr


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [("nonsense 1\n", "nonsense"), ("targets many\n", "targets"), ("fault.straggler-task 1\n", "--tasks")],
)
def test_wrong_settings_are_told_in_one_sentence(settings, sentence):
    with pytest.raises(EnsioError, match=sentence), shared_model(settings, 1):
        pass


def test_the_command_tells_what_was_held_back(tmp_path, data):
    model = tmp_path / "quiet.toml"
    model.write_text(quiet().strip().replace(" ", " = "))
    command = ["ensio", "pfs", "run", "--fs", str(model), "--directory", str(data), "--"]
    cat = [*command, "sh", "-c", f"cat {data}/file > /dev/null; ensio pfs status --json; exit 7"]
    finished = subprocess.run(cat, capture_output=True, text=True)
    assert finished.returncode == 7
    assert json.loads(finished.stdout)["bytes_read"] == 4 * MIB
    assert "calls were delayed by the model" in finished.stderr
    wrong = [*command[:-1], "--fault", "slow-target", "--", "true"]
    refused = subprocess.run(wrong, capture_output=True, text=True)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "ID=STRENGTH" in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_the_recorder_stays_in_front():
    environment = environment_for(BUILD, [BUILD], {"LD_PRELOAD": str(PRELOAD)})
    assert environment["LD_PRELOAD"].split(":") == [str(PRELOAD), str(BUILD / "lib" / "libensio-pfs.so")]
