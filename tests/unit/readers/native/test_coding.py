"""The C decoder and the NumPy oracle return events and texts exactly as coded; damage is reported."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import numpy_blocks

from ensembles import _compiled
from ensembles.model.c_layout import BLOCK, EVENT
from ensembles.readers.native.job_file_codec import BLOCK_EVENTS, decode_events, decode_text

pytestmark = pytest.mark.slow

DECODERS = [numpy_blocks.decode_block, decode_events]

EDGES = [0, 1, 127, 128, 2**28 - 1, 2**28, 2**31, 2**32, 2**48, 2**63 - 1, 2**63, 2**64 - 1]
u64 = st.one_of(st.integers(0, 300), st.sampled_from(EDGES), st.integers(0, 2**64 - 1))
event = st.tuples(
    u64,
    u64,
    u64.map(lambda value: value - 2**63) | st.integers(-2, 300),
    u64,
    u64.map(lambda value: value - 2**63) | st.integers(-140, 300),
    st.one_of(st.integers(0, 3), st.integers(0, 0xFFFF)),
    st.one_of(st.integers(0, 2), st.integers(0, 0xFFFF)),
    st.one_of(st.integers(0, 9), st.integers(0, 0xFFFF)),
    st.integers(0, 255),
    st.integers(0, 255),
)
event_lists = st.lists(event, max_size=300).map(lambda rows: np.array(rows, EVENT.dtype))


def assert_decoded(events: np.ndarray, blocks: list[bytes]) -> None:
    for decode in DECODERS:
        out, position = np.zeros(len(events) + BLOCK_EVENTS, EVENT.dtype), 0
        for block in blocks:
            position += decode(block, out[position:])
        assert position == len(events)
        np.testing.assert_array_equal(out[:position], events)


@given(events=event_lists)
@settings(max_examples=300)
def test_any_events_come_back(coder, events):
    assert_decoded(events, coder.blocks(events))


@given(seed=st.integers(0, 2**32 - 1), count=st.integers(0, 3 * BLOCK_EVENTS), files=st.integers(1, 3000))
@settings(max_examples=20)
def test_long_streams_of_calls_come_back(coder, seed, count, files):
    assert_decoded(*_with_blocks(coder, plausible_events(seed, count, files)))


def _with_blocks(coder, events):
    return events, coder.blocks(events)


def plausible_events(seed: int, count: int, files: int) -> np.ndarray:
    """Nested calls on many files: sequential, strided, random and failed ones."""
    random = np.random.default_rng(seed)
    events = np.zeros(count, EVENT.dtype)
    events["duration"] = random.lognormal(9, 2, count)
    events["start"] = 10**15 + np.cumsum(random.integers(-20_000, 100_000, count))
    events["call"] = random.integers(1, 9, count)
    events["depth"] = random.integers(0, 3, count)
    events["file"] = random.integers(0, files, count)
    events["site"] = random.integers(0, 5, count)
    events["requested"] = random.choice([0, 4096, 1 << 20, 12345], count)
    events["moved"] = np.where(
        random.random(count) < 0.1, -random.integers(1, 130, count), events["requested"]
    )
    stride = random.choice([0, 1 << 20, 1 << 24], count)
    events["offset"] = np.where(random.random(count) < 0.2, -1, np.cumsum(stride))
    return events


def test_events_of_one_kind_take_few_bytes(coder):
    """A template, and the two numbers that differ: nothing else."""
    events = np.zeros(BLOCK_EVENTS, EVENT.dtype)
    events["duration"] = 2000
    events["start"] = 10**15 + 2063 * np.arange(BLOCK_EVENTS)
    events["requested"] = events["moved"] = 1 << 20
    events["offset"] = 64 * (1 << 20) * np.arange(BLOCK_EVENTS)
    events["file"], events["call"] = 1, 4
    block, count = coder.block(events)
    assert count == BLOCK_EVENTS
    assert len(block) <= BLOCK.size + 100 + 4 * BLOCK_EVENTS
    assert_decoded(events, [block])


@given(events=event_lists, data=st.data())
@settings(max_examples=200)
def test_a_changed_or_cut_block_is_told(coder, events, data):
    block = bytearray(coder.block(events)[0])
    at = data.draw(st.integers(0, len(block) - 1))
    out = np.zeros(BLOCK_EVENTS, EVENT.dtype)
    with pytest.raises(ValueError, match="block"):
        decode_events(bytes(block[:at]), out)
    block[at] ^= data.draw(st.integers(1, 255))
    if at >= 4:  # the magic number is not under the checksum
        with pytest.raises(ValueError, match="block"):
            decode_events(bytes(block), out)


@given(events=event_lists, data=st.data())
@settings(max_examples=300)
def test_forged_blocks_are_refused_or_decoded_alike(coder, events, data):
    """An attacker who forges a block may put a right checksum on it: nothing in it may lead out of it."""
    block = bytearray(coder.block(events)[0])
    for _ in range(data.draw(st.integers(1, 4))):
        block[data.draw(st.integers(8, len(block) - 1))] = data.draw(st.integers(0, 255))
    results = []
    for decode in (numpy_blocks.decode_block, _compiled.decode_block):
        out = np.zeros(BLOCK_EVENTS, EVENT.dtype)
        try:
            count = decode(bytes(block), out if decode is numpy_blocks.decode_block else out.view("u1"))
            results.append(out[:count].tobytes())
        except ValueError:
            results.append(None)
    assert results[0] == results[1]


def test_too_little_room_is_an_error_of_its_own(coder):
    block, _ = coder.block(plausible_events(0, 100, 3))
    for decode in DECODERS:
        with pytest.raises(IndexError):
            decode(block, np.zeros(99, EVENT.dtype))


pieces = st.lists(
    st.one_of(st.binary(max_size=20), st.sampled_from([b"/scratch/run/out.", b"\0" * 40, b"abcdefgh"]))
)
texts = pieces.map(b"".join)


@given(known=texts, text=texts)
@settings(max_examples=300)
def test_any_text_comes_back(coder, known, text):
    coded = coder.text(known, text)
    assert decode_text(coded, known, len(text)) == text


def test_a_text_that_was_said_before_takes_next_to_nothing(coder):
    known = b"".join(b"/scratch/project/run/out.%05d\0" % number for number in range(1000))
    assert len(coder.text(known, known)) < 16
    assert len(coder.text(b"", bytes(1 << 20))) < 16


@given(text=texts, room=st.integers(0, 60))
def test_what_does_not_fit_is_not_begun(coder, text, room):
    assert len(coder.text(b"", text, room)) <= room


@given(coded=st.binary(max_size=60), known=st.binary(max_size=20), length=st.integers(0, 200))
@settings(max_examples=500)
def test_a_damaged_text_is_an_error_or_of_the_right_length(coded, known, length):
    with suppress(ValueError):
        assert len(decode_text(coded, known, length)) == length
