"""TAPIOCA's model: descriptions, rounds and flushes against cases computed by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.tapioca.described import HACC_BYTES, Writes, hacc, side_by_side
from testbed.tapioca.rounds import schedule
from testbed.tapioca.storage import Storage, flushes


def test_hacc_has_38_bytes_a_particle_in_9_variables():
    assert sum(HACC_BYTES) == 38
    for layout in ("aos", "soa"):
        writes = hacc(3, 100, layout)
        assert writes.calls == 9
        assert writes.bytes == 3 * 100 * 38
        # Both layouts fill the file without a hole.
        order = np.argsort(writes.offset)
        ends = (writes.offset + writes.size)[order]
        assert writes.offset[order].tolist() == [0, *ends[:-1].tolist()]


def test_layouts_of_hacc_are_where_the_paper_has_them():
    # 2 tasks, 10 particles. The mask is the ninth variable: 36 bytes are before it.
    # SoA: the mask of task 1 is behind 36 x 10 x 2 bytes of other variables and 20 bytes of task 0: 740.
    # AoS: behind the 380 bytes of task 0, and 360 bytes of the other variables of task 1: 740 as well. The
    # first variable of task 1 is at 40 and at 380.
    soa, aos = hacc(2, 10, "soa"), hacc(2, 10, "aos")
    assert (soa.offset[17], soa.size[17]) == (740, 20)
    assert (aos.offset[17], aos.size[17]) == (740, 20)
    assert (soa.offset[1], aos.offset[1]) == (40, 380)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"task": [0, 1], "offset": [0, 5], "size": [6, 6]}, "share a byte"),
        ({"task": [0], "offset": [-1], "size": [6]}, "negative"),
        ({"task": [2], "offset": [0], "size": [6]}, "task 2 of 2"),
        ({"task": [0, 1], "offset": [0], "size": [6]}, "different lengths"),
    ],
)
def test_impossible_writes_are_refused(columns, message):
    with pytest.raises(ValueError, match=message):
        Writes.of(2, **columns)


def test_partitions_and_cyclic_windows_by_hand():
    # 24 bytes, 2 aggregators, buffers of 5 bytes.
    # Parts of 12 bytes are 5 + 5 + 2: rounds 0, 1, 2 of each aggregator.
    # Cyclic windows of 5 bytes: 0-5, 5-10 | 10-15, 15-20 | 20-24.
    writes = side_by_side(1, 24)
    parts = schedule(writes, 2, 5, "partitions")
    assert list(zip(parts.round, parts.aggregator, parts.offset, parts.size, strict=True)) == [
        (0, 0, 0, 5),
        (1, 0, 5, 5),
        (2, 0, 10, 2),
        (0, 1, 12, 5),
        (1, 1, 17, 5),
        (2, 1, 22, 2),
    ]
    cyclic = schedule(writes, 2, 5, "cyclic")
    assert list(zip(cyclic.round, cyclic.aggregator, cyclic.offset, cyclic.size, strict=True)) == [
        (0, 0, 0, 5),
        (0, 1, 5, 5),
        (1, 0, 10, 5),
        (1, 1, 15, 5),
        (2, 0, 20, 4),
    ]
    assert cyclic.fill().tolist() == [[1, 1], [1, 1], [0.8, 0]]


def test_domains_begin_with_a_stripe():
    # Bytes 6 to 26 with stripes of 4: the first domain begins at 4, and parts have 12 bytes, not 11.
    writes = Writes.of(1, task=[0], offset=[6], size=[20])
    parts = schedule(writes, 2, 100, "partitions", align_bytes=4)
    assert list(zip(parts.aggregator, parts.offset, parts.size, strict=True)) == [(0, 6, 10), (1, 16, 10)]


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 40)), min_size=1, max_size=12),
    st.integers(1, 7),
    st.integers(1, 50),
    st.integers(1, 9),
    st.sampled_from(["cyclic", "partitions"]),
    st.integers(1, 17),
)
def test_every_byte_goes_once_to_one_buffer(steps, aggregators, buffer_bytes, tasks, domains, align_bytes):
    offset, size, end = [], [], 0
    for gap, length in steps:
        offset.append(end + gap)
        size.append(length)
        end += gap + length
    task = np.arange(len(steps)) % tasks
    made = schedule(
        Writes.of(tasks, task=task, offset=offset, size=size), aggregators, buffer_bytes, domains, align_bytes
    )

    def each_byte(offsets, sizes, *columns):
        return sorted(
            (byte, *rest)
            for first, length, *rest in zip(offsets, sizes, *columns, strict=True)
            for byte in range(first, first + length)
        )

    pieces = each_byte(made.offset.tolist(), made.size.tolist(), made.task.tolist())
    assert pieces == each_byte(offset, size, task.tolist())
    assert made.fill().max(initial=0) <= 1
    assert made.fill().sum() * buffer_bytes == pytest.approx(sum(size))
    assert made.aggregator.max(initial=0) < aggregators
    sent = made.sent_bytes(np.arange(tasks))
    assert sent.sum() == sum(size)


def test_time_of_a_flush_by_hand():
    # Two aggregators write 4 bytes each into stripes of 8 bytes on 2 targets: both to target 0.
    # Own rate 2 bytes/s: 4 / 2 = 2 s. Shared bytes at target 0: 8, at 4 bytes/s: 2 s. Together 4 s.
    storage = Storage(2, 8, aggregator_bytes_per_s=2, shared_bytes_per_s=4)
    assert flushes(schedule(side_by_side(1, 8), 2, 4, "cyclic"), storage).seconds.tolist() == [4]
    # Stripes of 4 bytes: each aggregator has a target to itself, and 2 s remain.
    alone = Storage(2, 4, aggregator_bytes_per_s=2, shared_bytes_per_s=4)
    assert flushes(schedule(side_by_side(1, 8), 2, 4, "cyclic"), alone).seconds.tolist() == [2]
    # Stripes of 2 bytes: each target has 2 bytes of both, 4 shared bytes: 2 + 1 s.
    both = Storage(2, 2, aggregator_bytes_per_s=2, shared_bytes_per_s=4)
    assert flushes(schedule(side_by_side(1, 8), 2, 4, "cyclic"), both).seconds.tolist() == [3]
    # A target with 1 byte/s has 8 bytes of the first case: 8 s, more than 4 s.
    slow = Storage(2, 8, 2, 4, target_bytes_per_s=1)
    assert flushes(schedule(side_by_side(1, 8), 2, 4, "cyclic"), slow).seconds.tolist() == [8]


def test_a_buffer_with_holes_is_read_and_written_whole_or_in_pieces():
    # Bytes 0-2, 6-8 and 10-12 in buffers of 8 bytes: the first has a hole from 2 to 6, the second has none.
    writes = Writes.of(1, task=[0, 0, 0], offset=[0, 6, 10], size=[2, 2, 2])
    made = schedule(writes, 1, 8, "cyclic")
    storage = Storage(1, 8, aggregator_bytes_per_s=1, read_factor=2)
    pieces = flushes(made, storage, "pieces")
    assert (pieces.written_bytes, pieces.read_bytes, pieces.seconds.tolist()) == (6, 0, [4, 2])
    # Sieved: 8 bytes are read at 2 bytes/s and 8 written at 1 byte/s: 12 s; then 2 s.
    sieved = flushes(made, storage, "sieve", file_bytes=100)
    assert (sieved.written_bytes, sieved.read_bytes, sieved.seconds.tolist()) == (10, 8, [12, 2])
    # A new file has nothing to read, one of 3 bytes has 3.
    assert flushes(made, storage, "sieve").read_bytes == 0
    assert flushes(made, storage, "sieve", file_bytes=3).read_bytes == 3


def test_nothing_to_write_needs_no_round():
    made = schedule(Writes.of(3, task=[0, 2], offset=[5, 9], size=[0, 0]), 2, 4, "partitions")
    assert made.rounds == 0
    assert len(flushes(made, Storage(2, 4), "sieve").seconds) == 0
