"""Application of all rules to a run, in one pass over its events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ensembles.diagnosis import slow_calls
from ensembles.diagnosis.account import CallTime, SizeTime
from ensembles.diagnosis.accounting import findings_of_waits, make_account, share_out, with_habits
from ensembles.diagnosis.call_sites import python_hint, symbol_hint, with_sites
from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import SUMMARY, EvidenceRule, case_of, summaries_of_sums
from ensembles.diagnosis.fewer_calls import with_fewer_calls
from ensembles.diagnosis.finding import (
    LEAST_CALL_SHARE,
    Diagnosis,
    Finding,
    NotApplicable,
    NotExamined,
    matters,
)
from ensembles.diagnosis.principles import TURNS, cause_of
from ensembles.diagnosis.rules import (
    bytes_again,
    collective,
    disk_waits,
    hdf5,
    imbalance,
    metadata_storm,
    node_serialisation,
    not_io,
    one_run,
    slow_resources,
    small_requests,
    stdio_buffer,
    strided_readahead,
    stripes,
)
from ensembles.diagnosis.rules.collective import moves_together
from ensembles.diagnosis.trials import with_trials
from ensembles.diagnosis.without_calls import counted_account, libraries_of_sums
from ensembles.model.levels import MOST, WORTH_A_LINE
from ensembles.model.units import seconds_text
from ensembles.passes.group import SummaryGroup, SummaryRequest
from ensembles.passes.progress import advance, announced
from ensembles.passes.summary import ignoring_run
from ensembles.run.failures import failed_calls_json, lost_data_sentence
from ensembles.structure.late_entry import LateEntry, late_of_run, leaves_later
from ensembles.structure.libraries import LIBRARIES, WITH_WAITS, layers_with_storage
from ensembles.structure.phases.critical_path import (
    CriticalIo,
    CriticalTime,
    critical_io,
    critical_path,
    may_meet_inside,
)
from ensembles.summaries.collective_steps import is_meeting
from ensembles.summaries.failed_calls import FailedCalls
from ensembles.summaries.layer_traffic import LayerTraffic

if TYPE_CHECKING:
    from ensembles.run.run import Run


_TASKS, _NODES, _STRIPES = (
    "one task makes the I/O calls",
    "all tasks are on one node",
    "no file has known stripes",
)


class _Need(NamedTuple):
    lack: str
    is_there: Callable[[Case], bool]
    of_calls: bool = False


def _calls(what: str, there: Callable[[Case], np.ndarray]) -> _Need:
    return _Need(f"no {what} was recorded", lambda case: bool(there(case).any()), of_calls=True)


def _several_nodes(case: Case) -> bool:
    hosts = [process.host for process in case.run.info.processes]
    return len(set(hosts)) > 1 or not all(hosts)


def _on_stripes(case: Case) -> bool:
    return any("lustre.lov" in facts for facts in case.run.info.file_facts.values())


_HDF5 = _calls("call of HDF5", lambda case: case.layer == "hdf5")
_COLLECTIVE = _calls("collective call of MPI-IO", lambda case: np.char.endswith(case.name, "_all"))
_READS = _calls("read", lambda case: case.op == "read")
_PATHS = _calls("call on a path", lambda case: np.isin(case.op, ("open", "meta")))
_STREAMS = _calls("call on a stream", lambda case: case.layer == "stdio")
_OF_LIBRARIES = (_HDF5, _COLLECTIVE, _STREAMS)
_SEVERAL = _Need(_TASKS, lambda case: len(case.ranks) > 1)

_OF_DXT = ", and Darshan's DXT traces only reads and writes: record the run with ensio"

_OF_STRACE = ", and strace sees system calls only: record the run with ensio"

_UNSEEN = ", and not all I/O of this run is recorded"

_NEEDS: dict[str, _Need] = {
    "aggregation-mismatch": _COLLECTIVE,
    "close-cost": _calls("close", lambda case: case.op == "close"),
    "collective-coordination": _COLLECTIVE,
    "formatted-io": _STREAMS,
    "hdf5-filters": _HDF5,
    "hdf5-metadata": _HDF5,
    "hdf5-refill": _HDF5,
    "imbalance": _Need(_TASKS, lambda case: case.run.tasks > 1),
    "lock-contention": _Need(_STRIPES, _on_stripes),
    "metadata-storm": _PATHS,
    "node-serialisation": _Need(_NODES, _several_nodes),
    "polling": _PATHS,
    "redundant-reads": _READS,
    "seek-heavy": _READS,
    "serialised-metadata": _SEVERAL,
    "single-stripe": _Need(_STRIPES, _on_stripes),
    "slow-target": _Need(_STRIPES, _on_stripes),
    "stdio-buffer": _STREAMS,
    "straggler-node": _Need(_NODES, _several_nodes),
    "straggler-task": _SEVERAL,
    "strided-readahead": _READS,
    "sync-per-write": _calls("sync", lambda case: case.op == "sync"),
    "too-many-writers": _SEVERAL,
}


def lack_of(case: Case, cause: str, refusal: NotApplicable | None) -> NotApplicable | None:
    """Return why a run cannot have a cause; None: it may have it, as far as is known."""
    need = _NEEDS.get(cause)
    if need is None or need.is_there(case):
        return None
    why = _OF_DXT * bool(case.run.counters.tool) or _UNSEEN * bool(case.run.reading.lacking())
    why = _OF_STRACE if case.run.info.has_system_calls_alone and need in _OF_LIBRARIES else why
    why *= need.of_calls
    if refusal is None or refusal.at_most_s is not None:
        return NotApplicable(need.lack + why, applies=bool(why))
    refusal.applies = need is _HDF5 or bool(why)
    return refusal


def _with_advice_for(run: Run, findings: Sequence[Finding]) -> list[Finding]:
    """Add the parts of the advice of the table that hold for the run."""
    is_of_ranks = run.tasks > 1 and not (run.info.has_plain_processes or moves_together(run))
    is_local, found = run.info.are_local(run.files), []
    for each in findings:
        kind, is_many = each.kind, each.evidence.get("calls", np.inf) > each.where.tasks
        more = kind.of_many * is_many + kind.of_tasks * (run.tasks > 1)
        more += kind.of_servers * (not is_local) + kind.of_ranks * is_of_ranks
        more *= each.advice == kind.advice
        more += kind.of_system_calls * run.info.has_system_calls_alone
        found.append(replace(each, advice=each.advice + more))
    return found


RULES: tuple[EvidenceRule, ...] = (
    not_io.rule,
    strided_readahead.rule,
    stdio_buffer.rule,
    stdio_buffer.formatted,
    disk_waits.o_sync,
    bytes_again.read_modify_write,
    stripes.single_stripe,
    stripes.lock_contention,
    hdf5.metadata,
    hdf5.refill,
    hdf5.filters,
    slow_resources.write_back,
    small_requests.serialised_metadata,
    small_requests.seek_heavy,
    small_requests.rule,
    metadata_storm.polling,
    metadata_storm.rule,
    disk_waits.sync_per_write,
    imbalance.rule,
    slow_calls.task,
    slow_calls.node,
    slow_resources.slow_target,
    bytes_again.redundant_reads,
    collective.coordination,
    collective.mismatch,
    one_run.misaligned,
    disk_waits.close_cost,
    *one_run.others,
    node_serialisation.rule,
)
"""All rules. Of those that explain the same calls, the more specific ones come first."""


_IO, _PATH = "io-by-phase", "critical-path"
_FAILED = "failed"
_TRAFFIC = "traffic"
"""The names that `ensembles.run.information.sums_requests` gives them too, so that a report fills one."""


def diagnose(run: Run, rules: Sequence[EvidenceRule] | None = None) -> Diagnosis:
    """Find the causes of slow I/O in a run.

    Parameters
    ----------
    run : Run
        The run.
    rules : sequence of EvidenceRule, optional
        Rules to apply. Default: all.

    Returns
    -------
    Diagnosis
        Findings, the strongest first, and the rules that could not be applied, with the reasons.

    Raises
    ------
    EnsioError
        The run cannot be read, or the pass exceeds the memory budget.

    Examples
    --------
    >>> diagnosis = en.diagnose(en.open("ensio-ior"))
    >>> [finding.id for finding in diagnosis.findings if finding.severity != "note"]
    []
    >>> "strided-readahead" in diagnosis.examined
    True
    """
    examination = DiagnosisPass(run, rules)
    return examination.evaluate(run.summarize(examination.requests) if examination.requests else None)


class DiagnosisPass:
    """The part of rules in a pass that a caller makes, perhaps with other summaries.

    Attributes
    ----------
    requests : dict of str to SummaryRequest
        Summaries that the rules need. If it is empty, no pass is necessary.
    """

    def __init__(self, run: Run, rules: Sequence[EvidenceRule] | None = None) -> None:
        self._run, self._rules = run, RULES if rules is None else rules
        self._refused: dict[str, NotApplicable] = {}
        self._wanted: list[EvidenceRule] = []
        for rule in self._rules:
            try:
                if not run.reading.has_calls or run.reading.implausible:
                    raise NotApplicable(run.reading.doubt)
                self._wanted.append(rule.preconditions(run) or rule)
            except NotApplicable as reason:
                self._refused[rule.ID] = reason
        self.requests: dict[str, SummaryRequest] = {
            name: need for rule in self._wanted for name, need in rule.NEEDS.items()
        }
        if SUMMARY in self.requests:
            for name, kind in ((_IO, CriticalIo), (_PATH, CriticalTime))[: 1 + may_meet_inside(run)]:
                self.requests[name] = SummaryRequest(partial(critical_io, kind), kind.columns)
            if is_meeting(tuple(run.calls)).any():
                self.requests[imbalance.ENTRIES] = imbalance.rule.NEEDS[imbalance.ENTRIES]
        if SUMMARY in self.requests and any(call.layer in LIBRARIES for call in run.calls):
            self.requests[_TRAFFIC] = SummaryRequest(ignoring_run(LayerTraffic))
        if SUMMARY in self.requests:
            self.requests[_FAILED] = SummaryRequest(ignoring_run(FailedCalls))

    def evaluate(self, group: SummaryGroup | None) -> Diagnosis:
        """Evaluate the rules on filled summaries."""
        run, refused = self._run, dict(self._refused)
        findings: list[Finding] = []
        hints: list[str] = []
        summaries = summaries_of_sums(run, self._wanted) | ({} if group is None else group.summaries)
        if SUMMARY in summaries:
            case = case_of(run, summaries[SUMMARY])
            case.failed = summaries.get(_FAILED)
            case.critical = critical_path(run, summaries.get(_PATH, summaries.get(_IO))) or case.critical
            if _IO in summaries:
                case.leave_out(summaries[_IO])
        with announced("examining", run.path, len(self._wanted), "causes"):
            for rule in self._wanted:
                try:
                    findings += rule.evaluate(run, summaries)
                except NotApplicable as reason:
                    refused[rule.ID] = reason
                advance(1)
        account = None if SUMMARY in summaries else counted_account(run, findings)
        unexplained_s = run_s = late_outside = None
        libraries: frozenset[str] = frozenset()
        most_time: tuple[CallTime, ...] = ()
        late_entry: LateEntry | None = None
        if SUMMARY in summaries:
            case = case_of(run, summaries[SUMMARY])
            known = {finding.id for finding in findings}
            known |= {rule.ID for rule in self._wanted if rule.is_of_counters}
            names = [rule.ID for rule in self._rules if rule.ID not in known]
            refused |= {name: lack for name in names if (lack := lack_of(case, name, refused.get(name)))}
            findings, unexplained_s, mended = share_out(findings, case)
            traffic = summaries.get(_TRAFFIC)
            if traffic is not None:
                libraries = layers_with_storage(traffic).difference(WITH_WAITS)
            else:
                libraries = libraries_of_sums(run)
            if "file-uses" in summaries:
                findings = with_fewer_calls(findings, mended, case, summaries["file-uses"], libraries)
            run_s, most_time = case.run_s, _most_time(case, libraries)
            if unexplained_s is not None and unexplained_s >= WORTH_A_LINE * run_s:
                late_outside = case.model.late_outside
            if imbalance.ENTRIES in self.requests:
                late_entry = late_of_run(summaries[imbalance.ENTRIES], summaries[_IO], run)
                if (
                    late_outside is not None
                    and late_entry is not None
                    and (
                        late_entry.rank != late_outside.rank
                        or late_entry.late_s > late_outside.outside_s - late_outside.others_s
                    )
                ):
                    late_outside = None  # collective calls show for whom the others wait
                if late_outside is not None:
                    late_outside = late_outside.after(
                        *leaves_later(summaries[imbalance.ENTRIES], run, late_outside.rank)
                    )
            left_late_s = 0.0 if late_outside is None else late_outside.left_s
            account = make_account(findings, mended, case, libraries, late_entry, left_late_s)
            if any(each.id == TURNS for each in account.entries):
                late_outside = None  # the last one waits for its turn
            findings = with_habits(findings, case)
            late_entry = None if late_entry is None or late_entry.is_of_io else late_entry
            why_late = str(late_outside or late_entry or "")
            findings += findings_of_waits(account, findings, case, why_late)
        if run_s is None and account is not None:
            run_s = account.run_s
        findings = _with_advice_for(run, findings)
        kept = not_io.beside_others(findings, run_s)
        if len(kept) < len(findings):
            refused["not-io"] = NotApplicable("I/O takes little time, and one finding may gain more")
        if run.reading.doubt:
            account = None
        elif account is not None and (run.counters.overlaps or (run.unseen and run.unseen.hides_time)):
            account = account.with_unseen()
        io_s = run_s if account is None else account.io_s
        if io_s is not None:
            kept = [replace(x, gain_s=x.within(io_s)) if x.kind.in_io else x for x in kept]
        findings = with_trials(run, with_sites(run, kept))
        if any(finding.where.sites for finding in findings):
            hints = [hint for hint in (python_hint(run), symbol_hint(run, findings)) if hint]
        not_examined = tuple(
            NotExamined.of(name, why, io_s if cause_of(name).in_io else run_s)
            for name, why in refused.items()
        )
        if account is not None:
            unknown = [each for each in not_examined if each.record and each.at_most_s]
            next_record = max(unknown, key=lambda each: each.at_most_s or 0.0, default=None)
            account = replace(account, record="" if next_record is None else next_record.record)
        return Diagnosis(
            run=run.path,
            findings=tuple(sorted(findings, key=lambda finding: finding.weight, reverse=True)),
            unexplained_s=unexplained_s,
            examined=tuple(
                dict.fromkeys([x.ID for x in self._rules if x.ID not in refused] + [x.id for x in findings])
            ),
            not_examined=not_examined,
            notes=tuple(run.notes),
            hints=tuple(hints),
            run_s=run_s,
            account=account,
            late_outside=late_outside,
            late_entry=late_entry,
            most_time=most_time,
            crowded=run.info.crowded_text or _busy_text(run),
            lost_data=_lost_data(run, summaries.get(_FAILED)),
            not_ended=sum(not each.ended for each in run.info.processes),
            lacks=run.reading.lacks,
        )


def _busy_text(run: Run) -> str:
    """Say how long a task waited for a processor that it need not share with others of the run."""
    wait_s = run.info.processor_wait_s
    others = f"other processes kept a task from its processor for {seconds_text(wait_s)}"
    return others * matters(wait_s, run.length_s)


def _lost_data(run: Run, failed: FailedCalls | None) -> str:
    return "" if failed is None else lost_data_sentence(failed_calls_json(failed, run.files), run.tasks)


def _most_time(case: Case, known: frozenset[str]) -> tuple[CallTime, ...]:
    """Return the functions that take most of the time in I/O calls."""
    call, calls = case.rows["call"], case.run.calls
    time_ns, count = (np.bincount(call, each, len(calls)) for each in (case.recorded_ns, case.rows["n"]))
    whole_ns = max(float(time_ns.sum()), 1e9 * case.run.info.counted_io_s, 1.0)
    share = time_ns / whole_ns
    return tuple(
        CallTime(
            calls[at].name,
            calls[at].layer,
            int(count[at]),
            1e-9 * float(time_ns[at]),
            float(share[at]),
            calls[at].layer in known,
            None if calls[at].layer in known else _size_of(case, at, whole_ns),
        )
        for at in np.argsort(-time_ns, kind="stable").tolist()
        if share[at] >= LEAST_CALL_SHARE
    )


def _size_of(case: Case, call: int, whole_ns: float) -> SizeTime | None:
    """Return the size of most of the time of a function that moves bytes."""
    mine = (case.rows["call"] == call) & np.isin(case.op, ("read", "write")) & (case.rows["bytes"] > 0)
    if not mine.any():
        return None
    time_ns = np.bincount(case.rows["size"], np.where(mine, case.recorded_ns, 0))
    size = int(np.argmax(time_ns))
    if time_ns[size] < MOST * case.recorded_ns[case.rows["call"] == call].sum():
        return None
    rows = mine & (case.rows["size"] == size)
    count = int(case.rows["n"][rows].sum())
    return SizeTime(
        float(case.rows["bytes"][rows].sum()) / count,
        count,
        float(time_ns[size]) / whole_ns,
        1e-9 * float(time_ns[size]) / count,
    )
