"""Comparisons of runs and ensembles: what `ensembles.compare` does before the statistics begin."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.ensemble import MIB, Ensemble
from ensembles.errors import EnsioError
from ensembles.run import Run
from ensembles.selection import Selection
from ensembles.statistics.comparison import compare_samples
from ensembles.statistics.comparison_result import Comparison
from ensembles.statistics.comparison_slices import Calls, sliced
from ensembles.statistics.comparison_verdict import LEVEL, MARGIN
from ensembles.statistics.sample import Sample
from ensembles.summaries.bins import BIN_COUNT, bin_of

if TYPE_CHECKING:
    from ensembles.events import Call, Events

Side = Run | Ensemble | Sample

Key = tuple[str, str]
"""Layer and op."""

_SUMMARY_KNOWS = ("ops", "calls", "layers")


def compare(
    a: Side | Iterable[Side],
    b: Side | Iterable[Side],
    *more: Side | Iterable[Side],
    margin: float = MARGIN,
    level: float = LEVEL,
    seed: int = 0,
    names: Sequence[str] | None = None,
    **filters: Any,
) -> Comparison:
    """Whether runs or ensembles are the same, what moved, and by how much.

    Parameters
    ----------
    a, b, *more : Run, Ensemble, Sample, or a list of these
        Groups: a list holds repetitions of the same. The first group is what the others are compared with.
        Several runs a group tell more than one, for which only the run's own phases say how it varies.
    margin : float
        Groups are the same if nothing can have moved by more than this: 0.1 is 10 %.
    level : float
        Chance of calling different what is the same; intervals hold with probability 1 − `level`.
    seed : int
        Of the permutations and the bootstrap.
    names : sequence of str, optional
        Names of the groups.
    **filters
        Of runs: ``op``, ``call``, ``layer`` … as for `Run.select`. Without them the kind of calls that
        takes the most time is compared.

    Raises
    ------
    EnsioError
        A filter or option makes no sense, a run cannot be read, or there is no kind of call that all have.
    """
    groups = [_as_list(group) for group in (a, b, *more)]
    if any(isinstance(side, Run) for group in groups for side in group):
        if not all(isinstance(side, Run) for group in groups for side in group):
            raise EnsioError("runs are compared with runs, and ensembles with ensembles: choose one")
        found = compare_runs(groups, names=names, margin=margin, level=level, seed=seed, **filters)
        return found[0]
    if filters:
        raise EnsioError(f"ensembles are compared as they are: {', '.join(filters)} is for runs")
    names = names or [_name_of_ensembles(group, number) for number, group in enumerate(groups, 1)]
    samples, unit = _in_pieces(groups)
    return compare_samples(samples, names=names, margin=margin, level=level, seed=seed, unit=unit)


def compare_runs(
    groups: Sequence[Sequence[Run]],
    *,
    names: Sequence[str] | None = None,
    margin: float = MARGIN,
    level: float = LEVEL,
    seed: int = 0,
    selection: Selection | None = None,
    **filters: Any,
) -> list[Comparison]:
    """Compare groups of runs, one kind of calls after the other.

    Parameters
    ----------
    groups : sequence of sequences of Run
    names, margin, level, seed
        See `compare`.
    selection : Selection, optional
        In place of `filters`.
    **filters
        As for `Run.select`.

    Returns
    -------
    list of Comparison
        Of each op and layer that every group has calls of, the one that takes the most time first. Waiting
        is left out unless it is asked for.

    Raises
    ------
    EnsioError
        See `compare`.
    """
    selection = Selection.parse(**filters) if selection is None else selection
    single = all(len(group) == 1 for group in groups)
    read = [[_read(run, selection, keep_calls=single) for run in group] for group in groups]
    names = (
        list(names) if names is not None else [name_of_runs([run.path for run in group]) for group in groups]
    )
    keys: dict[Key, float] = {}
    for key in dict.fromkeys(key for group in read for run in group for key in run.time_s):
        if all(any(key in run.time_s for run in group) for group in read):
            keys[key] = sum(run.time_s.get(key, 0.0) for group in read for run in group)
    if selection.ops is None and selection.calls is None:
        keys = {key: time_s for key, time_s in keys.items() if key[1] != "wait"}
    if not keys:
        raise EnsioError(
            "there is no kind of call that all of these runs made: see what they did with ensio info, and "
            "what the filters leave"
        )
    found = []
    for layer, op in sorted(keys, key=lambda key: -keys[key]):
        samples, unit = _samples_of(read, (layer, op), single)
        comparison = compare_samples(
            samples, names=names, op=op, layer=layer, margin=margin, level=level, seed=seed, unit=unit
        )
        notes = dict.fromkeys(note for group in read for run in group for note in run.notes)
        found.append(replace(comparison, notes=[*comparison.notes, *notes]))
    return found


def name_of_runs(paths: Sequence[str]) -> str:
    """The name of a group of runs: that of the first, and how many more."""
    first = paths[0].rstrip("/") or paths[0]
    return first if len(paths) == 1 else f"{first} and {len(paths) - 1} more"


@dataclass
class _Read:
    """What a run's calls are, by kind."""

    time_s: dict[Key, float] = field(default_factory=dict)
    samples: dict[Key, Sample] = field(default_factory=dict)
    calls: dict[Key, Calls] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def _read(run: Run, selection: Selection, keep_calls: bool) -> _Read:
    read = _Read(notes=[f"{run.path}: {note}" for note in run.notes])
    selection = selection.for_run(run)
    if not run.has_all_events:
        _read_summary(run, selection, read)
    elif keep_calls:
        events = run.chosen_by(selection)
        phase = events.phase
        for key, mine in _by_key(events):
            chosen = events[mine]
            durations_s = _durations_s(chosen, selection)
            read.time_s[key] = float(chosen.duration.sum() * 1e-9)
            read.calls[key] = Calls(
                durations_s,
                None if phase is None else phase[mine],
                chosen.rank.astype(np.int64),
                chosen.start,
            )
    else:
        parts: dict[Key, list[Sample]] = {}
        for chunk in run.chunks_for(selection):
            for key, mine in _by_key(chunk):
                chosen = chunk[mine]
                parts.setdefault(key, []).append(_pooled(_durations_s(chosen, selection)))
                read.time_s[key] = read.time_s.get(key, 0.0) + float(chosen.duration.sum() * 1e-9)
        read.samples = {key: _joined(samples) for key, samples in parts.items()}
    return read


