"""Ensembles of flights: how long non-blocking requests took from post to completion."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import numpy as np
import pytest
from made_runs import run_of

import ensembles as en
from ensembles.cli.main import main
from ensembles.ensemble import from_run
from ensembles.model.errors import EnsioError
from ensembles.model.events import Call, Events

CALLS = (Call("aio_write", "posix", "write"), Call("pwrite", "posix", "write"))


def some_events() -> Events:
    """Three requests of 1 and 2 MiB, one of which was never seen to complete, and a blocking write."""
    columns = {name: [0] * 4 for name in ("rank", "thread", "depth", "error", "file", "offset")}
    columns |= {"call": [0, 0, 0, 1], "start": [0, 10, 20, 9_000_000], "duration": [10, 10, 10, 5_000_000]}
    columns |= {"moved": [1 << 20, 2 << 20, 0, 1 << 20], "requested": [1 << 20, 2 << 20, 1 << 20, 1 << 20]}
    return Events(columns | {"flight": [4_000_000, 6_000_000, -1, -1], "request": [1, 2, 3, 0]}, CALLS, [""])


def test_flights_are_those_of_completed_requests() -> None:
    flights = en.Ensemble.from_events(some_events(), quantity="flight")
    np.testing.assert_allclose(flights.durations_s, [0.004, 0.006])
    assert flights.name == "aio_write, in flight"
    per_mib = en.Ensemble.from_events(some_events(), "MiB", "flight")
    np.testing.assert_allclose(per_mib.durations_s, [0.004, 0.003])
    assert en.Ensemble.from_events(some_events()).n == 4


def test_durations_of_posts_are_called_so() -> None:
    (note,) = en.Ensemble.from_events(some_events()).notes
    assert note.startswith("2 of these calls are non-blocking")
    assert "--quantity flight" in note
    assert not en.Ensemble.from_events(some_events()[3:]).notes


def test_the_calls_that_wait_for_posted_requests_are_named(overlapped: Path) -> None:
    run = en.open(overlapped)
    waits = [n for n, call in enumerate(run.calls) if call.op == "wait" and not call.waits_for_tasks]
    events = run.events[np.isin(run.events.call, waits)]
    notes = [note for note in run.ensemble(op="write").notes if "waits for such requests in" in note]
    if not len(events):
        assert notes == []
        return
    names = {run.calls[number].name for number in events.call.tolist()}
    (note,) = notes
    chosen = note.partition("--call ")[2].partition(" ")[0].split(",")
    assert set(chosen) <= names
    found = run.ensemble(call=chosen)
    assert f"({found.n:,} call" in note or len(chosen) > 1
    assert not any("waits for such requests" in each for each in run.ensemble(op="open").notes)


def test_another_quantity_is_refused() -> None:
    with pytest.raises(EnsioError, match='no quantity "wait": choose duration or flight'):
        en.Ensemble.from_events(some_events(), quantity="wait")


HELD = Path(__file__).parents[2] / "corpus" / "runs"


@pytest.fixture(params=["flights-aio", "flights-ompio"])
def overlapped(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    with tarfile.open(HELD / f"{request.param}.tar.xz") as archive:
        archive.extractall(tmp_path)
    return tmp_path / request.param


def test_flights_of_a_run_are_those_of_its_outermost_requests(overlapped: Path) -> None:
    run = en.open(overlapped)
    events = run.events[(run.events.flight >= 0) & (run.events.depth == 0)]
    writes = events[np.isin(events.call, [n for n, call in enumerate(events.calls) if call.op == "write"])]
    found = run.ensemble(op="write", quantity="flight")
    np.testing.assert_array_equal(np.sort(found.durations_s), np.sort(writes.flight * 1e-9))
    assert found.name.endswith(", in flight")
    # In flight and in posts is the time of all requests that info has, but for rounding of the clock.
    assert sum(each.flight_ns for each in run.info.flights.values()) == pytest.approx(
        events.flight.sum(), abs=1000
    )


def test_flights_of_long_runs_are_counted_in_one_pass(
    overlapped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = en.open(overlapped).ensemble(op="write", quantity="flight")
    monkeypatch.setattr(from_run, "HELD_EVENTS", 0)
    found = en.open(overlapped).ensemble(op="write", quantity="flight")
    assert found.durations_s is None
    assert found.name == expected.name
    np.testing.assert_array_equal(found.sample.counts, expected.sample.counts)
    assert any("was in flight" in note or "were in flight" in note for note in found.notes)


def test_commands_take_flights(overlapped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("modes", "tail"):
        assert main([command, str(overlapped), "--op", "write", "--quantity", "flight", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["n"] == en.open(overlapped).ensemble(op="write", quantity="flight").n


def test_modes_without_single_flights_say_what_to_record(tmp_path: Path) -> None:
    calls = [("pwrite", 0.1 * call, 0.01, 1 << 20) for call in range(9)]
    run = run_of(tmp_path / "profile", [calls], properties={"mode": "profile"})
    with pytest.raises(EnsioError, match=r"flights are of single calls .*--mode trace"):
        run.ensemble(quantity="flight")


def test_an_otf2_archive_keeps_flights_and_call_sites(overlapped: Path, tmp_path: Path) -> None:
    run = en.open(overlapped)
    assert main(["export", str(overlapped), "--to", "otf2", str(tmp_path / "archive")]) == 0
    archive = en.open(tmp_path / "archive")
    assert archive.info.flights == run.info.flights
    np.testing.assert_array_equal(
        np.sort(archive.ensemble(op="write", quantity="flight").durations_s),
        np.sort(run.ensemble(op="write", quantity="flight").durations_s),
    )
    for by_site in zip(archive.by_site(), run.by_site(), strict=True):
        one, other = ((total.number, total.count, total.bytes, total.exclusive_ns) for total in by_site)
        assert one == other
    assert [site.label for site in archive.info.sites] == [site.label for site in run.info.sites]
