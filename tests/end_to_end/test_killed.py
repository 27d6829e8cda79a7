"""A process that is killed loses no call that had returned."""

import os
import random
import signal
import subprocess
import threading
import time

import numpy as np
import pytest
from spool_writer import HEAD_BYTES

import ensembles
from ensembles.model.c_layout import CONSTANTS, EVENT
from ensembles.model.units import count_text
from ensembles.readers.native.spool import TEXT_BYTES, read_spool

BLOCK = 4096
PART_EVENTS = CONSTANTS["ENSIO_PART_EVENTS"]
SEEDS = [pytest.param(seed, marks=pytest.mark.long if seed >= 5 else ()) for seed in range(100)]


def killed_after(recorder, tmp_path, seed, **environment):
    """Kill a program at a random moment; how many calls it had said to have completed."""
    program = recorder.build("acknowledge")
    process = subprocess.Popen(
        [program, tmp_path / "out"], env=recorder.environment(**environment), stdout=subprocess.PIPE
    )
    said = bytearray(process.stdout.read(8))
    listener = threading.Thread(target=lambda: said.extend(process.stdout.read()))
    listener.start()
    time.sleep(random.Random(seed).uniform(0.02, 0.3))
    process.send_signal(signal.SIGKILL)
    listener.join()
    process.communicate()
    return int(np.frombuffer(bytes(said[: len(said) // 8 * 8]), "u8")[-1])


@pytest.mark.parametrize("seed", SEEDS)
def test_killed_process_keeps_every_completed_call(recorder, tmp_path, seed):
    acknowledged = killed_after(recorder, tmp_path, seed)
    run = ensembles.open(recorder.run)
    writes = run.select(call="pwrite")
    assert acknowledged > 0
    assert acknowledged <= len(writes) <= acknowledged + 64 + 1
    assert writes.moved.sum() == 8 * len(writes)
    assert any("did not end its recording" in note for note in run.notes)


def ends_of_slots(path):
    """Return where the last calls of windows end that have coded calls behind them."""
    for window in read_spool(str(path)).windows:
        if window.is_coded:
            slots = np.fromfile(path, EVENT.dtype, PART_EVENTS, offset=window.position)
            yield window.position + EVENT.size * (int(np.flatnonzero(slots["call"]).max(initial=-1)) + 1)


def test_a_block_of_zeros_in_its_spool_costs_no_call_in_silence(recorder, tmp_path):
    killed_after(recorder, tmp_path, seed=3)
    (path,) = recorder.run.glob("*.spool")
    content, whole = path.read_bytes(), ensembles.open(path)
    blocks = [at for at in range(0, len(content), BLOCK) if any(content[at : at + BLOCK])]
    # How many calls those at the end of a window held is not known.
    blocks = [at for at in blocks if at >= HEAD_BYTES and any(content[at + BLOCK : at + 2 * BLOCK])]
    blocks = [
        at for at in blocks if not any(at - BLOCK < end < at + 2 * BLOCK for end in ends_of_slots(path))
    ]
    some = random.Random(1).sample(blocks, min(len(blocks), 40))
    costly = 0
    for at in sorted({*blocks[:8], *some}):
        path.write_bytes(content[:at] + bytes(BLOCK) + content[at + BLOCK :])
        run = ensembles.open(path)
        missing = len(whole.events) - len(run.events)
        said = f"{path.name}: {count_text(missing, 'event')} left out as damaged or incomplete"
        assert missing == 0 or said in run.notes or any("no valid window" in note for note in run.notes)
        np.testing.assert_array_less(-1, run.events.start)
        costly += missing > 0
    assert costly > 0


def test_a_changed_bit_of_its_texts_is_said(recorder, tmp_path):
    killed_after(recorder, tmp_path, seed=2)
    (path,) = recorder.run.glob("*.spool")
    content, sound = path.read_bytes(), read_spool(str(path))
    dice = random.Random(2)
    assert (sound.files, sound.notes) == ([(1, os.fsencode(tmp_path / "out"))], [])
    for _ in range(100):
        changed = bytearray(content)
        changed[TEXT_BYTES + dice.randrange(sound.head.text_bytes)] ^= 1 << dice.randrange(8)
        path.write_bytes(changed)
        found = read_spool(str(path))
        names = [(spool.files, spool.properties, spool.calls_text, spool.facts) for spool in (found, sound)]
        assert found.notes or names[0] == names[1]


def test_an_ended_process_is_not_called_partial(recorder, tmp_path):
    recorder.execute(recorder.build("acknowledge"), tmp_path / "out", 5000, check=True)
    run = ensembles.open(recorder.run)
    assert run.notes == []
    assert len(run.select(call="pwrite")) == 5000


@pytest.mark.parametrize("mode", ["profile", "tail"])
@pytest.mark.parametrize("seed", SEEDS[:3] + SEEDS[5:30])
def test_killed_process_keeps_every_completed_call_in_its_summary(recorder, tmp_path, seed, mode):
    acknowledged = killed_after(recorder, tmp_path, seed, ENSIO_MODE=mode)
    summary = ensembles.open(recorder.run).summary
    writes = np.flatnonzero([summary.calls[number].name == "pwrite" for number in summary.cells["call"]])
    count = int(summary.cells["count"][writes].sum())
    assert acknowledged <= count <= acknowledged + 64 + 1
    assert summary.count == count + 1  # and one open
    # Of the call that was being added when the kill came, a part may be counted twice.
    assert 0 <= 8 * count - int(summary.cells["moved"][writes].sum()) <= 8
    assert 0 <= summary.count - int(summary.histogram[2].sum()) <= 1
