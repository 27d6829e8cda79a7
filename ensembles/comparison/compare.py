"""Comparisons of runs and ensembles: what `ensembles.compare` does before the statistics begin."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ensembles.comparison.call_groups import ComparedCalls, Key, group_calls
from ensembles.comparison.compare_samples import Kind, compare_kinds, compare_samples
from ensembles.comparison.quantile_bins import RunCalls, sliced
from ensembles.comparison.report import Comparison
from ensembles.comparison.verdict import LEVEL, MARGIN
from ensembles.ensemble.ensemble import Ensemble
from ensembles.model.errors import EnsioError
from ensembles.run.run import Run
from ensembles.run.selection import Selection
from ensembles.statistics.samples.counted_durations import CountedDurations

Side = Run | Ensemble | CountedDurations


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
    read = [
        [group_calls(run, selection.for_run(run, from_summary=True), single) for run in group]
        for group in groups
    ]
    names = list(names) if names is not None else [runs_name([run.path for run in group]) for group in groups]
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
    notes = [f"{run.path}: {note}" for group in groups for run in group for note in run.notes]
    kinds = []
    for layer, op in sorted(keys, key=lambda key: -keys[key]):
        samples, unit = _samples_of(read, (layer, op), single)
        kinds.append(Kind(samples, op, layer, unit))
    found = compare_kinds(kinds, names=names, margin=margin, level=level, seed=seed)
    doubts = [
        f"{run.path}: {note}"
        for group, theirs in zip(groups, read, strict=True)
        for run, calls in zip(group, theirs, strict=True)
        for note in dict.fromkeys(note for kind in calls.notes.values() for note in kind)
    ]
    return [
        replace(comparison, notes=list(dict.fromkeys([*comparison.notes, *notes, *doubts])))
        for comparison in found
    ]


def runs_name(paths: Sequence[str]) -> str:
    """The name of a group of runs: that of the first, and how many more."""
    first = paths[0].rstrip("/") or paths[0]
    return first if len(paths) == 1 else f"{first} and {len(paths) - 1} more"


def _samples_of(
    read: Sequence[Sequence[ComparedCalls]], key: Key, single: bool
) -> tuple[list[list[CountedDurations]], str]:
    if single and all(key in group[0].calls for group in read):
        samples, unit = sliced([group[0].calls[key] for group in read])
        return [[sample] for sample in samples], unit
    groups = [[run.sample(key) for run in group if key in run.time_s] for group in read]
    return groups, "phases"


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


def _in_pieces(groups: Sequence[Sequence[Any]]) -> tuple[list[list[CountedDurations]], str]:
    """Samples of ensembles; of single ones whose calls are known, in pieces."""
    if all(len(group) == 1 for group in groups):
        sides = [group[0] for group in groups]
        if all(isinstance(side, Ensemble) and side.durations_s is not None for side in sides):
            runs = [
                RunCalls(side.durations_s, side.phase, side.rank, side.start_ns, side.sample.resolution_s)
                for side in sides
            ]
            samples, unit = sliced(runs)
            return [[sample] for sample in samples], unit
    return [
        [side if isinstance(side, CountedDurations) else side.sample for side in group] for group in groups
    ], "phases"


def _name_of_ensembles(group: Sequence[Any], number: int) -> str:
    name = getattr(group[0], "name", "") if len(group) == 1 else ""
    return f"{number}: {name}" if name else f"group {number}"
