"""The recorder states the step of its clock, and ensembles use it instead of an estimate."""

import numpy as np
import pytest
from spool_writer import SpoolContent, write_spool

import ensembles
from ensembles.model.c_layout import CONSTANTS, EVENT
from ensembles.model.events import Call
from ensembles.run.collect import collect

TICKS_PER_NS = 2.1
STEP_TICKS = 21
"""As a time-stamp counter that advances by 21 at 100 MHz: every 10 ns."""


def spool(folder, clock="TSC", properties=None, ticks=None):
    """A run of one task whose calls take so many ticks."""
    folder.mkdir()
    ticks = np.full(50, 2100) if ticks is None else ticks
    events = np.zeros(len(ticks), EVENT.dtype)
    events["call"], events["file"], events["requested"], events["moved"] = 2, 1, 4096, 4096
    events["start"] = 1000 + 10_000_000 * np.arange(len(ticks))
    events["duration"] = ticks
    last = int(events["start"][-1] + 10_000_000)
    head = {
        "clock": CONSTANTS[f"ENSIO_CLOCK_{clock}"],
        "rank": 0,
        "tasks": 1,
        "last_ticks": last,
        "last_monotonic_ns": round(last / TICKS_PER_NS),
        "first_realtime_ns": 10**18,
        "last_realtime_ns": 10**18 + round(last / TICKS_PER_NS),
    }
    told = {"host": "node0", "mode": "trace", **(properties or {})}
    content = SpoolContent([events], {1: "/a"}, {2: Call("pwrite", "posix", "write")}, told, head)
    write_spool(folder / "0.spool", content)
    return folder


@pytest.mark.parametrize("through", ["spools", "trace.h5"])
def test_the_recorded_step_is_that_of_the_run_its_events_and_its_ensembles(tmp_path, through):
    path = spool(tmp_path / "run", properties={"clock_step_ticks": str(STEP_TICKS)})
    run = ensembles.open(path if through == "spools" else collect(path, tmp_path / "trace.h5")[0])
    assert run.info.clock_step_s == pytest.approx(1e-8, rel=1e-6)
    writes = run.select(op="write")
    assert writes[writes.duration > 0].clock_step_s == run.info.clock_step_s
    assert writes.ensemble().sample.resolution_s == run.ensemble(op="write").sample.resolution_s
    assert writes.ensemble().sample.resolution_s == pytest.approx(1e-8, rel=1e-6)
    # 4 KiB a call: a step of a call is 256 steps of a MiB.
    assert run.ensemble("MiB", op="write").sample.resolution_s == pytest.approx(256e-8, rel=1e-6)


def test_ticks_of_a_recorder_that_did_not_state_a_step_are_found(tmp_path):
    rng = np.random.default_rng(3)
    true_ticks = TICKS_PER_NS * rng.lognormal(np.log(900), 0.08, 20_000)
    ticks = STEP_TICKS * np.floor(true_ticks / STEP_TICKS).astype(np.int64)
    run = ensembles.open(spool(tmp_path / "run", ticks=ticks))
    assert run.info.clock_step_s is None
    assert len(run.ensemble(op="write").modes()) == 1


@pytest.mark.parametrize("told", ["", "x", "0", "99999999"])
def test_a_step_that_makes_no_sense_is_not_believed(tmp_path, told):
    run = ensembles.open(spool(tmp_path / "run", properties={"clock_step_ticks": told}))
    assert run.info.clock_step_s is None


def test_the_system_s_clock_is_estimated(tmp_path):
    """It shows whole nanoseconds, rounded from a counter that the recorder does not know."""
    ticks = 1000 * np.random.default_rng(1).integers(3, 9, 200)
    run = ensembles.open(spool(tmp_path / "run", "MONOTONIC", ticks=ticks))
    assert run.info.clock_step_s is None
    assert run.ensemble(op="write").sample.resolution_s == pytest.approx(1e-6)


def test_service_quanta_by_a_fine_clock_are_no_step(tmp_path):
    """Equal quanta of 91.2 ms, to the ns: only the recorder knows that this is not its clock."""
    ticks = np.rint(91.2e6 * TICKS_PER_NS * np.random.default_rng(1).integers(1, 9, 200)).astype(np.int64)
    run = ensembles.open(spool(tmp_path / "run", properties={"clock_step_ticks": "1"}, ticks=ticks))
    assert run.ensemble(op="write").sample.resolution_s == 0.0
    assert run.ensemble(op="write").modes().resolution_s == 0.0


def test_ticks_of_a_coarse_counter_are_no_modes(tmp_path):
    """A log-normal of 900 ns by a step of 10.017 ns."""
    rng = np.random.default_rng(3)
    true_ticks = TICKS_PER_NS * rng.lognormal(np.log(900), 0.08, 20_000)
    ticks = STEP_TICKS * np.floor(true_ticks / STEP_TICKS).astype(np.int64)
    run = ensembles.open(spool(tmp_path / "run", properties={"clock_step_ticks": "21"}, ticks=ticks))
    assert len(run.ensemble(op="write").modes()) == 1
