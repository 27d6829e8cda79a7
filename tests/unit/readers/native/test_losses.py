"""Why calls are not among the events: from spools, by way of trace.h5, to what a user is shown."""

from __future__ import annotations

import json
import os
from pathlib import Path

import h5py
import pytest
from made_spools import made_events, spool

import ensembles as en
from ensembles.cli.main import main
from ensembles.model.c_layout import CONSTANTS, LOSSES
from ensembles.model.run_info import WHY_DROPPED
from ensembles.readers.native.spool import losses_in_job_file
from ensembles.run.collect import collect

BUDGET, FULL, FILE_SIZE = (CONSTANTS[f"ENSIO_DROPPED_{name}"] for name in ("BUDGET", "FULL", "FILE_SIZE"))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two processes: one dropped for two reasons and did not note one event's, the other knows of none."""
    folder = tmp_path / "run"
    losses = {f"dropped_for{BUDGET}": 30, f"dropped_for{FULL}": 5, "calls_on_other_paths": 12}
    spool(folder / "a.spool", [made_events(50)], rank=0, tasks=2, dropped_events=36, losses=losses)
    spool(folder / "b.spool", [made_events(50, 1)], rank=1, tasks=2, dropped_events=4)
    return folder


REASONS = {"budget": 30, "file_system_full": 5, "unknown": 5}


def test_reasons_are_summed_and_what_is_not_known_is_said(run: Path) -> None:
    opened = en.open(run)
    assert opened.info.dropped_events == 40
    assert opened.info.dropped_by_reason == REASONS
    assert list(opened.info.dropped_by_reason) == list(REASONS)  # the commonest first, those not known last
    assert opened.info.calls_on_other_paths == 12


def test_every_reason_of_the_recorder_has_words() -> None:
    numbers = {value for name, value in CONSTANTS.items() if name.startswith("ENSIO_DROPPED_") and value != 0}
    assert len(numbers) == len(WHY_DROPPED) - 1
    assert max(numbers) < CONSTANTS["ENSIO_DROP_REASONS"]


def test_a_run_that_lost_nothing_says_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spool(tmp_path / "run" / "a.spool", [made_events(5)], rank=0)
    assert main(["info", str(tmp_path / "run"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["dropped_events_by_reason"], told["calls_on_other_paths"], told["notes"]) == ({}, 0, [])


def test_json_has_them_by_name(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(run), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["dropped_events_by_reason"] == REASONS
    assert told["calls_on_other_paths"] == 12


def test_the_text_has_a_line_for_each_and_the_note_names_them(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["info", str(run)]) == 0
    text = capsys.readouterr().out
    words = " ".join(text.split())
    for reason, count in REASONS.items():
        assert f" {count} {WHY_DROPPED[reason]} " in words
    assert f"{WHY_DROPPED['budget']} (30)" in words.replace(" ! ", " ")
    assert "12 calls name files beyond the number of paths that a process keeps" in words


def test_trace_files_keep_them(run: Path, tmp_path: Path) -> None:
    before = en.open(run)
    collect(str(run), str(tmp_path / "out.h5"))
    stored = en.open(tmp_path / "out.h5")
    assert stored.info.dropped_by_reason == before.info.dropped_by_reason
    assert list(stored.info.dropped_by_reason) == list(REASONS)
    assert stored.info.calls_on_other_paths == 12
    assert stored.notes == before.notes


def test_a_trace_file_that_was_written_before_says_nothing_of_them(run: Path, tmp_path: Path) -> None:
    collect(str(run), str(tmp_path / "out.h5"))
    with h5py.File(tmp_path / "out.h5", "r+", libver=("v110", "v110")) as file:
        del file["losses"]
    stored = en.open(tmp_path / "out.h5")
    assert (stored.info.dropped_events, stored.info.dropped_by_reason, stored.info.calls_on_other_paths) == (
        40,
        {},
        0,
    )


def test_damaged_numbers_are_not_believed(run: Path) -> None:
    position = CONSTANTS["ENSIO_SPOOL_LOSSES_BYTES"]
    with open(run / "a.spool", "r+b") as file:
        os.pwrite(file.fileno(), b"\xff" * LOSSES.size, position)
    opened = en.open(run)
    assert (opened.info.dropped_by_reason, opened.info.calls_on_other_paths) == ({"unknown": 40}, 0)


@pytest.mark.parametrize(
    ("text", "dropped_for", "other"),
    [
        (b"12 0 30 0 5", (0, 30, 0, 5), 12),
        (b"12 " + b"1 " * 50, (1,) * CONSTANTS["ENSIO_DROP_REASONS"], 12),  # of a later recorder
        (b"", (), 0),
        (b"12 -3", (), 0),
        (b"12 x", (), 0),
        (b"12 " + b"9" * 5000, (), 0),
        (b"12 9999999999999999999", (), 0),
    ],
)
def test_a_job_file_tells_them_in_a_line(text: bytes, dropped_for: tuple[int, ...], other: int) -> None:
    losses = losses_in_job_file({b"losses": text})
    assert (losses.dropped_for, losses.calls_on_other_paths) == (dropped_for, other)
