"""Compare runs and ensembles: choose calls and groups, then call the statistics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Unpack

from ensembles.comparison.compare_samples import compare_kinds, compare_samples, summarize_group
from ensembles.comparison.difference import ReadRun, make_differences, times_and_calls, times_of_kinds
from ensembles.comparison.hypothesis_tests import LEVEL, compute_run_tests, has_repetitions
from ensembles.comparison.report import Comparison, Group
from ensembles.comparison.times import (
    MARGIN,
    OF_PROCESSES,
    ComparedSums,
    Total,
    kinds_to_test,
    make_total,
    sums_of_run,
    totals_of_runs,
)
from ensembles.comparison.units import (
    WAITS_FOR_TASKS,
    ComparedCalls,
    Key,
    Kind,
    RunCalls,
    group_calls,
    sliced,
)
from ensembles.comparison.verdict import (
    is_replaced,
    posts_of_run,
    quantile_ratios,
    with_replaced,
    with_totals,
)
from ensembles.ensemble.ensemble import Ensemble
from ensembles.model.errors import EnsioError
from ensembles.model.holds import layers_held
from ensembles.model.levels import LITTLE
from ensembles.model.units import count_text
from ensembles.run.filter_arguments import with_filters
from ensembles.run.nothing_selected import refuse_nothing
from ensembles.run.run import Run
from ensembles.run.selection import Filters, Selection
from ensembles.run.step_times import step_times_s
from ensembles.statistics.samples.counted_durations import CountedDurations

Side = Run | Ensemble | CountedDurations


@with_filters
def compare(
    a: Side | Iterable[Side],
    b: Side | Iterable[Side],
    *more: Side | Iterable[Side],
    margin: float = MARGIN,
    level: float = LEVEL,
    seed: int = 0,
    names: Sequence[str] | None = None,
    **filters: Unpack[Filters],
) -> Comparison:
    """Decide whether runs or ensembles are the same, what moved, and by how much.

    Parameters
    ----------
    a, b, *more : Run, Ensemble, CountedDurations, or a list of these
        Groups; a list contains repetitions of one configuration. The others are compared with the first
        group. Several runs per group give more certainty: with one run, only its own phases show how it
        varies.
    margin : float
        Largest relative change that counts as no change: 0.1 is 10 %.
    level : float
        Probability of a false "different"; intervals have the confidence level 1 − `level`.
    seed : int
        Seed of the permutations and the bootstrap.
    names : sequence of str, optional
        Names of the groups.
    **filters
        Filters of runs: ``op``, ``call``, ``layer``, ... as for `Run.select`. Without filters, the kind of
        calls that takes the most time is compared.

    Returns
    -------
    Comparison
        With the verdict ``same``, ``different`` or ``inconclusive``.

    Raises
    ------
    EnsioError
        A filter or option is invalid, a run cannot be read, or no kind of calls occurs in all groups.

    Examples
    --------
    Of the same program with another seed, no part of the distribution moved significantly:

    >>> comparison = en.compare(en.open("ensio-ior"), en.open("ensio-ior-2"), op="write")
    >>> comparison.verdict
    'inconclusive'

    Durations that are twice as long in each of 60 phases are different:

    >>> random, phase = np.random.default_rng(1), np.repeat(np.arange(60), 50)
    >>> before, after = random.lognormal(0.0, 0.1, (2, 3000)) * [[1.0], [2.0]]
    >>> comparison = en.compare(en.Ensemble(before, phase), en.Ensemble(after, phase))
    >>> comparison.verdict, round(comparison.shift.median_ratio, 1)
    ('different', 2.0)
    """
    groups = [_as_list(group) for group in (a, b, *more)]
    if any(isinstance(side, Run) for group in groups for side in group):
        if not all(isinstance(side, Run) for group in groups for side in group):
            raise EnsioError("runs cannot be compared with ensembles: give only runs or only ensembles")
        found = compare_runs(groups, names=names, margin=margin, level=level, seed=seed, **filters)
        return found[0]
    if filters:
        raise EnsioError(f"filters ({', '.join(filters)}) apply to runs only: filter the run of the ensemble")
    names = names or [_name_of_ensembles(group, number) for number, group in enumerate(groups, 1)]
    samples, unit = _in_pieces(groups)
    return compare_samples(samples, names=names, margin=margin, level=level, seed=seed, unit=unit)


@with_filters
def compare_runs(
    groups: Sequence[Sequence[Run]],
    *,
    names: Sequence[str] | None = None,
    margin: float = MARGIN,
    level: float = LEVEL,
    seed: int = 0,
    selection: Selection | None = None,
    **filters: Unpack[Filters],
) -> list[Comparison]:
    """Compare groups of runs for each kind of calls."""
    selection = Selection.parse(**filters) if selection is None else selection
    single = all(len(group) == 1 for group in groups)
    more = has_repetitions([len(group) for group in groups]), selection == Selection()
    read = [[read_run(run, selection, single, *more) for run in group] for group in groups]
    if not any(run.calls.time_s for group in read for run in group):
        refuse_nothing(groups[0][0], selection, 0)
    return compare_read_runs(
        read,
        names=names,
        margin=margin,
        level=level,
        seed=seed,
        with_waits=selection.ops is not None or selection.calls is not None,
        is_whole=selection == Selection(ops=selection.ops, layers=selection.layers),
        per_byte=selection.per_byte,
    )


def _causes_s(run: Run) -> dict[str, float]:
    """Return by how much findings make a run longer."""
    from ensembles.diagnosis.diagnose import diagnose

    return {each.id: each.share_s for each in diagnose(run).findings if each.share_s}


def read_run(
    run: Run, selection: Selection, single: bool, with_steps: bool = False, with_causes: bool = False
) -> ReadRun:
    """Read what a comparison needs of a run, perhaps with the times of its steps, and its diagnosis."""
    calls = group_calls(run, selection.for_run(run, from_summary=True), single)
    posts = [
        f"{count_text(sums.requests, op)} only post a request, for which another call waits: compare the "
        "time in I/O, not the durations of posts with those of blocking calls"
        for op, sums in run.info.flights.items()
        if sums.requests
    ]
    chosen = run.info.environment.get("ENSIO_LAYERS", "")
    return ReadRun(
        run.path,
        calls,
        sums_of_run(run),
        run.notes + posts,
        posts_of_run(run, selection),
        step_times_s(run) if with_steps else [],
        _causes_s(run) if with_causes else {},
        run.info.recorder.partition(" ")[0] + f" with ENSIO_LAYERS={chosen}" * bool(chosen),
        layers_held(run.calls, chosen),
    )


def compare_read_runs(
    groups: Sequence[Sequence[ReadRun]],
    *,
    names: Sequence[str] | None = None,
    margin: float = MARGIN,
    level: float = LEVEL,
    seed: int = 0,
    with_waits: bool = False,
    is_whole: bool = True,
    per_byte: bool = False,
) -> list[Comparison]:
    """Compare groups of runs that were read before, perhaps from a history."""
    single = all(len(group) == 1 for group in groups)
    groups, unseen = _seen_by_all(groups)
    read = [[run.calls for run in group] for group in groups]
    names = list(names) if names is not None else [runs_name([run.path for run in group]) for group in groups]
    notes = unseen + [f"{run.path}: {note}" for group in groups for run in group for note in run.notes]
    times_s: dict[Key, float] = {}
    for calls in (calls for group in read for calls in group):
        for key, time_s in calls.time_s.items():
            times_s[key] = times_s.get(key, 0.0) + time_s
    if not with_waits:
        times_s = {key: time_s for key, time_s in times_s.items() if key not in WAITS_FOR_TASKS}
    totals = {key: _totals_of_kind(read, key, margin, level) for key in times_s}
    holds = {bool(run.calls.counts): run.path for group in groups for run in group if run.calls.time_s}
    if len(holds) > 1:
        raise EnsioError(
            f"{holds[True]} holds sums of calls, and {holds[False]} single calls, which are not of the same "
            "kinds: compare logs of counters with each other, and traces with each other"
        )
    common = [key for key in times_s if all(any(key in run.time_s for run in group) for group in read)]
    alone = [key for key in times_s if key not in common and totals[key][0].is_finding]
    if not common and not alone:
        raise EnsioError(
            "no kind of call occurs in all of these runs: see their calls with ensio info, or change the "
            "filters"
        )
    replaced = [
        key
        for key in common
        if is_replaced([[(run.posts.get(key, 0), run.calls.number(key)) for run in each] for each in groups])
    ]
    common = [key for key in common if key not in replaced]
    summed = [key for key in common if any(key in run.counts for group in read for run in group)]
    kinds, main = [], kinds_to_test(*times_and_calls(read, list(times_s)), least_share=LITTLE)
    for layer, op in sorted((key for key in common if key not in summed), key=lambda key: -times_s[key]):
        samples, unit = _samples_of(read, (layer, op), single)
        kinds.append(Kind(samples, op, layer, unit, f"{layer} {op}" in main))
    found = compare_kinds(kinds, names=names, margin=margin, level=level, seed=seed) if kinds else []
    if len(groups) == 2 and single:
        found = [
            replace(one, quantiles=quantile_ratios(*(sample for (sample,) in kind.groups)))
            for one, kind in zip(found, kinds, strict=True)
        ]
    found += [_without_durations(read, key, names, margin, level) for key in [*alone, *replaced, *summed]]
    run_totals, moved_bytes = totals_of_runs([[run.sums for run in group] for group in groups], margin, level)
    run_tests = compute_run_tests(
        names,
        [[run.sums.totals for run in group] for group in groups],
        [[{key: run.time_s[key] for key in times_s if key in run.time_s} for run in group] for group in read],
        [[run.steps_s for run in group] for group in groups],
    )
    if is_whole:
        for key in totals:
            totals[key] += moved_bytes.get(key, [])
    # Other tasks do the I/O: it is another program, whatever single calls show.
    is_alike = not any(total.what in ("tasks", "io_tasks") and total.differs for total in run_totals)
    unsteady = [
        f"{one.layer} {one.op}"
        for one in (replace(each, totals=totals[each.layer or "", each.op or ""]) for each in found)
        if single
        and is_alike
        and one.verdict != "different"
        and not one.counts_differ
        and not one.sizes_differ
    ]
    differences = make_differences(groups, names, level, margin, unsteady=unsteady)
    run_times = [each for one in differences for each in one.times]
    kind_times = {} if per_byte else times_of_kinds(read, list(times_s), names, unsteady)
    doubts = [
        f"{run.path}: {note}"
        for group in groups
        for run in group
        for note in dict.fromkeys(note for kind in run.calls.notes.values() for note in kind)
    ]
    found = [
        with_totals(
            replace(
                comparison,
                run_totals=run_totals,
                run_times=run_times,
                differences=differences,
                run_tests=run_tests,
                notes=list(dict.fromkeys([*comparison.notes, *notes, *doubts])),
            ),
            totals[comparison.layer or "", comparison.op or ""],
            kind_times.get(f"{comparison.layer} {comparison.op}", []),
        )
        for comparison in found
    ]
    if replaced:
        times = [[run.calls.time_s for run in group] for group in groups]
        posts = [[run.posts for run in group] for group in groups]
        found = with_replaced(found, replaced, posts, times, names)
    return sorted(
        found, key=lambda one: (one.verdict != "different", -_time_lost_s(one), -sum(one.totals[1].typical))
    )


def _seen_by_all(groups: Sequence[Sequence[ReadRun]]) -> tuple[Sequence[Sequence[ReadRun]], list[str]]:
    """Leave out what only some of the recorders see: calls of layers, and sums over all calls. Say so."""
    held: dict[str, set[str]] = {}
    used: set[str] = set()
    for run in (run for group in groups for run in group):
        mine = {layer for layer, _ in run.calls.time_s}
        held.setdefault(run.recorder, set()).update(run.layers, mine)
        used |= mine
    unseen = {layer for layer in used if any(layer not in mine for mine in held.values())}
    if len(held) < 2 or "" in held or not unseen:
        return groups, []
    if "stdio" in unseen and max(_share_of_streams(run) for group in groups for run in group) > LITTLE:
        unseen.add("posix")  # a recorder that does not see streams sees the calls inside of them
    said = f"calls of {' and '.join(sorted(unseen))} are left out: {' and '.join(held)} do not all see them"
    if unseen >= used:
        raise EnsioError(f"{said}: record all runs with one of these")
    return [[_without_layers(run, unseen) for run in group] for group in groups], [said]


def _share_of_streams(run: ReadRun) -> float:
    times_s = run.calls.time_s
    streams_s = sum(time_s for (layer, _), time_s in times_s.items() if layer == "stdio")
    return streams_s / max(sum(times_s.values()), 1e-9)


def _without_layers(run: ReadRun, layers: set[str]) -> ReadRun:
    times_s = {key: time_s for key, time_s in run.calls.time_s.items() if key[0] not in layers}
    totals = {name: value for name, value in run.sums.totals.items() if name in OF_PROCESSES}
    moved = {key: sums for key, sums in run.sums.moved.items() if key[0] not in layers}
    return replace(
        run,
        calls=replace(run.calls, time_s=times_s),
        sums=ComparedSums(totals, moved),
        steps_s=[],
        causes_s={},
    )


def _totals_of_kind(
    read: Sequence[Sequence[ComparedCalls]], key: Key, margin: float, level: float
) -> list[Total]:
    calls = [[run.number(key) for run in group] for group in read]
    times_s = [[run.time_s.get(key, 0.0) for run in group] for group in read]
    return [make_total("calls", calls, margin, level), make_total("time_s", times_s, margin, level)]


def _without_durations(
    read: Sequence[Sequence[ComparedCalls]], key: Key, names: Sequence[str], margin: float, level: float
) -> Comparison:
    """Return the comparison of calls that some group does not make, or whose durations are not recorded."""
    groups, reason = [], ""
    for name, group in zip(names, read, strict=True):
        mine = [run for run in group if key in run.time_s]
        if any(key in run.counts for run in mine):
            reason = "single calls are not in the record"
            groups.append(Group(name, len(mine), sum(run.number(key) for run in mine), None))
        else:
            groups.append(summarize_group(name, [run.sample(key) for run in mine]))
    return Comparison("inconclusive", reason, key[1], key[0], groups, margin, level)


def _time_lost_s(found: Comparison) -> float:
    """Return by how much the time of these calls changed: what differs most comes first."""
    if found.verdict != "different":
        return 0.0
    time_s = (found.blocked or found.totals[1]).typical
    return max(abs(value - time_s[0]) for value in time_s[1:])


def runs_name(paths: Sequence[str]) -> str:
    """Return the name of a group of runs: the first path and the number of further ones."""
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
                f"a {type(side).__name__} cannot be compared: give runs (ensembles.open), ensembles, or "
                "lists of them"
            )
    if not sides:
        raise EnsioError("a group without runs cannot be compared: give at least one run")
    return sides


def _in_pieces(groups: Sequence[Sequence[Any]]) -> tuple[list[list[CountedDurations]], str]:
    """Return the samples of ensembles; single ensembles with known calls are divided into pieces."""
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
