"""A diagnosis as text: one screen, or everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ensembles.diagnosis.finding import Diagnosis, Finding, shown_html
from ensembles.diagnosis.principles import (
    FEWER_CALLS,
    LATE_TASK,
    RATE,
    SLOW_TASK,
    TURNS,
    UNDECIDED,
    WAITING,
    cause_of,
)
from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.units import bytes_text, count_text, seconds_text, share_text
from ensembles.model.wrapped import wrapped
from ensembles.structure.library_time import LIBRARIES

if TYPE_CHECKING:
    from ensembles.diagnosis.account import CallTime, Entry

MOST_SHORT = 5
"""Findings that one screen shows."""

LEAST_UNEXPLAINED = 1e-3
"""Share of the run below which waiting that no finding explains is not worth a line."""


class ShownDiagnosis(Diagnosis):
    """A diagnosis that shows itself as text, and in notebooks."""

    def __str__(self) -> str:
        return diagnosis_text(self)

    def _repr_html_(self) -> str:
        return shown_html(screen_text(self), self.findings)


def diagnosis_text(found: Diagnosis) -> str:
    """Return everything: evidence of each finding, and why causes could not be examined."""
    parts = [text for text in (_partial(found), account_text(found)) if text]
    parts += [_with_cause(str(finding), finding, found) for finding in found.findings] or [_nothing(found)]
    if clean := _clean(found):
        parts.append(f"looked for and not found: {', '.join(clean)}")
    if found.lost_data:
        parts.append(sanitize_text(found.lost_data))
    if waiting := unexplained_text(found):
        parts.append(waiting)
    if most := most_time_text(found):
        parts.append(most)
    causes: dict[str, list[str]] = {}
    for entry in found.not_examined:
        causes.setdefault(entry.reason, []).append(entry.id)
    parts += [f"not examined: {', '.join(names)}: {reason}" for reason, names in causes.items()]
    return "\n\n".join(parts)


def screen_text(found: Diagnosis) -> str:
    """Return one screen of 80 columns: the strongest findings, and what was checked."""
    large = [finding for finding in found.findings if not found.is_small(finding)]
    small = [finding.id for finding in found.findings if found.is_small(finding)]
    parts = [_with_cause(_short(finding), finding, found) for finding in large[:MOST_SHORT]] or [
        _wrapped(_nothing(found))
    ]
    if (more := len(large) - MOST_SHORT) > 0:
        parts.append(f"and {count_text(more, 'weaker finding')} (--verbose)")
    lines: list[str] = []
    if found.lost_data:
        lines.append(_wrapped(sanitize_text(found.lost_data)))
    lines += map(_wrapped, undecided_text(found))
    if small:
        lines.append(_wrapped(f"too small to matter (--verbose): {', '.join(small)}"))
    if waiting := unexplained_text(found):
        lines.append(_wrapped(waiting))
    if most := most_time_text(found):
        lines.append(_wrapped(most))
    if left := len(found.not_examined):
        examined = count_text(len(found.examined), "cause")
        lines.append(_wrapped(f"{examined} examined, {left} not (--verbose says which, and why)"))
    first = [_wrapped(text) for text in (_partial(found), account_text(found)) if text]
    return "\n\n".join([*first, *parts, *(["\n".join(lines)] if lines else [])])


def account_text(found: Diagnosis) -> str:
    """Return where the time of the run goes, in a few short sentences; ``""`` if that is not known."""
    account = found.account
    if account is None:
        return ""
    run_s, io_s = account.run_s, account.io_s
    whose = "" if account.is_of_run else " of the task with most I/O"
    said = [f"I/O is {share_text(io_s / run_s)} of {seconds_text(run_s)}{whose}"]
    notable = [each for each in account.entries if each.time_s >= found.SMALL_SHARE * run_s]
    for words, time_s, names in (
        ("Explained", account.explained_s, {each.principle for each in notable} - {RATE, UNDECIDED}),
        ("Bytes at this machine's rate", account.of(RATE), ()),
        ("Undecided", account.of(UNDECIDED), (UNDECIDED,)),
    ):
        if notable_s := time_s if time_s >= LEAST_UNEXPLAINED * run_s else 0.0:
            parts = [_entry_text(each, io_s) for each in notable if each.is_in_io and each.principle in names]
            detail = f" ({'; '.join(parts)})" if parts else ""
            said.append(f"{words}: {share_text(notable_s / io_s)}{' of it' * (len(said) == 1)}{detail}")
    if parts := [_entry_text(each, run_s) for each in notable if not each.is_in_io]:
        said.append(f"Of the run: {'; '.join(parts)}")
    return ". ".join(said) + "."


def _entry_text(entry: Entry, whole_s: float) -> str:
    """Return the share of an entry, what it is of, and where most of it is."""
    return f"{share_text(entry.time_s / whole_s)} {entry.words}{f', most in {entry.call}' * bool(entry.call)}"


def undecided_text(found: Diagnosis) -> list[str]:
    """Return what could cost much although one run does not decide it, a sentence each."""
    sentences = [f"not decided: {each.id}: {each.reason}" for each in found.undecided if each.suspected]
    others = [
        f"{each.id} (up to {seconds_text(each.at_most_s or 0.0)}"
        f"{f': record {each.record}' * bool(each.record)})"
        for each in found.undecided
        if not each.suspected
    ]
    if others:
        sentences.append(f"one run alone does not show {', '.join(others)}")
    return sentences


def unexplained_text(found: Diagnosis) -> str:
    """Return what tasks wait beyond what findings explain, and which share processors; ``""``: neither.

    Commands and reports say the same of the task that is late.
    """
    said = _waiting_text(found)
    if not found.crowded:
        return said
    if not said:
        return f"{found.crowded}: calls, and tasks between calls, also wait for a processor"
    return f"{said}; {found.crowded}, so that tasks are also late because they wait for a processor"


def _waiting_text(found: Diagnosis) -> str:
    left_s, why = found.unexplained_s, str(found.late_outside or found.late_entry or "")
    if any(each.id in (SLOW_TASK, LATE_TASK, TURNS) for each in found.findings):
        return ""  # waiting has its finding
    if left_s is None or found.run_s is None or left_s < LEAST_UNEXPLAINED * found.run_s:
        return why
    beyond = " beyond what findings explain" if found.findings else ""
    text = f"waiting for tasks that are late again and again{beyond}: {seconds_text(left_s)}"
    return f"{text}; {why}" if why else text


def most_time_text(found: Diagnosis) -> str:
    """Return which functions take most of the time in I/O calls, or ``""`` if there is none.

    Commands, reports and explorer say the same.
    """
    calls = ", ".join(map(_time_of_call, found.most_time))
    inside = [each for each in found.most_time if each.in_library]
    if inside:
        whose = f"the time in {_joined([each.call for each in inside])}"
        where = _joined([*dict.fromkeys(LIBRARIES[each.layer] for each in inside)])
        whole = len(inside) == len(found.most_time)
        calls += f"; {'this' if whole else whose} passed inside {where}, not in the file system"
    return f"time in I/O calls: {calls}" if calls else ""


def _time_of_call(each: CallTime) -> str:
    text = f"{share_text(each.share)} in {count_text(each.calls, 'call')} of {each.call}"
    size = each.of_size
    if size is None:
        return text
    long = f"of {bytes_text(round(size.mean_bytes))}, {seconds_text(size.mean_s)} each"
    if each.layer in LIBRARIES:
        long += " without inner calls"
    if size.calls == each.calls:
        return f"{text} {long}"
    return f"{text} ({share_text(size.share)} in {size.calls:,} {long})"


def _joined(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)


def _partial(found: Diagnosis) -> str:
    """Return what the record lacks; ``""``: nothing, or it is why nothing was examined."""
    is_why = {found.lacks} == {entry.reason for entry in found.not_examined} and not found.examined
    return f"of a part of the run: {sanitize_text(found.lacks)}" if found.lacks and not is_why else ""


def _nothing(found: Diagnosis) -> str:
    if not found.examined:
        reasons = {entry.reason for entry in found.not_examined}
        why = f": {reasons.pop()}" if len(reasons) == 1 else ""
        return f"no finding (nothing could be examined{why})"
    if found.lacks:
        return "no finding in what was recorded"
    account = found.account
    waits = account is not None and any(
        each.principle == WAITING and each.time_s >= found.SMALL_SHARE * account.run_s
        for each in account.entries
    )
    return (
        "no finding but the waiting above, for no task again and again"
        if waits
        else "no finding that matters"
    )


def _clean(found: Diagnosis) -> list[str]:
    names = {finding.id for finding in found.findings}
    of_principle = FEWER_CALLS in names
    return [
        name
        for name in found.examined
        if name not in names and not (of_principle and cause_of(name).principle == FEWER_CALLS)
    ]


def _with_cause(text: str, finding: Finding, found: Diagnosis) -> str:
    """Add the cause that explains a finding to its first line: it is a note whatever it gains alone."""
    cause = found.cause_of(finding)
    head, _, rest = text.partition("\n")
    return f"{head}, explained by {cause}\n{rest}" if cause else text


def _short(finding: Finding) -> str:
    lines = [
        f"{finding.severity}: {finding.id} (confidence {share_text(finding.confidence)})",
        _wrapped(finding.title, "  "),
    ]
    lines.append(_wrapped(sanitize_text(str(finding.where)), "  where   "))
    if finding.gain_s is not None:
        lines.append(_wrapped(finding.gain_text, "  gain    "))
    lines.append(_wrapped(finding.advice, "  advice  "))
    if finding.symptoms:
        lines.append(_wrapped(f"explains {', '.join(finding.symptoms)}", "  "))
    return "\n".join(lines)


def _wrapped(text: str, head: str = "") -> str:
    return wrapped(text, head, " " * len(head))
