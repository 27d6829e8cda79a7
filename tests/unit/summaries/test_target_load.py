"""Load of storage targets: bytes, calls and time, against sums over calls and stripes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from arrays_of import arrays_of
from made_darshan_logs import MadeLog, Segment

import ensembles as en
from ensembles.api.run import Run
from ensembles.model.layouts import Layouts
from ensembles.summaries.target_load import AMOUNTS, ROWS, TargetLoad
from ensembles.viz.pictures.targets import load_of, load_request

MIB = 1 << 20
STRIPES = {11: (MIB, [7, 3, 9]), 12: (MIB // 2, [3])}


def made(folder: Path) -> tuple[Run, list[tuple[int, int, bool, Segment]]]:
    """A log of two files with layouts and one without, and its segments: file, rank, whether written."""
    rng = np.random.default_rng(8)
    log = MadeLog(tasks=3, names={11: "/scratch/a", 12: "/scratch/b", 13: "/tmp/c"})
    every = []
    for identity in (11, 12, 13):
        for rank in range(3):
            parts = []
            for number in range(12):
                start = float(rng.uniform(0, 40))
                offset, length = (int(each) for each in rng.integers(0, 5 * MIB, 2))
                parts.append(Segment(offset, length, start, start + float(rng.uniform(0, 3))))
                every.append((identity, rank, number < 7, parts[-1]))
            log.trace("DXT_POSIX", identity, rank, parts[:7], parts[7:])
            log.count("POSIX", identity, rank, WRITES=7, READS=5)
    for identity, (size, targets) in STRIPES.items():
        log.stripe(identity, size, targets)
    path = folder / "made.darshan"
    path.write_bytes(log.bytes())
    return en.open(path), every


def by_stripes(identity: int, segment: Segment) -> dict[int, int]:
    found: dict[int, int] = {}
    if identity in STRIPES:
        size, targets = STRIPES[identity]
        offset, end = segment.offset, segment.offset + segment.length
        while offset < end:
            until = min(end, (offset // size + 1) * size)
            target = targets[offset // size % len(targets)]
            found[target] = found.get(target, 0) + until - offset
            offset = until
    return found


def test_amounts_of_a_darshan_log_are_those_of_its_segments(tmp_path: Path) -> None:
    run, every = made(tmp_path)
    load = load_of(run)
    assert load is not None
    assert load.targets.tolist() == [3, 7, 9]
    place = {3: 0, 7: 1, 9: 2}
    expected = {name: np.zeros(3) for name in AMOUNTS}
    for identity, _, is_write, segment in every:
        for target, count in by_stripes(identity, segment).items():
            expected["write_bytes" if is_write else "read_bytes"][place[target]] += count
            expected["time_ns"][place[target]] += (segment.end_s - segment.start_s) * 1e9
            expected["calls"][place[target]] += 1
    for name in AMOUNTS:
        np.testing.assert_allclose(load.of_targets(name), expected[name], rtol=1e-6)
        # Over time, each amount is the same to the last unit.
        assert load.over_time(name).sum(axis=1).tolist() == load.of_targets(name).tolist()
    assert load.unknown_bytes == sum(each.length for identity, _, _, each in every if identity == 13)
    assert load.known_bytes == int(expected["read_bytes"].sum() + expected["write_bytes"].sum())


def test_cells_hold_the_part_of_a_call_inside_of_them(tmp_path: Path) -> None:
    run, every = made(tmp_path)
    load = load_of(run)
    assert load is not None
    edges_s = load.edges_ns * 1e-9
    spent_s = np.zeros(len(edges_s) - 1)
    for identity, _, _, segment in every:
        if 3 in by_stripes(identity, segment):
            begin = np.maximum(edges_s[:-1], segment.start_s)
            spent_s += np.maximum(np.minimum(edges_s[1:], segment.end_s) - begin, 0)
    np.testing.assert_allclose(load.over_time("time_ns")[0] * 1e-9, spent_s, atol=1e-6)


def test_parts_merge_and_workers_give_the_same(tmp_path: Path) -> None:
    run, _ = made(tmp_path)
    whole = load_of(run)
    assert whole is not None
    request = load_request(run)
    assert request is not None
    parts = [request.make(run) for _ in range(2)]
    events = run.events
    for number, part in enumerate(parts):
        part.add(events[number::2])
    parts[0].merge(parts[1])
    shared = load_of(en.open(tmp_path / "made.darshan", workers=2))
    selected = load_of(events, layouts=run)
    for other in (parts[0], shared, selected):
        assert other is not None
        assert {name: each.tolist() for name, each in arrays_of(other).items()} == {
            name: each.tolist() for name, each in arrays_of(whole).items()
        }
        assert (other.known_bytes, other.unknown_bytes) == (whole.known_bytes, whole.unknown_bytes)


def test_a_call_counts_once_at_a_target_that_it_reaches_by_several_stripes(tmp_path: Path) -> None:
    log = MadeLog(tasks=1, names={11: "/scratch/a"})
    log.trace("DXT_POSIX", 11, 0, [Segment(0, 8 * MIB, 1.0, 3.0)])
    log.stripe(11, MIB, [5, 6, 5, 6])  # two objects on each target
    path = tmp_path / "made.darshan"
    path.write_bytes(log.bytes())
    load = load_of(en.open(path))
    assert load is not None
    assert load.of_targets("write_bytes").tolist() == [4 * MIB, 4 * MIB]
    assert load.of_targets("calls").tolist() == [1, 1]
    assert load.of_targets("time_ns").tolist() == [2_000_000_000] * 2


def test_many_targets_share_rows() -> None:
    from ensembles.model.lustre import Component, Striping

    count = 2 * ROWS + 10
    layouts = Layouts({1: Striping((Component(0, None, 1, count, tuple(range(count))),))})
    load = TargetLoad(layouts, "posix")
    events = en.Events(
        {
            "rank": [0],
            "thread": [0],
            "call": [0],
            "depth": [0],
            "file": [1],
            "offset": [0],
            "requested": [count],
            "moved": [count],
            "error": [0],
            "start": [0],
            "duration": [10],
        },
        [en.Call("pwrite", "posix", "write")],
        ["", "/scratch/data"],
    )
    load.add(events)
    assert (load.rows, load.targets_per_row) == (-(-count // 3), 3)
    assert load.over_time("write_bytes").sum(axis=1).tolist() == [3] * (count // 3) + [count % 3][: count % 3]
    assert load.of_targets("calls").tolist() == [1] * count


@pytest.mark.parametrize("layer", ["mpiio", "hdf5"])
def test_layers_with_gaps_between_their_bytes_are_refused(tmp_path: Path, layer: str) -> None:
    run, _ = made(tmp_path)
    assert load_request(run, most_pieces=100) is None
    with pytest.raises(ValueError, match="targets follow from calls of posix and stdio, and not of"):
        load_of(run, layer)


def test_the_load_is_kept_for_later_commands(tmp_path: Path) -> None:
    from ensembles.passes.kept import key_of, restore, to_bytes

    run, _ = made(tmp_path)
    request = load_request(run)
    assert request is not None
    assert key_of(request) is not None
    load = load_of(run)
    again = request.make(run)
    restore(again, to_bytes(load, run), run)
    assert {name: each.tolist() for name, each in arrays_of(again).items()} == {
        name: each.tolist() for name, each in arrays_of(load).items()
    }
