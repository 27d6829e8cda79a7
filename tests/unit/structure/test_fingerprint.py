"""Fingerprints: what changes them, what does not, and what is said of two that differ."""

import json

import numpy as np
import pytest
from builders import make_events
from synthetic_runs import synthetic_run

import ensembles as en
from ensembles.cli.main import main
from ensembles.model.events import Call
from ensembles.passes.summary import ignoring_run
from ensembles.structure.fingerprint import WHOLE, Fingerprint, differences


@pytest.fixture(scope="module")
def run_directory(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fingerprint")
    synthetic_run(folder, 6, 62, seed=3, phases=4)
    return folder


CALLS = (Call("open", "posix", "open"), Call("pwrite", "posix", "write"), Call("pread", "posix", "read"))
PATHS = ("", "a", "b", "c")


def rows(**changes):
    """Two tasks, each with an open and three writes of 10 bytes on the same file."""
    number = np.tile(np.arange(4), 2)
    columns = {
        "rank": np.repeat([0, 1], 4),
        "start": 100 * number,
        "duration": np.full(8, 50),
        "call": np.minimum(number, 1),
        "file": np.ones(8, int),
        "offset": np.where(number == 0, -1, np.repeat([0, 30], 4) + 10 * (number - 1)),
        "requested": np.where(number == 0, 0, 10),
        "moved": np.where(number == 0, 0, 10),
    }
    return {**columns, **changes}


def of(columns, calls=CALLS):
    found = Fingerprint()
    found.add(make_events(columns, calls, PATHS, order_by="end"))
    return found.to_json()


def test_times_names_of_files_and_numbers_of_calls_do_not_matter():
    plain = rows()
    slower = rows(start=plain["start"] * 7 + 3, duration=np.arange(1, 9) * 90)
    elsewhere = rows(file=np.full(8, 3))
    renumbered = of(rows(call=np.array([2, 1, 0])[plain["call"]]), CALLS[::-1])
    for other in (of(slower), of(elsewhere), renumbered):
        assert differences(of(plain), other) == []


def test_an_inner_call_does_not_count():
    plain = rows()
    doubled = {name: np.repeat(values, 2) for name, values in plain.items()}
    doubled["depth"] = np.tile([0, 1], 8)
    assert differences(of(plain), of(doubled)) == []


def test_parts_merge_to_the_whole():
    events = make_events(rows(), CALLS, PATHS, order_by="end")
    parts = Fingerprint(), Fingerprint()
    parts[0].add(events[events.rank == 0])
    parts[1].add(events[events.rank == 1])
    parts[0].merge(parts[1])
    assert parts[0].to_json() == of(rows())


def test_two_files_are_not_one_shared_file():
    own = rows(file=np.repeat([1, 2], 4))
    assert differences(of(rows()), of(own)) == ["files: 1 used by 2, and 2 used by 1"]


def test_another_order_of_the_same_calls_is_said():
    plain = rows()
    swapped = plain["offset"].copy()
    swapped[[1, 2]] = swapped[[2, 1]]
    assert differences(of(plain), of(rows(offset=swapped))) == [
        "the whole run: the same calls in another order"
    ]


def test_ranks_that_exchange_their_parts_differ():
    plain = rows()
    exchanged = np.concatenate([plain["offset"][4:], plain["offset"][:4]])
    assert differences(of(plain), of(rows(offset=exchanged))) == [
        "the whole run: as many calls and bytes, but at other offsets or on other files"
    ]


def test_other_sizes_of_as_many_calls_are_said():
    plain = rows()
    offset, size = plain["offset"].copy(), plain["requested"].copy()
    size[1:4], offset[1:4] = [5, 15, 10], [0, 5, 20]
    assert differences(of(plain), of(rows(offset=offset, requested=size))) == [
        "the whole run: the same bytes, but in calls of other sizes or on files without data"
    ]


def test_counts_and_bytes_are_named():
    fewer = {name: values[:-1] for name, values in rows().items()}
    assert differences(of(rows()), of(fewer)) == [
        "the whole run: 6 and 5 calls of pwrite",
        "the whole run: 60 and 50 bytes written",
    ]


def test_transfers_at_unknown_offsets_count_by_their_bytes():
    unknown = rows(offset=np.full(8, -1))
    larger = rows(
        offset=np.full(8, -1),
        requested=np.where(rows()["requested"] > 0, 10, 0) + np.r_[0, 1, np.zeros(6, int)],
    )
    whole = of(unknown)["whole"]
    assert whole["digests"]["bytes"] != of(larger)["whole"]["digests"]["bytes"]
    assert whole["digests"]["bytes"] != of(rows())["whole"]["digests"]["bytes"]


def test_phases_of_a_run_have_entries(run_directory):
    run = en.open(run_directory)
    found = run.summarize(lambda _: Fingerprint(run.reading.find_phases()))
    alone = run.summarize(ignoring_run(Fingerprint))
    assert found.entries[WHOLE] == alone.entries[WHOLE]
    in_phases = [entry for number, entry in found.entries.items() if number != WHOLE]
    assert sum(entry.calls.total() for entry in in_phases) == found.entries[WHOLE].calls.total()


def test_a_fingerprint_in_a_file_is_compared(run_directory, tmp_path, capsys):
    assert main(["fingerprint", str(run_directory), "--json"]) == 0
    kept = tmp_path / "kept.json"
    kept.write_text(capsys.readouterr().out)
    assert main(["fingerprint", str(run_directory), "--against", str(kept)]) == 0
    assert capsys.readouterr().out.startswith("Equal: ")
    changed = json.loads(kept.read_text())
    changed["whole"]["written_bytes"] += 1
    kept.write_text(json.dumps(changed))
    assert main(["fingerprint", str(run_directory), "--against", str(kept), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert not told["equal"]
    assert len(told["differences"]) == 1


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"format": "ensio fingerprint 9"}'])
def test_a_file_that_is_no_fingerprint_is_refused(run_directory, tmp_path, capsys, text):
    other = tmp_path / "other.json"
    other.write_text(text)
    assert main(["fingerprint", str(run_directory), "--against", str(other)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "other.json" in said


def test_calls_without_a_file_count_on_request():
    """Messages between calls on the files: their order counts, and they are on no file."""
    calls = [*CALLS, Call("MPI_Isend", "mpimsg", "wait")]
    plain = rows()
    sent = np.tile([0, 0, 1, 0], 2) > 0
    mixed = rows(
        call=np.where(sent, len(CALLS), plain["call"]),
        file=np.where(sent, 0, plain["file"]),
        offset=np.where(sent, -1, plain["offset"]),
    )

    def found(columns, without_file):
        made = Fingerprint(without_file=without_file)
        made.add(make_events(columns, calls, PATHS, order_by="end"))
        return made.to_json()

    assert found(mixed, True)["whole"]["calls"]["MPI_Isend"] == 2
    assert "MPI_Isend" not in found(mixed, False)["whole"]["calls"]
    assert found(mixed, True)["files"] == found(mixed, False)["files"] == of(plain)["files"]
    later = {**mixed, "start": np.where(sent, mixed["start"] + 110, mixed["start"])}
    assert differences(found(mixed, True), found(later, True)) == [
        "the whole run: the same calls in another order"
    ]
    assert differences(found(mixed, False), found(later, False)) == []