def _by_key(events: Events) -> list[tuple[Key, np.ndarray]]:
    """Masks of the calls of each layer and op."""
    present = np.flatnonzero(np.bincount(events.call, minlength=len(events.calls)))
    keys: dict[Key, list[int]] = {}
    for number in present.tolist():
        keys.setdefault(_key(events.calls[number]), []).append(number)
    return [(key, np.isin(events.call, numbers)) for key, numbers in keys.items()]


def _key(call: Call) -> Key:
    return call.layer, call.op


def _durations_s(events: Events, selection: Selection) -> np.ndarray:
    durations_s = events.duration * 1e-9
    return durations_s / (events.moved / MIB) if selection.per_byte else durations_s


def _read_summary(run: Run, selection: Selection, read: _Read) -> None:
    asked = [
        name
        for name in ("file_globs", "ranks", "sizes", "times_s", "regions", "phases", "ordinals")
        if getattr(selection, name) is not None
    ]
    if asked or selection.per_byte:
        raise EnsioError(
            f"{run.path} keeps not every call as an event, and its summary tells calls apart by op, "
            "function and layer "
            "only: leave out other filters, or record it again with ensio run --mode trace"
        )
    summary = run.summary
    cell, bins, counts = summary.histogram
    keys: dict[Key, list[int]] = {}
    for number in np.unique(summary.cells["call"]).tolist():
        call = summary.calls[number]
        wanted = zip(
            (selection.ops, selection.calls, selection.layers), (call.op, call.name, call.layer), strict=True
        )
        if all(names is None or name in names for names, name in wanted):
            keys.setdefault(_key(call), []).append(number)
    for key, numbers in keys.items():
        mine = np.isin(summary.cells["call"], numbers)
        dense = np.zeros(BIN_COUNT, np.int64)
        np.add.at(dense, bins[mine[cell]], counts[mine[cell]])
        if dense.any():
            least_s, most_s = (
                float(getattr(summary.cells[name][mine], how)() * 1e-9)
                for name, how in (("min_ns", "min"), ("max_ns", "max"))
            )
            read.samples[key] = _of_counts(dense, least_s, most_s)
            read.time_s[key] = float(summary.cells["time_ns"][mine].sum() * 1e-9)


