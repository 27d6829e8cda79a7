"""Many calls whose cost comes from no byte, in sums: number and time of each function by task."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensembles.diagnosis.case import LEAST_CALLS, SMALL_CLASS
from ensembles.diagnosis.fewer_calls import WITHOUT_BYTES, at_most_a_warning, costliest, told
from ensembles.diagnosis.finding import FROM_SHARE, Finding
from ensembles.diagnosis.principles import FEWER_CALLS
from ensembles.diagnosis.summed.case import SummedCase, summed_finding
from ensembles.diagnosis.summed.metadata import NO_LOOKUPS
from ensembles.model.units import count_text, seconds_text
from ensembles.structure.library_time import LIBRARIES, WITH_WAITS


def find_summed(case: SummedCase, findings: Sequence[Finding]) -> list[Finding]:
    """Find calls of storage without bytes, and small calls of libraries whose storage calls were recorded.

    Parameters
    ----------
    case : SummedCase
    findings : sequence of Finding
        Of the rules: what ``metadata-storm`` explains is not named twice.
    """
    run = case.run
    cells, layers = run.summary.cells, np.array([call.layer for call in run.summary.calls])
    inner_ns = np.bincount(cells["call"], cells["inner_ns"], len(layers))
    stored = [name for name in LIBRARIES if name not in WITH_WAITS and inner_ns[layers == name].any()]
    of_storage = (case.layer == "posix") & np.isin(case.op, WITHOUT_BYTES)
    if any(each.id == "metadata-storm" for each in findings):
        of_storage &= (case.op == "seek") | np.isin(case.name, list(NO_LOOKUPS))
    rows = of_storage | (np.isin(case.layer, stored) & (case.rows["size"] <= SMALL_CLASS))
    calls, tasks = case.calls_of_tasks(), len(case.ranks)
    saved_ns = np.where(rows, case.rows["own_ns"], 0.0)
    saved_ns *= (calls.max(axis=1, initial=0) >= LEAST_CALLS)[case.rows["call"]]
    saved_ns *= 1 - tasks / np.maximum(calls.sum(axis=1), tasks)[case.rows["call"]]
    named = costliest(np.bincount(case.rows["call"], saved_ns))
    saved_ns[~np.isin(case.rows["call"], named)] = 0.0
    saved_s = case.divided(saved_ns)
    if not named or case.gain_s(saved_s) < FROM_SHARE["warning"] * case.run_s:
        return []
    sums = [np.bincount(case.rows["call"], case.rows[name] * rows) for name in ("n", "own_ns")]
    functions = [
        (call, f"{count_text(int(count), 'call')} of {call.name} take {seconds_text(1e-9 * ns / count)} each")
        for call, count, ns in ((run.summary.calls[at], sums[0][at], sums[1][at]) for at in named)
    ]
    title, checks, advice = told(functions)
    names = [call.name for call, _ in functions]
    evidence = {"functions": names, "calls": int(sums[0][named].sum())}
    found = summed_finding(
        case,
        FEWER_CALLS,
        title,
        checks,
        evidence,
        (np.zeros(tasks), saved_s, saved_s),
        layer=None,
        calls=names,
        advice=advice,
    )
    return [] if found is None else [at_most_a_warning(found)]
