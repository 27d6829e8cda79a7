"""Filtered answers are those of the events filtered by hand: every filter, every source, on every run.

The filters here are written anew, column by column, and owe nothing to `Selection`. Where a run has spools or
a job file, a ``trace.h5`` with chunks of few calls is made of it, in which an index and what is known of each
chunk decide what is read. Filters are drawn from what the run has.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator, Sequence
from fnmatch import translate
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from arrays_of import arrays_of

import ensembles as en
from ensembles.ensemble.main_ensemble import main_ensemble
from ensembles.model.enclosed import among_themselves, as_outermost
from ensembles.model.errors import EnsioError
from ensembles.model.holds import Holds
from ensembles.model.regions import RegionTable
from ensembles.model.sites import Site
from ensembles.passes.executors import ThreadExecutor
from ensembles.passes.group import SummaryRequest
from ensembles.passes.summary import Summary, ignoring_run
from ensembles.run import reading
from ensembles.run.collect import collect
from ensembles.run.reading import ReadLimits
from ensembles.run.selection import Selection
from ensembles.summaries.calltable import CallTable
from ensembles.summaries.moments import CallMoments
from ensembles.summaries.open_time import OpenTime
from ensembles.summaries.rate import RateCurve
from ensembles.summaries.runtotals import EventCount
from ensembles.writers.tracefile import events as written

from .answers import ANSWERS, NotThereError, executed
from .declared import RUNS, Declared
from .test_frozen import in_thirds, marks_of

CASES = [pytest.param(one, id=one.name, marks=marks_of(one)) for one in RUNS]
CHUNK_ROWS = 61
MOST_CALLS = 60_000
MOST_CALLS_OF_COMMANDS = 20_000
COMMANDS = (
    "events --format csv --limit 3000",
    "modes --json",
    "tail --tasks 64 --json",
    "rate --json",
    "phases --json",
    "ordinals --json",
    "files --json",
    "ranks --json",
    "sites --json",
)
"""Commands that print a whole answer about the calls that filters choose."""

SUMMARIES: dict[str, type[Summary]] = {
    "calls": CallTable,
    "count": EventCount,
    "moments": CallMoments,
    "open": OpenTime,
    "rate": RateCurve,
}

Draw = Callable[[en.Events, np.random.Generator], tuple[str | bool, np.ndarray]]


def of_call(part: str) -> Draw:
    def draw(events: en.Events, random: np.random.Generator) -> tuple[str, np.ndarray]:
        names = np.array([getattr(call, part) for call in events.calls], object)[events.call]
        some = random.choice(sorted(set(names.tolist())), random.integers(1, 3))
        return ",".join(some), np.isin(names, some)

    return draw


def of_file(events: en.Events, random: np.random.Generator) -> tuple[str, np.ndarray]:
    path = events.files[int(random.choice(events.file))]
    # A wildcard for the end, the beginning, or nothing of the path.
    glob = random.choice([path, path[: len(path) // 2] + "*", "*" + path[len(path) // 2 :]])
    glob = glob.replace("[", "?")
    pattern = re.compile(translate(glob))
    return glob, np.array([pattern.match(events.files[file]) is not None for file in events.file.tolist()])


def of_rank(events: en.Events, random: np.random.Generator) -> tuple[str, np.ndarray]:
    low, high, other = *sorted(random.choice(events.rank, 2).tolist()), int(random.choice(events.rank))
    chosen = ((events.rank >= low) & (events.rank <= high)) | (events.rank == other)
    return f"{low}-{high},{other}", chosen


def of_size(events: en.Events, random: np.random.Generator) -> tuple[str, np.ndarray]:
    low, high = sorted(random.choice(events.requested, 2).tolist())
    return f"{low}..{high}", (events.requested >= low) & (events.requested <= high)


def of_time(events: en.Events, random: np.random.Generator) -> tuple[str, np.ndarray]:
    low, high = sorted(random.choice(events.start, 2).tolist())
    high = min(high, low + int((events.start.max() - low) * random.random()))
    return f"{low / 1e9:.9f}..{(high + 1) / 1e9:.9f}", (events.start >= low) & (events.start <= high)


def of_number(name: str) -> Draw:
    def draw(events: en.Events, random: np.random.Generator) -> tuple[str, np.ndarray]:
        numbers = getattr(events, name)
        some = numbers[numbers > 0]
        if not len(some):
            return "1", numbers == 1
        low, high = sorted(random.choice(some, 2).tolist())
        return f"{low}-{high}", (numbers >= low) & (numbers <= high)

    return draw


def of_duration(events: en.Events, random: np.random.Generator) -> tuple[str, np.ndarray]:
    """The end that is written is excluded."""
    low, high = sorted(random.choice(events.duration, 2).tolist())
    return f"{low / 1e9:.9f}..{(high + 1) / 1e9:.9f}", (events.duration >= low) & (events.duration <= high)


def of_offset(events: en.Events, random: np.random.Generator) -> tuple[str, np.ndarray]:
    """The end that is written is excluded, and calls without an offset match none."""
    known = events.offset[events.offset >= 0]
    if not len(known):
        return "0..1", events.offset == 0
    low, high = sorted(random.choice(known, 2).tolist())
    return f"{low}..{high + 1}", (events.offset >= low) & (events.offset <= high)


def of_transfer_rate(events: en.Events, random: np.random.Generator) -> tuple[str, np.ndarray]:
    """Whole bytes per second; a call of 0 ns is faster than every rate."""
    moving = np.flatnonzero((events.moved > 0) & (events.duration > 0))
    if not len(moving):
        return "..1", np.zeros(len(events), bool)
    per_s = [int(events.moved[one]) * 10**9 // int(events.duration[one]) for one in random.choice(moving, 2)]
    low, high = min(per_s), max(per_s) + 1
    inside = [
        moved > 0 and low * ns <= moved * 10**9 < high * ns
        for moved, ns in zip(events.moved.tolist(), events.duration.tolist(), strict=True)
    ]
    return f"{low}..{high}", np.array(inside, bool)


def of_bytes(events: en.Events, _: np.random.Generator) -> tuple[bool, np.ndarray]:
    return True, events.moved > 0


def of_failure(events: en.Events, _: np.random.Generator) -> tuple[bool, np.ndarray]:
    return True, events.moved < 0


def of_error(events: en.Events, random: np.random.Generator) -> tuple[str, np.ndarray]:
    """Names of Linux, or numbers."""
    known = sorted(set(events.error.tolist()) - {0})
    some = random.choice(known, 2).tolist() if known else [errno.EUCLEAN]
    return ",".join(errno.errorcode.get(number, str(number)) for number in some), np.isin(events.error, some)


def of_region(regions: RegionTable) -> Draw:
    """Calls that start while their task is in a phase or region of this name."""

    def draw(events: en.Events, random: np.random.Generator) -> tuple[str, np.ndarray]:
        name = str(random.choice(sorted({regions.names[number] for number in regions.name.tolist()})))
        chosen = np.zeros(len(events), bool)
        for row in range(len(regions)):
            if regions.names[regions.name[row]] == name:
                begin, end = regions.start[row], regions.start[row] + regions.duration[row]
                chosen |= (events.rank == regions.rank[row]) & (events.start >= begin) & (events.start < end)
        return name, chosen

    return draw


def of_site(sites: Sequence[Site]) -> Draw:
    """Calls from a line, or from a source file or a function, of any caller that was recorded."""

    def draw(events: en.Events, random: np.random.Generator) -> tuple[str, np.ndarray]:
        frames = {number: sites[number].frames for number in set(events.site.tolist())}
        places = {number: {frame.place for frame in each} for number, each in frames.items()}
        for number, each in frames.items():
            places[number] |= {frame.function for frame in each if frame.function}
            places[number] |= {os.path.basename(frame.file) for frame in each if frame.file}
        known = sorted(place for place in set().union(*places.values()) if not set("[]*?,") & set(place))
        if not known:
            return "*", np.isin(events.site, [number for number, each in places.items() if each])
        place = str(random.choice(known))
        return place, np.isin(events.site, [number for number, each in places.items() if place in each])

    return draw


DRAWS: dict[str, Draw] = {
    "op": of_call("op"),
    "call": of_call("name"),
    "layer": of_call("layer"),
    "file": of_file,
    "rank": of_rank,
    "size": of_size,
    "time": of_time,
    "duration": of_duration,
    "offset": of_offset,
    "rate": of_transfer_rate,
    "failed": of_failure,
    "error": of_error,
    "per_byte": of_bytes,
    "phase": of_number("phase"),
    "ordinal": of_number("ordinal"),
}


def opened(path: Path | str) -> en.Run:
    """Open a run, or skip the test if it has no calls to filter."""
    run = en.open(str(path))
    if not run.info.has(Holds.CALL_ORDER) or not 0 < run.reading.most_events <= MOST_CALLS:
        pytest.skip("it does not keep every call, has none, or has too many to filter them by hand")
    return run


def draws_of(run: en.Run) -> dict[str, Draw]:
    """The filters that a run has something for."""
    draws = DRAWS.copy()
    if len(run.regions):
        draws["region"] = of_region(run.regions)
    if run.events.site.any():
        draws["site"] = of_site(run.info.sites)
    return draws


def check(path: Path | str, seed: int) -> None:
    """Draw filters, alone and together, and compare all ways to the selected calls.

    Filters that are alone have a run together, in which no filter has loaded all events.
    """
    first, shared = opened(path), opened(path)
    whole = first.events
    random = np.random.default_rng(seed)
    draws = draws_of(first)
    names = list(draws)
    wanted = [[name] for name in names] + [
        sorted(random.choice(names, random.integers(2, 4), replace=False)) for _ in range(4)
    ]
    for some in wanted:
        drawn = {name: draws[name](whole, random) for name in some}
        filters = {name: text for name, (text, _) in drawn.items()}
        chosen = np.logical_and.reduce([mask for _, mask in drawn.values()])
        compare(shared if len(some) == 1 else opened(path), filters, whole, np.flatnonzero(chosen))


def compare(run: en.Run, filters: dict[str, Any], whole: en.Events, rows: np.ndarray) -> None:
    expected = whole[rows]
    found = run.select(**filters)
    for name, column in expected.columns.items():
        np.testing.assert_array_equal(getattr(found, name), column, err_msg=f"{name} by {filters}")
    selection = Selection.parse(**filters).for_run(run)
    run.reading.executor = ThreadExecutor(2)
    made = run.summarize(
        {name: SummaryRequest(ignoring_run(kind)) for name, kind in SUMMARIES.items()}, selection=selection
    )
    for name, kind in SUMMARIES.items():
        by_hand = kind()
        ordered = in_order(run, expected)
        # Selected calls count by themselves, whatever calls are around them that are not selected.
        alone = as_outermost if selection.is_of_one_layer(run.calls) else among_themselves
        by_hand.add(alone(ordered) if selection.parts_calls else ordered)
        by_hand.finalize()
        wanted = arrays_of(by_hand)
        floats = [values for values in wanted.values() if values.dtype.kind == "f"]
        most = max((np.abs(values).max(initial=0) for values in floats), default=0)
        for key, values in wanted.items():
            got = arrays_of(made[name])[key]
            if values.dtype.kind == "f":  # small differences of large numbers are rounded
                np.testing.assert_allclose(np.sort(got, None), np.sort(values, None), atol=1e-9 * most)
            else:
                np.testing.assert_array_equal(
                    np.sort(got, None), np.sort(values, None), f"{key} by {filters}"
                )
    read = [len(chunk) for chunk in run.reading.chunks_for(selection, 100)]
    assert sum(read) == len(rows)
    compare_ensemble(run, selection, whole, expected)


def in_order(run: en.Run, chosen: en.Events) -> en.Events:
    """Calls in the order of completion of each thread, as summaries need them."""
    order = np.lexsort(
        (-chosen.depth.astype(int), chosen.start + chosen.duration, chosen.thread, chosen.rank)
    )
    return chosen[order]


def compare_ensemble(run: en.Run, selection: Selection, whole: en.Events, expected: en.Events) -> None:
    """The durations of the ensemble, of which modes and tail are computed."""
    try:
        taken, ensemble = main_ensemble(run, selection, "MiB" if selection.per_byte else "call")
    except EnsioError:
        return
    numbered = taken.phases is not None or taken.ordinals is not None
    chosen = taken.apply(whole if numbered else expected)
    durations = chosen.duration * 1e-9
    if selection.per_byte:
        durations = durations / (chosen.moved / (1 << 20))
    np.testing.assert_allclose(np.sort(np.asarray(ensemble.durations_s)), np.sort(durations), rtol=1e-9)


def check_commands(
    path: Path | str, seed: int, commands: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compare each command, which reads what its filters need, with one that is handed every call."""
    first = opened(path)
    if first.reading.most_events > MOST_CALLS_OF_COMMANDS:
        return
    random, draws = np.random.default_rng(seed), draws_of(first)
    for command in commands:
        words = [*command.split(), str(path)]
        for name in random.choice(list(draws), random.integers(1, 3), replace=False):
            text, _ = draws[name](first.events, random)
            words += ["--per-byte"] if text is True else [f"--{name}={text}"]
        found = executed(words, ANSWERS.folder)
        with monkeypatch.context() as all_calls:
            all_calls.setattr(reading, "limits_of", lambda run, selection: ReadLimits())
            expected = executed(words, ANSWERS.folder)
        assert found == expected, words


