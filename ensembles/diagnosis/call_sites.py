"""The call sites of a finding: the places in the program that led to the calls it concerns."""

from __future__ import annotations

from dataclasses import replace
from glob import escape
from typing import TYPE_CHECKING

from ensembles.diagnosis.finding import Finding

if TYPE_CHECKING:
    from ensembles.run.run import Run

MOST_SITES = 3
"""Sites that a finding names, at most."""

LEAST_SHARE = 0.05
"""Least share of the calls that a site leads to, to be named."""


def with_sites(run: Run, finding: Finding) -> Finding:
    """Name the call sites of the calls that a finding concerns.

    Parameters
    ----------
    run : Run
        Its call sites are known, and every call is an event; otherwise the finding stays as it is.
    finding : Finding

    Returns
    -------
    Finding
    """
    if len(run.sites) < 2 or not run.has_all_events:
        return finding
    where = finding.where
    totals = run.by_site(
        op=where.op,
        layer=where.layer,
        call=None if where.calls is None else list(where.calls),
        file=[escape(name) for name in where.files] if where.files else None,
        rank=[f"{low}-{high}" for low, high in where.ranks] or None,
        time=None if where.times_s is None else f"{where.times_s[0]:.9f}..",
        ordinal=[f"{low}-{high}" for low, high in where.ordinals] or None,
    )
    every = sum(site.count for site in totals)
    shares = [(run.label_of_site(site.number), site.count / every) for site in totals if site.number]
    named = sorted((one for one in shares if one[1] >= LEAST_SHARE), key=lambda one: -one[1])
    return replace(finding, where=replace(where, sites=tuple(named[:MOST_SITES])))
