"""Phases of a real run on 192 ranks, of which no barrier was recorded."""

import numpy as np
from real_tables import real_table

from ensembles import Ensemble
from ensembles.model.events import Call, Events
from ensembles.structure.phases.detect import find_phases

CALLS = (
    Call("read", "posix", "read"),
    Call("write", "posix", "write"),
    Call("MPI_File_read_at", "mpiio", "read"),
    Call("MPI_File_write_at", "mpiio", "write"),
)


def events_of(table, chosen):
    """Events of some rows, each as if it were in no other call."""
    n = np.count_nonzero(chosen)
    start = np.rint(table["start"][chosen] * 1e9).astype(np.int64)
    columns = dict.fromkeys(("thread", "depth", "error"), np.zeros(n))
    columns |= {"rank": table["rank"][chosen], "call": (table["op"] + 2 * table["layer"])[chosen]}
    columns |= {"file": table["file"][chosen] + 1, "offset": table["offset"][chosen]}
    columns |= {"requested": np.maximum(table["length"], 0)[chosen], "moved": table["length"][chosen]}
    columns |= {"start": start, "duration": np.rint(table["end"][chosen] * 1e9).astype(np.int64) - start}
    return Events(columns, CALLS, ["", *map(str, table["files"])])


def test_the_phases_of_vpic():
    table = real_table("vpic_hdf5_summit_gpfs_192")
    posix, mpiio = table["layer"] == 0, table["layer"] == 1
    events = events_of(table, mpiio)
    found = find_phases(events)
    assert (found.rule, found.count) == ("steps", 64)
    assert found.confidence > 0.98
    # 64 datasets: in each phase, every rank makes equally many large calls.
    phase = found.phase_index(events)
    large = events.requested > 1000
    for number in np.unique(phase[large]):
        calls = np.bincount(events.rank[large & (phase == number)], minlength=192)
        assert len(set(calls)) == 1

    # Writes of 54 KiB: the 32 nodes are served one after the other, and the modes are steps of that.
    small = mpiio & (table["op"] == 1) & (table["length"] == 54 << 10)
    writes = events_of(table, small)
    numbers = {"phase": found.phase_index(writes)}
    steps = Ensemble.from_events(writes.with_derived(numbers.get))
    steps.node = writes.rank // 6
    modes = steps.modes()
    assert modes.turns is not None
    assert (modes.turns.units, modes.turns.phases, modes.turns.tested, modes.turns.share) == (32, 44, 44, 1)
    assert 0.057 < modes.turns.step_s < 0.065
    assert "steps of turns, not parts of a mixture" in " ".join(str(modes).split())

    # The sixteen large ones as POSIX calls: reads and writes of 512 KiB, by turns, as the ranks take turns.
    sieved = posix & (table["length"] == 512 << 10) & (table["op"] == 1)
    events = events_of(table, sieved)
    found = find_phases(events)
    assert (found.rule, found.count, found.confidence) == ("steps", 16, 1)
    phase = found.phase_index(events)
    for number in range(1, 17):
        assert set(np.bincount(events.rank[phase == number], minlength=192)) == {10}

    # Owing nothing to any rule: the first n writes of all ranks end before any other begins at each tenth
    # only, and ten writes are one MPI-IO call of their rank.
    order = np.lexsort((events.start, events.rank))
    start, end = (column[order].reshape(192, 160) for column in (events.start, events.end))
    passed = end[:, :-1].max(axis=0) <= start[:, 1:].min(axis=0)
    np.testing.assert_array_equal(np.flatnonzero(passed) + 1, np.arange(10, 160, 10))
    outer = events_of(table, mpiio & (table["op"] == 1))
    for rank in range(0, 192, 19):
        calls = np.flatnonzero(outer.rank == rank)
        begun = start[rank][:, None]
        inside = np.sum((begun >= outer.start[calls]) & (begun < outer.end[calls]), axis=0)
        assert set(inside) == {0, 10}
        assert np.count_nonzero(inside) == 16

    # The same boundaries are found among all POSIX calls, though reads differ in number.
    whole = events_of(table, posix)
    of_whole = find_phases(whole).phase_index(whole)[sieved[posix]]
    pairs = np.unique(np.stack([phase, of_whole]), axis=1)
    assert pairs.shape[1] == len(np.unique(pairs[0])) == len(np.unique(pairs[1])) == 16
