"""A process that is killed loses no call that had returned."""

import random
import signal
import subprocess
import threading
import time

import numpy as np
import pytest

import ensembles


@pytest.mark.parametrize("seed", range(5))
def test_killed_process_keeps_every_completed_call(recorder, tmp_path, seed):
    program = recorder.build("acknowledge")
    process = subprocess.Popen(
        [program, tmp_path / "out"], env=recorder.environment(), stdout=subprocess.PIPE
    )
    said = bytearray()
    listener = threading.Thread(target=lambda: said.extend(process.stdout.read()))
    listener.start()
    time.sleep(random.Random(seed).uniform(0.02, 0.3))
    process.send_signal(signal.SIGKILL)
    listener.join()
    process.communicate()
    acknowledged = int(np.frombuffer(bytes(said[: len(said) // 8 * 8]), "u8")[-1])

    run = ensembles.open(recorder.run)
    writes = run.select(call="pwrite")
    assert acknowledged > 0
    assert acknowledged <= len(writes) <= acknowledged + 64 + 1
    assert writes.moved.sum() == 8 * len(writes)
    assert any("did not end its recording" in note for note in run.notes)


def test_an_ended_process_is_not_called_partial(recorder, tmp_path):
    recorder.execute(recorder.build("acknowledge"), tmp_path / "out", 5000, check=True)
    run = ensembles.open(recorder.run)
    assert run.notes == []
    assert len(run.select(call="pwrite")) == 5000
