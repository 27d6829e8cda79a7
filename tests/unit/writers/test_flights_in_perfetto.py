"""What a trace for Perfetto has of non-blocking requests, call sites and the kernel's counters."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

import ensembles as en
from ensembles.cli.main import main

HELD = Path(__file__).parents[2] / "corpus" / "runs"


@pytest.fixture
def exported(tmp_path: Path) -> tuple[en.Run, list[dict]]:
    with tarfile.open(HELD / "flights-ompio.tar.xz") as archive:
        archive.extractall(tmp_path)
    path = tmp_path / "flights-ompio"
    assert main(["export", str(path), "--to", "perfetto", str(tmp_path / "out.json")]) == 0
    return en.open(path), json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["traceEvents"]


def test_a_flight_begins_with_its_post_and_ends_at_its_completion(exported) -> None:
    run, entries = exported
    begun = {(entry["cat"], entry["id"]): entry for entry in entries if entry["ph"] == "b"}
    ended = {(entry["cat"], entry["id"]): entry for entry in entries if entry["ph"] == "e"}
    assert set(begun) == set(ended)
    flights = sorted(
        (entry["pid"] - 1, round(1e3 * entry["ts"]), round(1e3 * ended[key]["ts"]))
        for key, entry in begun.items()
        if entry["cat"] == "flight"
    )
    events = run.events[run.events.flight >= 0]
    expected = zip(events.rank, events.start, events.start + events.flight, strict=True)
    assert flights == sorted(tuple(map(int, row)) for row in expected)
    named = {entry["name"] for entry in begun.values() if entry["cat"] == "flight"}
    assert "MPI_File_iwrite_at in flight" in named
    posts = {(e["pid"], e["ts"]) for e in entries if e["ph"] == "X"}
    assert {(e["pid"], e["ts"]) for e in begun.values() if e["cat"] == "flight"} <= posts


def test_a_request_and_its_wait_have_one_number_and_a_site(exported) -> None:
    _, entries = exported
    waits = [entry for entry in entries if entry["ph"] == "X" and entry["name"] == "MPI_Wait"]
    posts = [entry for entry in entries if entry["ph"] == "X" and "MPI_File_i" in entry["name"]]
    assert {(e["pid"], e["args"]["request"]) for e in waits} == {
        (e["pid"], e["args"]["request"]) for e in posts
    }
    assert {entry["args"]["site"] for entry in posts} == {"overlap+0x1321", "overlap+0x1296"}


def test_samples_are_counters(exported) -> None:
    run, entries = exported
    table = run.surroundings().known("dirty_bytes")
    points = [entry for entry in entries if entry["ph"] == "C" and entry["name"] == "dirty pages, all nodes"]
    assert [round(1e3 * point["ts"]) for point in points] == table.time.tolist()
    assert [point["args"]["bytes"] for point in points] == table.dirty_bytes.tolist()
