"""Filters choose what their words say."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_runs import synthetic_run

import ensembles as en
from ensembles.model.errors import EnsioError
from ensembles.model.events import COLUMNS, Call, Events
from ensembles.run.selection import Selection, parse_size, parse_where

CALLS = (
    Call("unknown", "unknown", "meta"),
    Call("pwrite", "posix", "write"),
    Call("pread", "posix", "read"),
    Call("MPI_File_write", "mpiio", "write"),
    Call("fsync", "posix", "sync"),
)
FILES = ["", "/data/a.h5", "/data/b.h5", "/data/deep/a.h5", "/scratch/c,d.txt"]


def made(count: int, seed: int) -> Events:
    random = np.random.default_rng(seed)
    columns = {name: np.zeros(count, dtype) for name, dtype in COLUMNS.items()}
    columns["rank"] = random.integers(0, 20, count)
    columns["call"] = random.integers(0, len(CALLS), count)
    columns["file"] = random.integers(0, len(FILES), count)
    sizes = np.array([0, 1, 4095, 4096, 4097, 1 << 20, 4 << 20, 2**64 - 1], dtype="u8")
    columns["requested"] = random.choice(sizes, count)
    columns["start"] = random.integers(0, 30, count) * 10**9
    columns["duration"] = random.choice([0, 1, 999, 1000, 1001, 10**6, 2 * 10**9, 3 * 10**12], count)
    columns["offset"] = random.choice([-1, 0, 4095, 4096, 1 << 30, (1 << 30) + 1, 2**62], count)
    columns["moved"] = random.integers(-1, 3, count)
    columns["error"] = np.where(columns["moved"] < 0, random.choice([2, 5, 28], count), 0)
    told = {"phase": random.integers(-1, 6, count), "ordinal": random.integers(1, 12, count)}
    return Events(columns, CALLS, FILES).with_derived(told.get)


RULES = {
    ("op", "write"): lambda e, i: CALLS[e.call[i]].op == "write",
    ("op", "write,sync"): lambda e, i: CALLS[e.call[i]].op in ("write", "sync"),
    ("call", "pread,fsync"): lambda e, i: CALLS[e.call[i]].name in ("pread", "fsync"),
    ("layer", "posix"): lambda e, i: CALLS[e.call[i]].layer == "posix",
    ("file", "/data/*.h5"): lambda e, i: fnmatchcase(FILES[e.file[i]], "/data/*.h5"),
    ("file", ("/data/[ab].h5", "*c,d*")): lambda e, i: e.file[i] in (1, 2, 4),
    ("rank", "3"): lambda e, i: e.rank[i] == 3,
    ("rank", 3): lambda e, i: e.rank[i] == 3,
    ("rank", "0-4,17"): lambda e, i: e.rank[i] <= 4 or e.rank[i] == 17,
    ("size", "4096"): lambda e, i: e.requested[i] == 4096,
    ("size", 4096): lambda e, i: e.requested[i] == 4096,
    ("size", "4KiB..1MiB"): lambda e, i: 4096 <= e.requested[i] <= 1 << 20,
    ("size", "..4KiB,4MiB"): lambda e, i: e.requested[i] <= 4096 or e.requested[i] == 4 << 20,
    ("size", "1MiB.."): lambda e, i: e.requested[i] >= 1 << 20,
    ("time", "10..20"): lambda e, i: 10 * 10**9 <= e.start[i] < 20 * 10**9,
    ("duration", "1us..1ms"): lambda e, i: 1000 <= e.duration[i] < 10**6,
    ("duration", "..1e-06"): lambda e, i: e.duration[i] < 1000,
    ("duration", "2..,1ns..1.001us"): lambda e, i: e.duration[i] >= 2 * 10**9 or 1 <= e.duration[i] < 1001,
    ("duration", "50min.."): lambda e, i: e.duration[i] >= 3 * 10**12,
    ("offset", "4096"): lambda e, i: e.offset[i] == 4096,
    ("offset", 0): lambda e, i: e.offset[i] == 0,
    ("offset", "..1GiB"): lambda e, i: 0 <= e.offset[i] < 1 << 30,
    ("offset", "4KiB..4097,1GiB.."): lambda e, i: e.offset[i] == 4096 or e.offset[i] >= 1 << 30,
    ("failed", True): lambda e, i: e.moved[i] < 0,
    ("failed", False): lambda e, i: True,
    ("error", "ENOSPC,eio"): lambda e, i: e.error[i] in (28, 5),
    ("error", 28): lambda e, i: e.error[i] == 28,
    ("per_byte", True): lambda e, i: e.moved[i] > 0,
    ("phase", "1,3-4"): lambda e, i: e.phase[i] in (1, 3, 4),
    ("phase", 0): lambda e, i: e.phase[i] == 0,
    ("ordinal", "4-8"): lambda e, i: 4 <= e.ordinal[i] <= 8,
    ("time", "..0.5,29.."): lambda e, i: e.start[i] < 5 * 10**8 or e.start[i] >= 29 * 10**9,
}


@settings(deadline=None)
@given(
    filters=st.lists(st.sampled_from(list(RULES)), max_size=4, unique_by=lambda f: f[0]),
    seed=st.integers(0, 99),
)
def test_filters_together_choose_what_a_plain_loop_does(filters: list[tuple[str, str]], seed: int) -> None:
    events = made(200, seed)
    mask = Selection.parse(**dict(filters)).mask(events)
    assert mask.tolist() == [all(RULES[rule](events, i) for rule in filters) for i in range(len(events))]


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("4096", 4096),
        ("4096B", 4096),
        ("1kB", 1000),
        ("1KiB", 1024),
        ("1 mib", 1 << 20),
        ("512MiB", 512 << 20),
        ("1.5GiB", 3 << 29),
        ("2GB", 2 * 10**9),
        ("0.3kB", 300),
    ],
)
def test_sizes_understand_units(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("filters", "complaint"),
    [
        ({"op": "wrte"}, 'no op "wrte": did you mean write. it is one of close'),
        ({"op": ""}, 'no op ""'),
        ({"size": "big"}, 'size "big" is not a number of bytes'),
        ({"size": "1XB"}, 'size "1XB" is not a number of bytes'),
        ({"size": "0.3"}, "not a whole number of bytes"),
        ({"size": "4MiB..1MiB"}, "empty range"),
        ({"rank": "-3"}, 'rank "-3" is neither a number nor a range'),
        ({"rank": "7-3"}, "empty range"),
        ({"time": "10"}, "not a range of seconds"),
        ({"time": "a..b"}, "not a range of seconds"),
        ({"time": "20..10"}, "empty range"),
        ({"duration": "2"}, 'duration "2" is not a range of durations: write it like 10ms..2s'),
        ({"duration": "1..2parsecs"}, "not a range of durations"),
        ({"duration": "-1..2"}, "not a range of durations"),
        ({"duration": "e..2"}, "not a range of durations"),
        ({"duration": "nan..2"}, "not a range of durations"),
        ({"duration": "1ms..500us"}, "empty range"),
        ({"duration": "1..1"}, "empty range"),
        ({"offset": "far"}, 'offset "far" is not a number of bytes'),
        ({"offset": "2MiB..1MiB"}, 'offset "2MiB..1MiB" is an empty range'),
        ({"offset": "0..0"}, "empty range"),
        ({"error": "ENOSPACE"}, 'no error "ENOSPACE": did you mean ENOSPC'),
        ({"error": "disk full"}, "names are like EIO, ENOENT, ENOSPC"),
        ({"error": "0"}, 'no error "0"'),
    ],
)
def test_wrong_filters_are_told_in_one_sentence(filters: dict[str, str], complaint: str) -> None:
    with pytest.raises(en.EnsioError, match=complaint):
        Selection.parse(**filters)


def test_names_that_a_run_does_not_know_are_told_with_those_it_knows() -> None:
    with pytest.raises(en.EnsioError, match='no call "pwrit" in this run: did you mean pwrite'):
        Selection.parse(call="pwrit").checked(CALLS)
    with pytest.raises(en.EnsioError, match='no layer "stdio"'):
        Selection.parse(layer="stdio").checked(CALLS)


def test_a_run_selects_the_same_from_chunks_and_from_all_events(tmp_path: Path) -> None:
    synthetic_run(tmp_path, tasks=6, events_per_task=200, seed=1)
    run = en.open(tmp_path)
    from_chunks = run.select(op="write", rank="1-3", size="1MiB")
    expected = run.events[(run.events.op == 1) & (run.events.rank >= 1) & (run.events.rank <= 3)]
    for selected in (from_chunks, run.select(op="write", rank="1-3", size="1MiB")):
        for name in COLUMNS:
            np.testing.assert_array_equal(getattr(selected, name), getattr(expected, name))
    assert len(from_chunks) == 3 * 99


def test_nothing_selected_is_no_events(tmp_path: Path) -> None:
    synthetic_run(tmp_path, tasks=1, events_per_task=12)
    assert len(en.open(tmp_path).select(op="sync")) == 0


@pytest.mark.parametrize(
    ("conditions", "filters"),
    [
        (["duration>10ms"], {"duration": "10ms.."}),
        (["duration < 1s", "duration>=10ms"], {"duration": "10ms..1s"}),
        (["offset=1GiB..2GiB"], {"offset": "1GiB..2GiB"}),
        (["size > 4KiB", "size<1MiB"], {"size": "4097..1048575"}),
        (["size>=4KiB", "size<=1MiB"], {"size": "4KiB..1MiB"}),
        (["offset>8", "offset<=16"], {"offset": "9..17"}),
        (["offset>=8", "offset<16"], {"offset": "8..16"}),
        (["failed", "error=ENOSPC,EIO"], {"failed": True, "error": "ENOSPC,EIO"}),
        (["region=a b", "region=c"], {"region": ["a b", "c"]}),
        (["per-byte", "op=read", "ordinal=4-8"], {"per_byte": True, "op": "read", "ordinal": "4-8"}),
        (["file=/a=b/*.h5"], {"file": "/a=b/*.h5"}),
    ],
)
def test_conditions_are_the_filters_of_these_names(conditions, filters):
    assert Selection.parse(**parse_where(conditions, {})) == Selection.parse(**filters)


@pytest.mark.parametrize(
    ("condition", "problem"),
    [
        ("durations>1s", 'no filter "durations": did you mean duration'),
        (">1s", 'there is no filter ">1s"'),
        ("duration", "write it as duration>10ms or duration=10ms..2s"),
        ("duration>=", "write it as duration>10ms or duration=10ms..2s"),
        ("offset<3parsecs", "write it as offset>1MiB or offset=1MiB..2MiB"),
        ("rank>3", "write it as rank=0-63"),
        ("site=", "write it as site=VALUE"),
        ("failed=yes", "write it as failed"),
        ("op=read", "op has to be given once"),
        ("", "there is no filter"),
    ],
)
def test_other_conditions_are_refused_in_a_sentence(condition, problem):
    with pytest.raises(EnsioError, match=re.escape(problem)):
        parse_where([condition], {"op": "write"})


def test_a_file_is_named_by_its_path_its_end_or_a_pattern(tmp_path: Path) -> None:
    paths = ("/d/a/x[1].h5", "/d/a/y", "/d/b/y", "/d/b/yy")
    lines = [
        f'1 1700000000.{number:06} openat(AT_FDCWD, "{path}", O_RDONLY) = -1 EIO (Failed) <0.000001>'
        for number, path in enumerate(paths)
    ]
    (tmp_path / "log").write_text("\n".join(lines) + "\n")
    run = en.open(tmp_path / "log")

    def chosen(name: str) -> list[str]:
        return [run.files[number] for number in run.select(file=name).file.tolist()]

    assert chosen("x[1].h5") == chosen("a/x[1].h5") == chosen(paths[0]) == [paths[0]]
    assert chosen("b/y") == ["/d/b/y"]
    assert chosen("b/y*") == ["/d/b/y", "/d/b/yy"]
    assert chosen("*y") == list(paths[1:])
    assert chosen("d/?/y") == ["/d/a/y", "/d/b/y"]
    with pytest.raises(EnsioError, match=r'"y" is the end of 2 paths: /d/a/y, /d/b/y'):
        chosen("y")
    assert chosen("/y") == []
