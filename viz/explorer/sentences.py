"""What the explorer says of the calls that are selected, marked and in view, and of their modes."""

from __future__ import annotations

import math

import numpy as np

from ensembles.answers.modes import ModesAnswer
from ensembles.answers.tail import TailAnswer
from ensembles.ensemble.ensemble import Ensemble
from ensembles.ensemble.main_ensemble import tasks_of
from ensembles.model.units import bytes_text, count_text, seconds_text, share_text
from ensembles.run.nothing_selected import why_nothing
from ensembles.summaries.raster import CLASSES
from ensembles.viz.common.single_calls import Window
from ensembles.viz.explorer.calls import Calls
from ensembles.viz.explorer.shown import Shown
from ensembles.viz.explorer.view import Chosen, Interval, View

OF_ALL = "No call is marked: these are modes and tail of the calls that the filters select."
NO_MARK = "No call is marked: the window has all calls that the filters select."
OF_FILTERS = "findings are of the whole run, phases and call indices of the calls that the filters select"


def sentence_of(shown: Shown, calls: Calls, view: View, window: Window | None, several: bool = False) -> str:
    """Describe the calls that are marked or selected, and how many of them are in view."""
    what = "marked" if view.is_marked else "shown" if window is None else "selected"
    what += f" of {shown.run.path}" if several else ""
    if not calls.count:
        return calls.reading or _nothing(shown, calls, view, what)
    ranks = calls.ranks[0]
    of_calls = " of whole calls" if view.per_byte else ""
    count = f"{'At most ' if calls.is_bound else ''}{count_text(calls.count, 'call')}"
    text = (
        f"{count} {'is' if calls.count == 1 else 'are'} {what}, of {ranks:,} of {shown.run.tasks:,} ranks, "
        f"{_moments(*calls.extent_ns)}. Durations{of_calls}: {_durations(*calls.durations_ns)}."
        + (f" {calls.reading}" if calls.reading else _time_of(shown, calls, view))
    )
    return text if window is None else f"{text} {_in_view(calls, view, window)}"


def _moments(first_ns: int, last_ns: int) -> str:
    """Write when calls begin and end, with more digits where both would be the same."""
    texts = [seconds_text(end * 1e-9) for end in (first_ns, last_ns)]
    if texts[0] != texts[1]:
        return f"from {texts[0]} to {texts[1]}"
    if first_ns == last_ns:
        return f"at {texts[0]}"
    return f"from {_times((first_ns * 1e-9, last_ns * 1e-9), least=1)}"


def _durations(low_ns: int, middle_ns: float, high_ns: int) -> str:
    low, middle, high = (seconds_text(each * 1e-9) for each in (low_ns, middle_ns, high_ns))
    return f"each {low}" if low == high else f"{low} to {high}, median {middle}"


def chosen_text(call: Chosen) -> str:
    """Describe a call that was chosen among the slowest ones."""
    at = f"{call.start_s:,.6f}".rstrip("0").rstrip(".")
    where = f", on {call.file}" if call.file else ""
    return (
        f"Chosen and outlined: the call of rank {call.rank} at {at} s, which takes "
        f"{seconds_text(call.duration_s)}{where}."
    )


def _time_of(shown: Shown, calls: Calls, view: View) -> str:
    """Say what the I/O calls among some calls take, and how many calls wait; empty: it is not known."""
    if calls.is_bound:
        return ""
    io_ns = _io_ns(calls)
    waiting = int(calls.durations().get("wait", (0, np.zeros(0)))[1].sum())
    text = ""
    if io_ns:
        who = "Those that are I/O" if waiting else "They"
        text = f" {who} take {seconds_text(io_ns * 1e-9)}"
        if view.is_marked:
            share = io_ns / max(_io_ns(shown.calls(view)), io_ns)
            text += f", {share_text(share)} of the time in I/O calls"
        text += "."
    if waiting:
        text += f" {count_text(waiting, 'call')} {'waits' if waiting == 1 else 'wait'} for other tasks."
    return text


def _io_ns(calls: Calls) -> int:
    """Return the time in calls that do not wait for other tasks, those inside others left out."""
    time_ns = calls.raster().time_ns.sum(axis=(1, 2))
    return int(time_ns.sum() - time_ns[list(CLASSES).index("wait")])


def _in_view(calls: Calls, view: View, window: Window) -> str:
    parts = [] if view.zoom_s is None else [_times(view.zoom_s)]
    if view.zoom_ranks is not None:
        one = window.first == window.last
        parts.append(f"rank {window.first:,}" if one else f"ranks {window.first:,} to {window.last:,}")
    count = calls.window(window).count
    if count is not None:
        parts.append(f"with {count:,} of these calls")
    return f"In view: {', '.join(parts)}. The command and the Python below select all {calls.count:,}."


def _times(window_s: Interval, least: int = 2) -> str:
    """Write the ends of a window in seconds, with digits that show a hundredth of it, or a tenth."""
    low, high = window_s
    digits = min(max(least - math.floor(math.log10(max(high - low, 1e-9))), 0), 9)
    return f"{low:z,.{digits}f} to {high:z,.{digits}f} s"


def _nothing(shown: Shown, calls: Calls, view: View, what: str) -> str:
    if shown.is_growing and not calls.none:  # calls may still come
        return f"No call is {what}."
    return f"No call is {what}: {calls.none or why_nothing(shown.run, shown.selection(view.selecting()))}."


def modes_text_of(shown: Shown, calls: Calls, view: View) -> str:
    """Return the modes of the marked calls, the slowest of one call of each task, and what was left out."""
    if not calls.count:
        return calls.reading or "There is no call."
    ensemble = shown.ensemble(view)
    notes = [f"{note[:1].upper()}{note[1:]}." for note in ensemble.notes]
    if view.per_byte:
        notes.append(_per_mib_text(ensemble))
    if view.selecting().keys() & {"duration", "rate"}:
        tail = "No slowest call is predicted of calls that were chosen by their durations."
    else:
        found = ensemble.tail(tasks_of(ensemble, max(shown.run.tasks, 1)))
        tail = str(TailAnswer(**vars(found)))
    return "\n".join([*notes, str(ModesAnswer(**vars(ensemble.modes()))), "", tail])


def _per_mib_text(ensemble: Ensemble) -> str:
    """Say what durations per MiB are, and of calls of which sizes."""
    moved = ensemble.bytes
    sizes = ""
    if moved is not None and len(moved):
        least, most = bytes_text(float(moved.min())), bytes_text(float(moved.max()))
        each = f"all moved {least}" if least == most else f"of {least} to {most} are taken together"
        sizes = f" The calls {each}."
    return f"Times are per MiB that a call moved: its duration, divided by its bytes.{sizes}"
