"""How runs show themselves in notebooks: how much, how fast, and a small histogram."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ensembles.model.errors import EnsioError
from ensembles.model.notebook_html import facts_html, notes_html
from ensembles.model.units import bytes_text, count_text, seconds_text, share_text

if TYPE_CHECKING:
    from ensembles.run.run import Run

_MOST_EVENTS = 1 << 21
_MOST_CALLS = 3
_LEAST_SHARE = 0.005
"""Of the time in calls: functions with less would be 0 %."""


def run_facts_html(run: Run) -> str:
    """Return the numbers of ``ensio info`` and the durations of the main calls; nothing for long runs."""
    if run.reading.most_events > _MOST_EVENTS:
        text = f"up to {count_text(run.reading.most_events, 'call')}: ensio info reads them all"
        return facts_html([("recorded", text)])
    from ensembles.ensemble.display import durations_svg
    from ensembles.ensemble.main_ensemble import ensemble_of
    from ensembles.run.information import collect_information

    try:
        information = collect_information(run)
    except EnsioError as error:
        return facts_html([("not read", str(error))])
    calls = count_text(information["recorded_calls"], "call")
    facts = [
        ("recorded", f"{calls} on {count_text(information['files'], 'file')}"),
        ("run", seconds_text(information["run_s"])),
        ("time in I/O, all tasks", seconds_text(information["io_time_s"])),
    ]
    for label, op in (("read", "read"), ("written", "write")):
        each = information["transfers"][op]
        rate = each["active_bytes_per_s"]
        how_fast = "" if rate is None else f", {bytes_text(rate)}/s while data moved"
        facts.append((label, bytes_text(each["bytes"]) + how_fast))
    times_s = {name: each["time_s"] for name, each in information["calls"].items() if each["op"] != "wait"}
    whole_s = sum(times_s.values())
    most = sorted(times_s, key=lambda name: -times_s[name])[:_MOST_CALLS]
    most = [name for name in most if times_s[name] >= _LEAST_SHARE * whole_s]
    if whole_s > 0:
        facts.append(
            ("most time in", ", ".join(f"{name} {share_text(times_s[name] / whole_s)}" for name in most))
        )
    try:
        ensemble = ensemble_of(run)
    except EnsioError:  # No calls, or no durations, as in counters of other tools: there is no histogram.
        return facts_html(facts)
    return facts_html(facts) + durations_svg(ensemble) + notes_html(ensemble.left_out)
