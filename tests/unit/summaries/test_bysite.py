"""Totals of call sites are those that plain loops give, however the events are divided."""

from __future__ import annotations

from collections import Counter, defaultdict
from types import SimpleNamespace

import numpy as np
import pytest
from builders import make_events
from generated_events import CALLS, events, parts_of
from hypothesis import given
from hypothesis import strategies as st

from ensembles.answers.sites import site_parts
from ensembles.faces.text import answer_text
from ensembles.model.events import Call, Events
from ensembles.summaries.bysite import BySite, SitesByDuration
from ensembles.viz.report.tables import sites_html

BIT = {"read": 1, "write": 2}


def with_sites(whole: Events, seed: int) -> Events:
    """The same events, none inside another, from some of five sites and the unknown one."""
    random = np.random.default_rng(seed)
    columns = whole.columns | {
        "site": random.choice([0, 1, 2, 3, 0xFFFF], len(whole)),
        "depth": np.zeros(len(whole), "u1"),
    }
    return Events(columns, whole.calls, whole.files)


@given(whole=events(), seed=st.integers(0, 2**32))
def test_totals_are_those_of_plain_loops(whole: Events, seed: int) -> None:
    whole = with_sites(whole, seed)
    expected: dict[tuple, list[int]] = defaultdict(lambda: [0, 0, 0, 0, 0])
    for site, call, moved, carried, duration in zip(
        *(getattr(whole, name).tolist() for name in ("site", "call", "moved", "carried", "duration")),
        strict=True,
    ):
        row, op = expected[site, CALLS[call]], CALLS[call].op
        row[0] += 1
        row[1] += moved < 0
        row[2] += max(moved, 0) if op in BIT and not carried & BIT[op] else 0
        row[3] += duration
        row[4] = max(row[4], duration)
    table = BySite()
    for part in parts_of(whole, np.random.default_rng(seed)):
        other = BySite()
        other.add(part)
        table.merge(other)
    found = {
        key: [row.count, row.errors, row.bytes, row.exclusive_ns, row.max_ns]
        for key, row in table.rows.items()
    }
    assert found == dict(expected)
    assert sum(site.count for site in table.sites) == len(whole)
    order = [(site.only_waits, -site.exclusive_ns) for site in table.sites]
    assert order == sorted(order)
    assert all(
        site.io_ns == sum(row.exclusive_ns for call, row in site.calls.items() if call.op != "wait")
        for site in table.sites
    )
    assert all(site.only_waits == all(call.op == "wait" for call in site.calls) for site in table.sites)


def test_sites_that_only_wait_come_after_those_of_io() -> None:
    calls = [Call("pwrite", "posix", "write"), Call("MPI_Barrier", "mpisync", "wait")]
    columns = {"start": [0, 10, 500], "duration": [5, 400, 7], "call": [0, 1, 0], "site": [3, 4, 5]}
    table = BySite()
    table.add(make_events({name: np.array(column) for name, column in columns.items()}, calls))
    assert [(site.number, site.only_waits) for site in table.sites] == [(5, False), (3, False), (4, True)]
    frames = [SimpleNamespace(frames=()) for _ in range(6)]
    info = SimpleNamespace(sites=frames, label_of_site=str, environment={}, notes_on_calls=[])
    run = SimpleNamespace(info=info, calls=tuple(calls), files=[""])
    shown, said = site_parts(run, table.sites)
    columns = {column.header: column.values for column in shown.columns}
    assert columns["site"] == ("5", "3", "4")
    assert columns["share"] == (pytest.approx(0.583, abs=5e-4), pytest.approx(0.417, abs=5e-4), None)
    assert [each.id for each in said] == ["sites.only_wait"]
    report = sites_html(run, table).replace("\N{NO-BREAK SPACE}", " ")
    assert "<td>41.7 %</td>" in report
    assert "Share: of the time in I/O calls." in report


def test_a_site_of_few_columns_is_in_one_line() -> None:
    label = "POSIX_Xfer, aiori-POSIX.c:772"
    calls = [Call("write", "posix", "write")]
    columns = {"start": [0], "duration": [35_400_000], "call": [0], "site": [1], "moved": [96 << 20]}
    table = BySite()
    table.add(make_events({name: np.array(column) for name, column in columns.items()}, calls))
    run = SimpleNamespace(
        info=SimpleNamespace(label_of_site=lambda _: label, sites=[SimpleNamespace(frames=())] * 2)
    )
    head, _, row = answer_text(site_parts(run, table.sites)).splitlines()
    assert head.split() == ["exclusive", "share", "slowest", "bytes", "calls", "site"]
    label = "POSIX_GetFileSize, aiori-POSIX.c:914"
    head, _, row = answer_text(site_parts(run, table.sites)).splitlines()
    assert head.split() == ["exclusive", "share", "bytes", "calls", "site"]
    assert row.endswith(label)
    label = "x" * 80
    assert answer_text(site_parts(run, table.sites)).splitlines()[-1] == f"    {label}"


def test_exclusive_time_is_without_the_calls_inside() -> None:
    columns = {"start": [10, 0], "duration": [30, 100], "depth": [1, 0], "call": [0, 4], "site": [7, 7]}
    table = BySite()
    table.add(make_events({name: np.array(column) for name, column in columns.items()}, CALLS))
    (site,) = table.sites
    assert (site.number, site.time_ns, site.exclusive_ns, site.max_ns) == (7, 130, 100, 100)
    assert [call.name for call in site.calls] == ["write", "pwrite"]


def test_sites_of_one_line_are_added_up() -> None:
    columns = {"duration": [5, 6, 7], "site": [1, 2, 3]}
    table = BySite()
    table.add(make_events({name: np.array(column) for name, column in columns.items()}, CALLS))
    found = {site.number: (site.count, site.time_ns) for site in table.grouped(lambda number: number > 2)}
    assert found == {1: (2, 11), 3: (1, 7)}


@given(whole=events(), seed=st.integers(0, 2**32))
def test_calls_of_each_range_of_durations(whole: Events, seed: int) -> None:
    whole = with_sites(whole, seed)
    cuts = [100.5, 1e6]
    expected = [Counter(), Counter(), Counter()]
    for site, duration in zip(whole.site.tolist(), whole.duration.tolist(), strict=True):
        expected[sum(duration > cut for cut in cuts)][site] += 1
    found = SitesByDuration(cuts)
    for part in parts_of(whole, np.random.default_rng(seed)):
        other = SitesByDuration(cuts)
        other.add(part)
        found.merge(other)
    assert found.counts == expected