def _of_counts(counts: np.ndarray, least_s: float, most_s: float) -> Sample:
    used = np.flatnonzero(counts)
    return Sample(
        phase=np.zeros(1, np.int64),
        n=np.array([counts.sum()]),
        min_s=np.array([least_s]),
        max_s=np.array([most_s]),
        begin=np.array([0, len(used)]),
        bin=used,
        count=counts[used],
        phases_known=False,
    )


def _pooled(durations_s: np.ndarray) -> Sample:
    counts = np.bincount(bin_of(np.rint(durations_s * 1e9).astype(np.int64)), minlength=BIN_COUNT)
    return _of_counts(counts, float(durations_s.min()), float(durations_s.max()))


def _joined(samples: Sequence[Sample]) -> Sample:
    counts = sum((sample.counts for sample in samples), start=np.zeros(BIN_COUNT, np.int64))
    return _of_counts(
        counts,
        min(float(sample.min_s.min()) for sample in samples),
        max(float(sample.max_s.max()) for sample in samples),
    )


def _samples_of(read: Sequence[Sequence[_Read]], key: Key, single: bool) -> tuple[list[list[Sample]], str]:
    if single and all(key in group[0].calls for group in read):
        samples, unit = sliced([group[0].calls[key] for group in read])
        return [[sample] for sample in samples], unit
    groups = []
    for group in read:
        having = [run for run in group if key in run.time_s]
        groups.append([run.samples[key] if key in run.samples else _whole(run.calls[key]) for run in having])
    return groups, ""


def _whole(calls: Calls) -> Sample:
    return Sample.of(calls.durations_s, None, calls.resolution_s)


def _as_list(group: Side | Iterable[Side]) -> list[Any]:
    sides = list(group) if isinstance(group, Iterable) and not isinstance(group, (Side, str)) else [group]
    for side in sides:
        if not isinstance(side, Side):
            raise EnsioError(
                f"a {type(side).__name__} is nothing that can be compared: give runs (ensembles.open), "
                "ensembles, or lists of them"
            )
    if not sides:
        raise EnsioError("a group without runs cannot be compared: give at least one")
    return sides


def _in_pieces(groups: Sequence[Sequence[Any]]) -> tuple[list[list[Sample]], str]:
    """Samples of ensembles; of single ones whose calls are known, in pieces."""
    if all(len(group) == 1 for group in groups):
        sides = [group[0] for group in groups]
        if all(isinstance(side, Ensemble) and side.durations_s is not None for side in sides):
            runs = [
                Calls(side.durations_s, side.phase, side.rank, side.start_ns, side.sample.resolution_s)
                for side in sides
            ]
            samples, unit = sliced(runs)
            return [[sample] for sample in samples], unit
    samples = [[side if isinstance(side, Sample) else side.sample for side in group] for group in groups]
    return samples, "phases"


def _name_of_ensembles(group: Sequence[Any], number: int) -> str:
    name = getattr(group[0], "name", "") if len(group) == 1 else ""
    return f"{number}: {name}" if name else f"group {number}"
