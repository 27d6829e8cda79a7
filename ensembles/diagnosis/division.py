"""The division of a run's time into the entries of its account, for every kind of record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ensembles.diagnosis.account import Account, Entry
from ensembles.diagnosis.finding import Finding
from ensembles.diagnosis.principles import OUTSIDE, cause_of


def divide(
    run_s: float,
    io_s: float,
    findings: Sequence[Finding],
    inside: Sequence[Entry],
    outside: Iterable[Entry] = (),
    is_of_run: bool = False,
) -> Account:
    """Divide the time of a run, of any kind of record."""
    io_s = min(io_s, run_s)
    left_s, found = io_s, []
    for each in findings:
        middle_s = sum(each.gain_s or (0.0, 0.0)) / 2 if cause_of(each.id).in_io else 0
        time_s = min(middle_s if each.share_s is None else each.share_s, left_s)
        left_s -= time_s
        found.append(Entry(each.id, time_s))
    whole_s = sum(each.time_s for each in inside)
    rest = [replace(each, time_s=left_s * each.time_s / whole_s) for each in inside if whole_s > 0]
    io_s, left_s = sum(each.time_s for each in (*found, *rest)), run_s
    left_s -= io_s
    for entry in outside:
        rest.append(replace(entry, time_s=min(max(entry.time_s, 0.0), left_s)))
        left_s -= rest[-1].time_s
    entries = [each for each in sorted(found, key=lambda each: -each.time_s) if each.time_s > 0]
    entries += [each for each in rest if each.time_s > 0]
    return Account(run_s, io_s, (*entries, Entry(OUTSIDE, max(left_s, 0.0))), is_of_run)
