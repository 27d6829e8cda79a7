"""A run as a person meets it in Python; and synthetic runs, on which other tests stand."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import pytest
from spool_writer import SpoolContent, write_spool
from synthetic_runs import synthetic_events, synthetic_run

import ensembles as en
from ensembles.answers.info import answer_info
from ensembles.model.c_layout import CONSTANTS
from ensembles.run.information import collect_information


def test_a_synthetic_run_is_read_as_it_was_made(tmp_path: Path) -> None:
    made = synthetic_run(tmp_path, tasks=7, events_per_task=2000, seed=4, tasks_per_node=3)
    run = en.open(tmp_path)
    assert (run.tasks, run.info.threads, run.notes) == (7, 7, [])
    events = run.events
    assert np.abs(events.start - made.start_ns.ravel()).max() <= 1
    assert np.abs(events.duration - made.duration_ns.ravel()).max() <= 1
    np.testing.assert_array_equal(events.offset, made.offset.ravel())
    np.testing.assert_array_equal(events.rank, np.repeat(np.arange(7), 2000))
    assert run.files == ["", "/scratch/synthetic/shared.dat"]


def test_synthetic_phases_begin_when_all_tasks_have_ended_the_one_before() -> None:
    made = synthetic_events(tasks=16, events_per_task=52, seed=2, phases=5)
    end = made.start_ns + made.duration_ns
    for first in range(1, 51, 5):
        assert made.start_ns[:, first].min() >= end[:, first - 1].max()
    assert (made.start_ns[:, 1:] >= end[:, :-1]).all()
    writes = made.offset[:, made.call == 6]
    assert len(np.unique(writes)) == writes.size


def test_the_same_seed_gives_the_same_run() -> None:
    first, again, other = (synthetic_events(4, 30, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.duration_ns, again.duration_ns)
    assert (first.duration_ns != other.duration_ns).any()


@pytest.fixture
def strange(tmp_path: Path) -> en.Run:
    """A run whose program has a name that HTML would take for a tag, and which was killed."""
    properties = {"host": "alpha", "program": "/opt/<b>app", "command": "<b>app\x1f--size\x1f1 & 2"}
    head = {
        "rank": 0,
        "state": CONSTANTS["ENSIO_STATE_RUNNING"],
        "first_realtime_ns": 1_700_000_000_123_456_789,
    }
    write_spool(tmp_path / "s.spool", SpoolContent([], properties=properties, head=head))
    return en.open(tmp_path)


def test_a_run_shows_what_ran_where_and_when(strange: en.Run) -> None:
    shown = repr(strange)
    assert "<b>app --size 1 & 2, 1 task on alpha, 2023-11-14 22:13:20 UTC" in shown
    assert "note: process 0 (rank 0) on alpha did not end" in shown


def test_a_notebook_shows_names_and_not_markup(strange: en.Run) -> None:
    shown = strange._repr_html_()
    assert "<b>app" not in shown
    assert "&lt;b&gt;app" in shown
    assert "did not end" in shown


def test_the_origin_is_told_in_utc(strange: en.Run) -> None:
    expected = datetime.datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=datetime.UTC)
    assert strange.info.start == expected
    assert strange.info.origin_unix_ns == 1_700_000_000_123_456_789


def test_a_chunk_of_no_events_makes_no_sense(strange: en.Run) -> None:
    with pytest.raises(ValueError, match="at least one event"):
        strange.chunks(0)


def test_the_package_offers_its_names_and_no_others() -> None:
    assert {"open", "Run", "Events", "EnsioError", "OPS"} <= set(dir(en))
    with pytest.raises(AttributeError, match="no attribute 'opn'"):
        en.opn  # noqa: B018


def test_a_run_that_has_no_spools_is_collected_already(tmp_path: Path, capsys) -> None:
    from ensembles.cli.main import main

    synthetic_run(tmp_path / "run", 2, 40)
    assert main(["collect", str(tmp_path / "run")]) == 0
    for spool in (tmp_path / "run").glob("*"):
        if spool.name != "trace.h5":
            spool.unlink()
    stored = (tmp_path / "run" / "trace.h5").read_bytes()
    capsys.readouterr()
    assert main(["collect", str(tmp_path / "run")]) == 0
    assert "collected already, 80 calls in" in capsys.readouterr().err
    assert (tmp_path / "run" / "trace.h5").read_bytes() == stored
    assert main(["collect", str(tmp_path / "run"), "-o", str(tmp_path / "other.h5")]) == 2
    assert "is collected already, and has no spools: copy" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main(["collect", str(tmp_path / "empty")]) == 2
    assert "is not a run directory" in capsys.readouterr().err


STRACE = """\
7 1700000000.000000 openat(AT_FDCWD, "/data/f", O_RDWR) = 3 <0.000010>
7 1700000000.100000 write(3, "x", 1) = 1 <0.000010>
7 1700000000.200000 write(3, "x", 1) = 1 <0.000010>
7 1700000000.300000 close(3) = 0 <0.000010>
7 1700000000.400000 +++ exited with 0 +++
"""


@pytest.mark.parametrize(
    ("change", "name", "note"),
    [
        (("", ""), "", ""),
        (("1 <0.000010>", "1 <3.000010>"), "io_time_s", "6.00 s in I/O calls of 1 thread within 3.20 s"),
        (("7 1700000000.3", "7 1713000000.3"), "span_s", "4 calls in 150 days"),
        (('"x", 1) = 1', '"x"..., 99000000000) = 99000000000'), "bytes", "184 GiB in 2 calls of write"),
    ],
)
def test_what_is_implausible_is_noted_and_no_headline(
    tmp_path: Path, change: tuple[str, str], name: str, note: str
) -> None:
    """One thread cannot spend 6 s in calls within 3.2 s, and few programs last for months."""
    (tmp_path / "log").write_text(STRACE.replace(*change))
    notes = [each for each in collect_information(en.open(tmp_path / "log"))["notes"] if "impl" in each]
    assert len(notes) == bool(note)
    assert all(note in each for each in notes)
    assert [each for each in en.open(tmp_path / "log").notes if "impl" in each] == notes
    run = en.open(tmp_path / "log")
    information, found = collect_information(run), en.diagnose(run)
    assert [*information.get("implausible", {})] == [name] * bool(name)
    assert (information["time_in_io"]["mean_s"] is None) == bool(name)
    assert (information["transfers"]["write"]["active_s"] is None) == bool(name)
    assert (found.account is None, found.findings == ()) == (bool(name), bool(name))
    assert (": implausible" in str(answer_info(run))) == bool(name)
