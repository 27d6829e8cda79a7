"""The diagnosis of a run: the account of its time, findings, and what one run does not decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ensembles.diagnosis import diagnose as diagnosis
from ensembles.diagnosis.account import Account, CallTime, Entry
from ensembles.diagnosis.finding import Diagnosis, Finding, Gain, is_open
from ensembles.diagnosis.limits import FAR
from ensembles.diagnosis.principles import (
    LATE_TASK,
    RATE,
    RECORDED,
    RECORDER,
    SLOW_TASK,
    TURNS,
    UNDECIDED,
    WAITING,
)
from ensembles.faces.answer import MOST_LISTED, MOST_ROWS, Answer, PlainAnswer, shown_as
from ensembles.model.levels import WORTH_A_LINE
from ensembles.model.notebook_html import intervals_svg
from ensembles.model.statement import Facts, Interval, Paragraph, Part, Statement
from ensembles.model.units import count_text, seconds_text
from ensembles.structure.libraries import LIBRARIES

_LINES = {RATE: "Bytes at this machine's rate", UNDECIDED: "Undecided"}
"""Lines of the account, by the principles of their entries; those of other ones in I/O are explained."""

_COLOURS = {"critical": "#b2182b", "warning": "#e08214", "note": "#4393c3"}
_MARKS = {True: "yes", False: "no ", None: "?  "}


@dataclass(frozen=True)
class FindingAnswer(Finding, Answer):
    """A finding as text and HTML, with all its evidence."""

    question = "diagnose"

    @property
    def parts(self) -> tuple[Part, ...]:
        """What happens, where, the evidence, the gain and the advice."""
        return (finding_facts(self, is_whole=True),)

    def _repr_html_(self) -> str:
        return _gains_svg((self,)) + super()._repr_html_()


@dataclass(frozen=True)
class DiagnosisAnswer(Diagnosis, Answer):
    """A diagnosis as text and HTML."""

    question = "diagnose"

    @property
    def parts(self) -> tuple[Part, ...]:
        """One screen: the account, the strongest findings, and what was checked."""
        large = [each for each in self.findings if not self.is_small(each)]
        small = [each.id for each in self.findings if self.is_small(each)]
        shown: list[Part] = [finding_facts(each, self.cause_of(each)) for each in large[:MOST_LISTED]]
        said = [*self.below]
        if small:
            said.append(Statement("diagnose.small", {"causes": small}))
        said += self.of_examined
        more: list[Part] = []
        if len(large) > MOST_LISTED:
            more = [(Statement("diagnose.more", {"count": len(large) - MOST_LISTED}),)]
        return self.above, *(shown or [self.nothing]), *more, tuple(said)

    def in_full(self) -> PlainAnswer:
        """Return everything: evidence of each finding, and why causes could not be examined."""
        shown: list[Part] = [
            finding_facts(each, self.cause_of(each), is_whole=True) for each in self.findings
        ]
        named = {finding.id for finding in self.findings}
        clean = [name for name in self.examined if name not in named]
        reasons: dict[str, list[str]] = {}
        for entry in self.not_examined:
            reasons.setdefault(entry.reason, []).append(entry.id)
        parts: list[Part] = [self.above, *(shown or [self.nothing])]
        parts += [(Statement("diagnose.clean", {"causes": clean, "is_part": self.is_part}),)] * bool(clean)
        parts.append(tuple(said for said in self.below if said not in self.of_undecided))
        parts += [
            (Statement("diagnose.not_examined", {"causes": causes, "reason": reason}),)
            for reason, causes in reasons.items()
        ]
        return PlainAnswer("diagnose", tuple(parts), self.to_json(), self.notes)

    def _repr_html_(self) -> str:
        return _gains_svg(self.findings) + super()._repr_html_()

    @property
    def above(self) -> Paragraph:
        """What the record lacks, and where the time of the run goes."""
        is_why = {self.lacks} == {entry.reason for entry in self.not_examined} and not self.examined
        said = [Statement("diagnose.partial", {"lacks": self.lacks})] if self.lacks and not is_why else []
        return (*said, *([] if self.account is None else self._of_account(self.account)))

    @property
    def below(self) -> Paragraph:
        """What was lost, is not decided or not explained, and which functions take most of the time."""
        said = [Statement("diagnose.lost", {"lost": self.lost_data})] if self.lost_data else []
        if self.not_ended:
            processes = count_text(self.not_ended, "process")
            said.append(Statement("diagnose.not_ended", {"processes": processes}))
        return (*said, *self.of_undecided, *self.of_waiting, *self._of_calls())

    @property
    def of_undecided(self) -> Paragraph:
        """What could cost much although one run does not decide it."""
        said = [
            Statement("diagnose.undecided", {"id": each.id, "reason": each.reason})
            for each in self.undecided
            if each.suspected
        ]
        others = [
            Statement(
                "diagnose.could_cost", {name: getattr(each, name) for name in ("id", "at_most_s", "record")}
            )
            for each in self.undecided
            if not each.suspected
        ]
        return (*said, *([Statement("diagnose.one_run", {"causes": others})] if others else []))

    @property
    def of_waiting(self) -> Paragraph:
        """What tasks wait beyond what findings explain, and which share processors."""
        said, late = [], self.late_outside or self.late_entry
        left_s, is_found = self.unexplained_s, bool(self.findings)
        if not any(
            each.id in (SLOW_TASK, LATE_TASK, TURNS) for each in self.findings
        ):  # else it has its finding
            if left_s is not None and self.run_s and left_s >= WORTH_A_LINE * self.run_s:
                said.append(Statement("diagnose.waiting", {"left_s": left_s, "is_beyond": is_found}, left_s))
            if late is not None:
                said.append(Statement("diagnose.late", {"how": str(late)}))
        if self.crowded:
            values = {"tasks": self.crowded, "is_also": bool(said), "is_alone": not said}
            said.append(Statement("diagnose.crowded", values))
        return tuple(said)

    @property
    def of_examined(self) -> Paragraph:
        """How many causes could be examined, and how many not."""
        counts = {"examined": len(self.examined), "left": len(self.not_examined)}
        return (Statement("diagnose.examined", counts),) if self.not_examined else ()

    def _of_account(self, account: Account) -> Iterator[Statement]:
        """Say where the time of the run goes; first if it is the recorder that takes most of it."""
        run_s, io_s = account.run_s, account.io_s
        own = [each for each in account.entries if each.id in (RECORDED, RECORDER)]
        own_s = sum(each.time_s for each in own)
        if 2 * own_s > run_s:
            call = max(own, key=lambda each: each.time_s).call
            values = {"share": own_s / run_s, "call": call, "is_at_ends": not call}
            yield Statement("diagnose.recorder", values, own_s)
        lines: dict[str, list[Entry]] = {}
        for each in account.entries:
            what = _LINES.get(each.principle, "Explained") if each.is_in_io else "Of the run"
            lines.setdefault(what, []).append(each)
        parts: list[Statement] = []
        for what in ("Explained", *_LINES.values()):
            mine = lines.get(what, [])
            if io_s and sum(each.time_s for each in mine) >= self.SMALL_SHARE / 2 * io_s:
                values = {"what": what, "share": sum(each.time_s for each in mine) / io_s}
                is_named = (
                    what != _LINES[RATE] and max(each.time_s for each in mine) >= self.SMALL_SHARE * run_s
                )
                inside = self._listed(mine, io_s, run_s) if is_named else ()
                values |= {"is_first": not parts, "entries": [*inside]}
                parts.append(Statement("diagnose.part", values))
        outside = [*self._listed(lines.get("Of the run", []), run_s, run_s)]
        parts += [Statement("diagnose.outside", {"entries": outside})] * bool(outside)
        low, high = account.io_low_s / run_s, io_s / run_s
        values = {
            "share": high if low == high else Interval(low, high),
            "run_s": run_s,
            "is_of_one": not account.is_of_run and low == high,
            "parts": parts,
        }
        yield Statement("diagnose.account", values)

    def _listed(self, entries: Sequence[Entry], whole_s: float, run_s: float) -> Iterator[Statement]:
        """Name each notable entry, and add up the others if they are worth a line."""
        small = [each for each in entries if each.time_s < self.SMALL_SHARE * run_s]
        yield from (_entry(each, whole_s) for each in entries if each not in small)
        rest_s = sum(each.time_s for each in small)
        if small and rest_s >= self.SMALL_SHARE / 2 * whole_s:
            words = small[0].words if len(small) == 1 else "smaller parts"
            yield Statement("diagnose.entry", {"share": rest_s / whole_s, "words": words, "call": ""}, rest_s)

    def _of_calls(self) -> Iterator[Statement]:
        """Say which functions take most of the time in I/O calls."""
        inside = [each for each in self.most_time if each.in_library]
        if self.most_time:
            values = {
                "calls": [_time_of_call(each) for each in self.most_time],
                "functions": [each.call for each in inside],
                "libraries": [*dict.fromkeys(LIBRARIES[each.layer] for each in inside)],
            }
            yield Statement("diagnose.calls", values)

    @property
    def is_part(self) -> bool:
        """Whether the record lacks I/O of the run, which may have other causes."""
        return bool(self.lacks) or (self.account is not None and self.account.io_low_s < self.account.io_s)

    @property
    def nothing(self) -> Paragraph:
        """That there is no finding that matters, of what."""
        if not self.examined:
            reasons = {entry.reason for entry in self.not_examined}
            return (Statement("diagnose.unread", {"why": reasons.pop() if len(reasons) == 1 else None}),)
        account, is_part = self.account, self.is_part
        waits = account is not None and any(
            each.principle == WAITING and each.time_s >= self.SMALL_SHARE * account.run_s
            for each in account.entries
        )
        values = {"is_waiting": waits and not is_part, "is_whole": not (waits or is_part)}
        return (Statement("diagnose.none", values | {"is_part": is_part}),)


def answer_diagnosis(findings: Sequence[Finding], **found: Any) -> DiagnosisAnswer:
    """Return a diagnosis of these attributes that shows itself, as do its findings."""
    return DiagnosisAnswer(findings=tuple(FindingAnswer(**vars(each)) for each in findings), **found)


diagnose = shown_as(diagnosis.diagnose, lambda: answer_diagnosis)


def finding_facts(finding: Finding, cause: str = "", *, is_whole: bool = False) -> Facts:
    """Return a finding with labels."""
    head = {name: getattr(finding, name) for name in ("severity", "id", "confidence")}
    rows: list[tuple[str, Statement | str]] = [("what", finding.title), ("where", str(finding.where))]
    for number, check in enumerate(finding.checks if is_whole else ()):
        label = "" if number else "evidence"
        rows.append(
            (label, Statement("diagnose.check", {"holds": _MARKS[check.holds], "seen": check.sentence}))
        )
    if finding.gain_s is not None:
        rows.append(("gain", gain_of(finding)))
    rows.append(("advice", finding.advice))
    if finding.trial:
        rows.append(("try", Statement("diagnose.try", {"remedy": finding.trial})))
    elif not finding.is_symptom and finding.id != "not-io":
        rows.append(("try", Statement("diagnose.no_try")))
    if finding.symptoms:
        rows.append(("explains", ", ".join(finding.symptoms)))
    return Facts(rows, Statement("diagnose.finding", head | {"cause": cause}), width=10, indent=2)


def gain_of(finding: Finding, *, is_whole: bool = True) -> Statement:
    """Say by how much the run would be shorter; briefly, without what single calls show.

    Examples
    --------
    >>> from ensembles.answers.diagnose import gain_of
    >>> from ensembles.diagnosis.finding import Finding, Where
    >>> from ensembles.faces.words import sentence
    >>> finding = Finding("o-sync", 0.9, Where(), {}, (), "", (0.0, 0.02), "")
    >>> sentence(gain_of(finding, is_whole=False))
    'Up to 20.0 ms shorter'
    >>> wide = Finding("small-requests", 0.9, Where(), {}, (), "", (0.077, 2.9), "", 0.692, likely_s=0.7)
    >>> sentence(gain_of(wide, is_whole=False))
    'Up to 2.90 s shorter, 692 ms by the best estimate'
    """
    return statement_of(finding.gain, is_whole=is_whole, between_s=finding.evidence.get("between_s") or None)


def statement_of(gain: Gain | None, *, is_whole: bool = False, between_s: float | None = None) -> Statement:
    """Say by how much a run would be shorter, or longer, with the best estimate where it says more."""
    if gain is None:
        return Statement("diagnose.gain_unknown")
    low_s, high_s, likely_s = gain
    values: dict[str, Any]
    if high_s < 0:
        values = {"low_s": -high_s, "high_s": -low_s, "likely_s": likely_s and -likely_s}
        return Statement("diagnose.gain_longer", values)
    if low_s < 0:
        how = "shorter" if (likely_s or 0.0) >= 0 else "longer"
        values = {"longer_s": -low_s, "shorter_s": high_s, "likely_s": likely_s and abs(likely_s), "how": how}
        return Statement("diagnose.gain_either", values)
    open_ = is_open((low_s, high_s))
    is_other = likely_s and seconds_text(likely_s) != seconds_text(high_s)
    values = {"is_whole": is_whole, "is_open": open_, "high_s": high_s, "between_s": between_s}
    values["likely_s"] = likely_s if is_other and (open_ or high_s >= FAR * low_s) else None
    if open_ and likely_s and is_open((likely_s, high_s)):
        return Statement("diagnose.gain_likely", values, likely_s)
    values["low_s"] = None if open_ or seconds_text(low_s) == seconds_text(high_s) else low_s
    return Statement("diagnose.gain", values, likely_s or low_s * (not open_))


def _entry(entry: Entry, whole_s: float) -> Statement:
    """Return the share of an entry, what it is of, and where most of it is."""
    values = {"share": entry.time_s / whole_s, "words": entry.words, "call": entry.call}
    return Statement("diagnose.entry", values, entry.time_s)


def _time_of_call(each: CallTime) -> Statement:
    values: dict[str, Any] = {name: getattr(each, name) for name in ("share", "calls", "call")}
    if (size := each.of_size) is not None:
        long = vars(size) | {"mean_bytes": round(size.mean_bytes), "is_library": each.layer in LIBRARIES}
        if size.calls == each.calls:
            values["all"] = Statement("diagnose.size_of_all", long)
        else:
            values["some"] = Statement("diagnose.size_of_some", long)
    return Statement("diagnose.time_of_call", values, each.time_s)


def _gains_svg(findings: Sequence[Finding]) -> str:
    """Draw the gains of findings; empty if none is known."""
    known = [(finding, finding.gain_s) for finding in findings if finding.gain_s is not None][:MOST_ROWS]
    top_s = max((gain_s[1] for _, gain_s in known), default=0.0)
    if top_s <= 0:
        return ""
    rows = [(one.id, low / top_s, high / top_s, _COLOURS[one.severity]) for one, (low, high) in known]
    return intervals_svg(rows, "0 s", seconds_text(top_s), "by how much the run would be shorter without it")