def both_sources(run: Declared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path | str]:
    """A run as it is, and as a ``trace.h5`` with chunks of few calls if it has spools or a job file."""
    try:
        ANSWERS.place(run.name)
    except NotThereError as error:
        pytest.skip(str(error))
    monkeypatch.setenv("ENSIO_CACHE", "0")
    path = Path(ANSWERS.folder) / run.name
    yield path
    is_ours = type(en.open(str(path)).reading.source).__module__.startswith("ensembles.readers.native")
    if os.path.isdir(path) and is_ours and not (path / "trace.h5").exists():
        monkeypatch.setattr(written, "CHUNK_ROWS", CHUNK_ROWS)
        yield collect(str(path), str(tmp_path / "trace.h5"))[0]


@pytest.mark.parametrize("run", CASES)
def test_filtered_answers_are_those_of_the_events_filtered_by_hand(
    run: Declared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed, path in enumerate(both_sources(run, tmp_path, monkeypatch), 1):
        check(path, seed)


def test_calls_that_start_with_those_around_them_are_in_one_order() -> None:
    """Whether ordinals are counted, in the order of completion, or not."""
    path = str(ANSWERS.place("dxt-ior"))
    whole = en.open(path).events
    expected = whole[np.flatnonzero((whole.ordinal >= 8) & (whole.ordinal <= 13))]
    found = en.open(path).select(ordinal="8-13")
    assert found.call.tolist() == expected.call.tolist()
    assert found.ordinal.tolist() == expected.ordinal.tolist()


@pytest.mark.slow
@pytest.mark.parametrize(("run", "part"), in_thirds())
def test_commands_read_all_that_their_filters_need(
    run: Declared, part: slice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = list(both_sources(run, tmp_path, monkeypatch))
    for number, path in enumerate(places):  # of two sources, each answers every other command
        check_commands(path, number + 3, COMMANDS[part][number :: len(places)], monkeypatch)
