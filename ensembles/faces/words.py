"""The words of statements: the one place where an answer becomes text.

A sentence has fields such as ``{time_s:s}``, with a unit of `UNITS` (``{unit}``: that which the value `unit`
names) or, as ``{count:n phase}``, a noun to count. A part in brackets is left out if a field in it has no
value, and ``[flag?...]`` if `flag` is not true.
"""

from __future__ import annotations

import math
import re
import string
from collections.abc import Mapping
from typing import Any

from ensembles.faces.unit_texts import UNITS, capital
from ensembles.model.statement import Interval, LowerBound, Statement, UpperBound
from ensembles.model.units import count_text

WORDS = {
    "ordinals.what": ("Durations by call index (n-th {op} of a task {where}[; {sizes}])[is_none?: no calls]"),
    "ordinals.trend": "Trend: {trend}.",
    "totals.sums": (
        "{count} · {calls:n call}[ · {read:bytes} read][ · {written:bytes} written] · {io_time_s:s} in I/O"
        "[is_wrong?: implausible]"
    ),
    "files.above": (
        "Bytes {word} are those of the program, before compression and caches of its libraries: these moved "
        "{below:bytes} for {taken:bytes} (--layer posix has what files got)."
    ),
    "ranks.waiting": (
        "Calls that wait for other tasks are among the calls; their time is waiting, and not in I/O time."
    ),
    "ranks.messages": (
        "Waiting is that of these calls; messages, which are in no row, took {time_s:s}: ensio info."
    ),
    "rate.none": "{op}: no bytes",
    "rate.mean": (
        "{op}: {bytes:bytes} over {active_s:s} of active I/O ({mean:bytes/s} mean[, {peak:bytes/s} "
        "peak, {window_s:s} window])"
    ),
    "rate.plateaus": "{count:n plateau}[; {outside:share} of the bytes moved outside of plateaus]",
    "rate.no_plateau": "No plateau: nowhere do {calls:n call} keep one rate and move 1 % of the bytes.",
    "rate.burst": "1 burst from first to last call: {best:bytes/s} for {time_s:s} from {from_s:moment} s",
    "rate.bursts": (
        "{count:n burst} with at least 1 % of the bytes: median {median:bytes/s}, fastest {best:bytes/s} for "
        "{time_s:s} from {from_s:moment} s"
    ),
    "rate.inner": (
        "These calls moved {bytes:bytes} inside calls of other layers, and a rate counts the outermost "
        "calls: leave out the filter, or use viz.rate(run.select(...)) in Python."
    ),
    "requests.none": "No read or write was recorded.",
    "requests.counted": "Reads and writes together, as counted (at least: four sizes of a file are kept)",
    "requests.uncertain": "Counts of sizes may be too low by up to: {counts}.",
    "requests.no_offsets": "Misaligned: unknown, as offsets need a run whose calls are all events.",
    "requests.located": "Misaligned, crossing: of requests with known offset and boundary (--align).",
    "requests.boundary": "Misaligned: offsets are not multiples of {boundary}.",
    "sites.none": "No calls.",
    "sites.what": (
        "The place in the program that led to the calls; calls inside others belong to the outermost one. "
        "Share: of the time in I/O calls."
    ),
    "sites.hint": "{hint:clause}.",
    "report.note": "{note}",
    "sites.frames": "{frames}",
    "sites.only_wait": "Share: of the time in I/O calls; sites without it only wait for other tasks.",
    "scaling.what": "Rates of bytes {direction}, while files were open",
    "scaling.maximum": "Maximum: {rate:bytes/s}, {source}.",
    "scaling.spread": "Spread: highest rate of the runs divided by the lowest.",
    "scaling.efficiency": (
        "Efficiency: rate {each}, relative to the fewest {counted} of same layer and files."
    ),
    "scaling.single_tasks": "Runs of one task are of both kinds: their one file is shared and per task.",
    "runs.what": "{path} holds {count:count} runs; name one of them:",
    "info.warnings": "Data-quality warnings:",
    "info.crowded": "{tasks}: calls also wait for a processor",
    "info.job": "{job}[, user {user}]",
    "info.recorded": "{tasks:n task} · {threads:n thread} · {files:n file} · {recorded_calls:n call}",
    "info.mode_profile": "profile: totals[durations_known? and histograms] of all calls, no events",
    "info.mode_tail": "tail: totals and histograms of all calls; slowest calls as {events:n event}",
    "info.summed": "{summed_calls:n wait} for messages: in the totals, not events (ENSIO_POINT_TO_POINT=1)",
    "info.dropped": "{count:n event}, included in the totals below",
    "info.lost": "{lost_calls:n call}, not included in the totals below",
    "info.reason": "{count:count}  {reason}",
    "info.dirty": "up to {dirty_bytes:bytes} dirty pages ({dirty_share:share} of what programs could have)",
    "info.pressure": "some task {whose} waited for I/O {some:share} of the time, all {full:share}",
    "info.retransmissions": "{nfs_retransmissions:n NFS retransmission}",
    "info.excluded": "{excluded_calls:n call} on system files (ENSIO_EXCLUDE), pipes or terminals",
    "info.no_call": "No call was recorded: ensio help troubleshooting lists the causes.",
    "info.no_call_of_configure": (
        "No call was recorded: set ENSIO_DISABLE=1 while configure runs its test programs."
    ),
    "info.run": "{run_s:s}; from the first call to the end of the last {span_s:s}[is_wrong?: implausible]",
    "info.io_time": (
        "{io_time_s:s} summed over tasks[is_partial?, without the I/O that was not seen][is_wrong?: "
        "implausible]"
    ),
    "info.critical_path": (
        "[is_of_several?critical path ]{critical_path_s:s}[ ({critical_path_share:share to 0.1 %} of the "
        "run)]"
    ),
    "info.some_task": (
        "at least one {who} in I/O for {some_task_s:s}[ ({some_task_share:share to 0.1 %} of the run)]; "
        "nothing shows which of them waited for others[, but for {io_low_s:s} at least the run did]"
    ),
    "info.in_io": (
        "{io_low_s:s} to {io_s:s} ({share:share to 0.1 %} of the run): nothing shows who waited for others"
    ),
    "info.share": "{share:share to 0.1 %}",
    "info.no_path": "no critical path for more than {events:count} calls: ensio phases shows who waited",
    "info.mean": "mean of {tasks:count} tasks {mean_s:s}[ ({mean_share:share to 0.1 %} of {of})]",
    "info.slowest_task": (
        "[is_of_several?slowest task ]{slowest_s:s} (rank {slowest_task}[, {slowest_share:share to 0.1 %} of "
        "{of}])"
    ),
    "info.any_task": "[is_of_several?slowest task ]{slowest_s:s}[ ({slowest_share:share to 0.1 %} of {of})]",
    "info.flights": (
        "{flight_s:s} summed over {requests:n non-blocking request} (mean {mean_flight_s:s}), "
        "{hidden_share:share to 0.1 %} hidden behind other work"
    ),
    "info.slowest": "{duration_s:s}: {call} of rank {rank} at {start_s:s}[ on {file:file}]",
    "info.time_of_writes": "Written: time in writes and syncs.",
    "info.read_in_writes": "{bytes:bytes} of the bytes read are read by libraries inside writes.",
    "info.read_inside": "{bytes:bytes} are read inside calls that ask for no bytes: {names}.",
    "info.whole_calls": ("Exclusive time: without recorded inner calls; mean and longest: of whole calls."),
    "info.failed": "Failed calls (ensio events RUN --where failed):",
    "info.only_failed": "Failed calls: {calls}; errors and files are {known}.",
    "info.between": "{how}.",
    "info.sizes": (
        "Common sizes requested by {layer} reads and writes: {sizes}[has_classes? (where sizes in a class "
        "differ, only their range is known)][ (each count may be too low by up to {uncertain:count})]."
    ),
    "info.more_regions": "{count:n more region}: see --json.",
    "counters.run_time": "{time_s:s} × {tasks:n task}",
    "counters.io_time": ("{time_s:s} in {layer} summed over tasks[, {share:share to 3 digits} of task time]"),
    "counters.in_data": (
        "reads {read_s:s} ({read_share:share to 3 digits}) · writes {write_s:s} ({write_share:share to 3 "
        "digits})"
    ),
    "counters.in_metadata": "metadata {meta_s:s} ({meta_share:share to 3 digits})",
    "counters.moved": "{bytes:bytes}[ in {layer}]",
    "counters.rate": "{rate:bytes/s} by the slowest task, metadata included ({layer})",
    "counters.first": "The first {shown:count} of {of:count} rows; all of them: run.counters in Python.",
    "counters.path": "{path}",
    "counters.order": (
        "Those with the longest time in a layer come first; calls of a layer contain those of layers below "
        "it."
    ),
    "counters.module": (
        "{name}: [{files:n file}][{objects:n dataset or variable}][, {read_only:count} only read]"
        "[, {write_only:count} only written][, {read_and_written:count} read and written]"
        "[, {no_data:count} without data][, accessed up to {largest:bytes}][, {shared:count} shared by all "
        "tasks]"
    ),
    "counters.tasks": (
        "in files of single tasks: fastest {fastest:s}, median {median:s}, slowest {slowest:s} of {ranks:n "
        "task}"
    ),
    "counters.partial": "Darshan's memory was full: files and calls are missing",
    "counters.targets": ("{count:n OST}, that with the slowest files first; the last row is the fastest."),
    "counters.heat_map": (
        "Heat map of {of}: {bytes_read:bytes} read and {bytes_written:bytes} written from {first_s:s} to "
        "{last_s:s}, in {busy:share to 3 digits} of the bins of {bin_s:s}; at most {highest_rate:bytes/s}."
    ),
    "pattern.group": "{tasks:n task} ({ranks}):",
    "pattern.smaller_loops": "and {bytes:bytes} in {count:n smaller loop}",
    "pattern.more_groups": "{count:n more group} of tasks: raise --limit to see them",
    "pattern.other_tasks": "{count:n task} with loops of other shapes",
    "pattern.several_files": (
        "Calls of several files do not repeat together. Those of one file may: --file NAME selects it (ensio "
        "files lists the names)."
    ),
    "modes.refused": "{why:clause}.",
    "modes.what": (
        "[is_found?{count:n mode}][is_none?No mode] in {calls:n call}[ ({name})]"
        "[is_turns?: steps of turns, not parts of a mixture]"
    ),
    "modes.bars": (
        "Number of calls by [is_per_mib?time per MiB][is_per_call?duration][has_marks?; digits are modes]."
    ),
    "modes.one_of_all_phases": "Unimodality not rejected: every further cluster is of few phases.",
    "modes.several": "Unimodality rejected (p {bound}).",
    "modes.one": (
        "[is_known?No evidence of a further mode.][is_few?Too few calls to count modes.] One of less than "
        "{least:share to 3 digits} would not be seen."
    ),
    "modes.resolution": "Timer resolution: {step_s:{unit}}.",
    "modes.further": "{how:clause}.",
    "modes.sites": "Mode {number} ({t_s:s}): {shares}.",
    "tail.what": (
        "[is_one?Any call of a task][is_several?Slowest of {tasks:n call}, one per task]; {calls:n call} "
        "observed[ in {phases:n phase}]"
    ),
    "tail.one_task": "There is one task: --tasks N predicts the slowest call of N.",
    "tail.refused": "No prediction: {why}.",
    "tail.method": "Method: {method}.",
    "tail.no_mean": "Mean: not determined, because durations beyond all that was seen decide it.",
    "tail.unsettled": "Valid only for phases drawn from the whole run: {why}.",
    "tail.next": (
        "Next phase, from the phases before it: {interval:{unit}}; {coverage:share} of {trials:count} past "
        "phases lay within such intervals, of median width {width:ratio}."
    ),
    "tail.observed": "Observed maximum: {max_s:{unit}}.",
    "tail.untested": (
        "Assumes independent calls: phases, ranks and times are unknown, so that nothing was tested."
    ),
    "tail.exchangeable": ("Exchangeability not rejected: no test finds an effect of phase, task or time."),
    "tail.dependent": (
        "[is_based_on_all?Calls taken as exchangeable, although not][is_not?Not exchangeable]; explained "
        "variance of log duration: {causes}.[ Effective sample size: {effective:n call}.][ Neighbouring "
        "phases are correlated; effective number of phases: {effective_phases:count}.]"
    ),
    "tail.few": "So few calls do not show whether most calls are of a slower kind.",
    "tail.unseen": (
        "Up to 1 in {one_in:count} calls may be of a slower kind that these calls do not show "
        "({level:level})."
    ),
    "tail.equation": (
        "Equation 1 assumes i.i.d. calls and is bounded by the observed maximum.[is_bound? {calls:n call} do "
        "not reach to the upper end of the slowest of {tasks:count}.][ Its interval has calls of "
        "{made:count} of {phases:n phase}.]"
    ),
    "backtest.what": "Empirical coverage of nominal {level:level} intervals",
    "backtest.reason": "{kind}: {why}.",
    "split.what": (
        "The slowest of {tasks:n task}, if each of {calls:count} calls is split into smaller ones:"
    ),
    "split.legend": (
        "Speedup: ratio of the means; at most: that if every task took the mean time of a call; spread: "
        "coefficient of variation of the time of one task."
    ),
    "split.assumes": "Assumes that {assumed}.",
    "predict.result": "{remedy}: {gain} (90 % interval), if {assumption}.",
    "predict.unchanged": (
        "{remedy}: it does not change the calls of {finding} in this run: change the program, record it "
        "again, and compare both runs (ensio compare)."
    ),
    "predict.account": "calls behave as the account of the run has {finding}",
    "predict.run": "calls that stay or change take as long as those of the run",
    "predict.calibration": "changed calls take as long as those of {calibration}, and all others as before",
    "predict.refused": (
        "{remedy}: this run does not show how long a changed {call} takes: measure that with ensio "
        "calibrate-fs DIR, and name the run with --calibration."
    ),
    "try.result": (
        "{remedy}: [predicted {predicted}; ]"
        "[is_seen?measured {gain:s} {how} ({low:s} to {high:s})][is_unseen?no gain is seen ({low:s} to "
        "{high:s})] of {of:s}, {contents}."
    ),
    "try.refused": (
        "this replay does not stand for the run: [is_part?in the calls that the remedy changes, ]"
        "{recorded:s} were recorded, and {low:s} to {high:s} are made again without the remedy, beside waits "
        "for a processor.[ Calls that a replay does not make took {lost:s} of the run, which may be why: see "
        "the notes.][is_other? Record it again here, on an idle machine.]"
    ),
    "try.how": (
        "{before:n call}, {after:n call} with the remedy; {pairs:n pair} in turns, {cache} cache, think "
        "time: {think_time}."
    ),
    "try.account": (
        "The accounts are of pair {number:count}, that of the median gain ({without:s} without the remedy, "
        "{with:s} with it). They include waits for a processor, and the measured times do not."
    ),
    "split.refused": "{calls:n call}: {why}.",
    "compare.judged": "{what} --fail-on {asked}[: {why}][is_open?, which these runs do not decide]",
    "gate.different": "{kind} is different",
    "gate.slower": "[{group}: ]{kind} is slower, {ratio:ratio}",
    "gate.runs": "[{group}: ]{how}",
    "gate.kind": "[{group}: ]{loss}[; {evidence}][; {how}]",
    "gate.durations": "by its durations[, p {p:p}][ if they vary by {spread:share}]",
    "gate.open": (
        "[{group}: ]{what}: {how}, which variation from run to run may explain ({evidence}): compare "
        "[is_unknown?more runs per group][{runs:count} runs per group to know]"
    ),
    "gate.single_runs": (
        "these are single runs, which do not show how much they vary: compare several per group"
    ),
    "compare.runs": "in I/O, whole runs[ of {group}] {verdict}: {how}.",
    "compare.kind": (
        "{what}{verdict}[, {direction}][ ({moved})][ (median {median:ratio})][ (median of {group} "
        "{median_of:ratio})][: {why}]."
    ),
    "compare.verdict": "{what}{verdict}[, {direction}]",
    "compare.reason": "{reason}.",
    "compare.all": "everything moved by {how}[ in {group}]",
    "compare.mode_place": "the mode at {t_s:s} moved by {how}[ in {group}]",
    "compare.mode_weight": "the weight of the mode at {t_s:s} moved by {how}[ in {group}]",
    "compare.mode_ratio": ("the mode at {t_s:s} moved relative to the heaviest mode by {how}[ in {group}]"),
    "compare.tail": "the share of calls beyond {t_s:s} changed by {how}[ in {group}]",
    "compare.tail_place": "calls beyond {t_s:s} moved by {how}[ in {group}]",
    "compare.mode_width": "the width of the mode at {t_s:s} changed by {how}[ in {group}]",
    "compare.by_ratio": "{ratio:ratio and interval}",
    "compare.by_share": (
        "{change:change and interval}[is_alone? of the calls][, from {before:share to 0.1 %} to {after:share "
        "to 0.1 %}]"
    ),
    "compare.matched": (
        "These modes are those of each group, matched in order, as a group lacks modes of the other. The "
        "verdict is by the modes of all groups together: parts in --json."
    ),
    "compare.group": "{group}:",
    "compare.tests": (
        "Column p: t test with {sizes} {units} as units, adjusted for {adjusted_for:n tested part}; rank p: "
        "{rank_test} on these units, adjusted alike, at least {smallest_p:p} for one part."
    ),
    "compare.distance": (
        "Distance[ of {group}]: Kolmogorov-Smirnov {kolmogorov_smirnov:moment}, Wasserstein "
        "{wasserstein_octaves:moment} octaves."
    ),
    "compare.within": (
        "Largest between runs of one group: {kolmogorov_smirnov:moment}, {wasserstein_octaves:moment} "
        "octaves."
    ),
    "compare.note": "note: {note}",
    "compare.minor": "{kinds}: single calls or little time, {times} in all; inconclusive.",
    "compare.p": (
        "Column p tests the time a run where it certainly changed, elsewhere the part that moved most. It is "
        "adjusted for the number of kinds of calls."
    ),
    "compare.detail": "In detail (other kinds of calls: --op, --layer):",
    "diagnose.partial": "of a part of the run: {lacks}.",
    "diagnose.account": (
        "I/O is {share:share} of {run_s:s}[is_of_one? of the task with most I/O][. {parts:sentences}]."
    ),
    "diagnose.recorder": (
        "the recorder itself takes {share:share} of this run, most [for calls of {call}: --mode profile "
        "costs less than trace, and --layers without the layer of these calls next to nothing.]"
        "[is_at_ends?at starts and ends of processes: record fewer of them.]"
    ),
    "diagnose.part": "{what}: {share:share}[is_first? of it][ ({entries:parts})]",
    "diagnose.outside": "Of the run: {entries:parts}",
    "diagnose.entry": "{share:share} {words}[, most in {call}]",
    "diagnose.finding": "{severity}: {id} (confidence {confidence:share})[, explained by {cause}]",
    "diagnose.check": "{holds} {seen}",
    "diagnose.try": "ensio try RUN --with {remedy}",
    "diagnose.no_try": "no replay shows it: record the run again with this change, and ensio compare RUN NEW",
    "diagnose.gain": (
        "[is_whole?The run would be ][is_open?up to ][{low_s:s} to ]{high_s:s} shorter"
        "[, {likely_s:s} by the best estimate]"
        "[, and up to {between_s:s} more between these calls, if it is spent on their objects]"
    ),
    "diagnose.gain_likely": (
        "[is_whole?The run would be ]{likely_s:s} shorter by the best estimate, {high_s:s} at most"
        "[, and up to {between_s:s} more between these calls, if it is spent on their objects]"
    ),
    "diagnose.gain_longer": "{low_s:s} to {high_s:s} longer[, {likely_s:s} by the best estimate]",
    "diagnose.gain_either": (
        "{longer_s:s} longer to {shorter_s:s} shorter[, {likely_s:s} {how} by the best estimate]"
    ),
    "diagnose.gain_unknown": "gain not known",
    "diagnose.none": (
        "no finding[is_part? in what was recorded][is_waiting? but the waiting above]"
        "[is_whole? that matters]."
    ),
    "diagnose.unread": "no finding, because nothing could be examined[: {why}].",
    "diagnose.more": "and {count:n weaker finding} (--verbose).",
    "diagnose.clean": "not found, or too little to matter[is_part?, in what was recorded]: {causes:names}.",
    "diagnose.lost": "{lost:clause}.",
    "diagnose.not_ended": "{processes} did not end the recording: this is what was recorded until then.",
    "diagnose.undecided": "not decided: {id}: {reason}.",
    "diagnose.one_run": "one run alone does not show {causes:names}.",
    "diagnose.could_cost": "{id} (up to {at_most_s:s}[: record {record}])",
    "diagnose.small": "too small to matter (--verbose): {causes:names}.",
    "diagnose.waiting": (
        "waiting for tasks that are late again and again[is_beyond? beyond what findings explain]: "
        "{left_s:s}."
    ),
    "diagnose.late": "{how:clause}.",
    "diagnose.crowded": (
        "{tasks:clause}[is_also?, so that tasks are also late because they wait for a processor][is_alone?: "
        "calls, and tasks between calls, also wait for a processor]."
    ),
    "diagnose.calls": (
        "time in I/O calls: {calls:names}[; the time in {functions:names} passed inside {libraries:names}, "
        "not in the file system]."
    ),
    "diagnose.time_of_call": "{share:share} in {calls:n call} of {call}[ {all}][ {some}]",
    "diagnose.size_of_all": "of {mean_bytes:bytes}, {mean_s:s} each[is_library? without inner calls]",
    "diagnose.size_of_some": (
        "({share:share} in {calls:count} of {mean_bytes:bytes}, {mean_s:s} each[is_library? without inner "
        "calls])"
    ),
    "diagnose.examined": (
        "{examined:n cause} examined, {left:count} not (ensio diagnose --verbose says which, and why)."
    ),
    "diagnose.not_examined": "not examined: {causes:names}: {reason}.",
    "history.run": "{path}: {command}",
    "history.totals": (
        "{tasks:n task} on {nodes:n node}, {span_s:s}, {calls:n call}, {written:bytes} written, {read:bytes} "
        "read"
    ),
    "history.finding": "{severity}: {id}: {title}",
    "history.check": "{experiment}: {verdict}: run {run} of {start:time} against {baseline:n run}: {reason}",
    "history.known": "baseline since {since:time}: {reason}",
    "history.predictions": "{of}: {inside:count} of {count:n prediction} held what was measured.",
    "history.place": "run {run} of {start:time} among {others:count} other runs {among}",
    "fingerprint.files": "{files}",
    "fingerprint.calls": "Calls: {calls}",
    "phases.count": "{count:n phase}: {evidence}",
    "phases.small": (
        "{count:n phase} without data, with {calls:n call} and {time_s:s} in all, have no row (--json has "
        "them)."
    ),
    "phases.idle": (
        "Idle, because other tasks took longer (from a task's last call of a phase to the last call of all): "
        "{time_s:s} summed over tasks[, {share:share to 3 digits} of the run ({tasks:n task} × {run_s:s})]"
        "[is_bound?; an upper bound, because tasks may not wait for each other].[ {absent}]"
    ),
    "phases.idle_of_absent": (
        "Tasks without a call in a phase are not counted: in {count:n phase}, where they could wait up to "
        "{time_s:s} more."
    ),
    "phases.idle_of_processes": (
        "Idle times are not known: the tasks are processes without MPI and without barriers, or do not all "
        "run at one time. Nothing recorded shows that they wait for each other."
    ),
    "phases.idle_of_failed": (
        "Idle and waiting times are not known between failed calls: tasks make other calls meanwhile (ensio "
        "phases without filters by failures has them)."
    ),
    "phases.all_causes": (
        "All causes count here, also equal calls of unequal times; imbalance in ensio diagnose means unequal "
        "bytes."
    ),
    "phases.crowded": "{tasks:clause}: a part of this is waiting for a processor.",
    "phases.most_idle": "Most in phase {phase}, {lost_s:s}: {last}",
    "phases.last": "rank {rank} came last, with {call} ({duration_s:s})[ on {file:file}].",
    "phases.late_calls": (
        "rank {rank} came last. It spent {time_s:s} in {calls:n call} of {call}[, most on {file:file}]; rank "
        "{middle}, in the middle, {other_s:s}."
    ),
    "phases.late_outside": "rank {rank} came last. {how:clause}.",
    "phases.waiting": (
        "Waiting inside phases (in collective calls of MPI, before a task's last I/O call of the phase), "
        "which is not in the idle time: {time_s:s} summed over tasks[, {share:share to 3 digits} of the run "
        "({tasks:n task} × {run_s:s})]."
    ),
    "phases.waiting_unknown": (
        "How long tasks waited in MPI inside phases is not known, as there are too many calls."
    ),
    "phases.most_waiting": (
        "Most in phase {phase}, {time_s:s} in one {call}: rank {rank} came last[, {after_s:s} after its "
        "{before} ({duration_s:s})][ on {file:file}]."
    ),
    "phases.late_entry": "{how:clause}.",
    "phases.without_calls": "No task made an I/O call in {count:n phase}: {names}[ and {more:count} more].",
    "phases.without_io": (
        "{steps:n step} between collective calls had no I/O[has_messages? and no messages] ({time_s:s} in "
        "all) and no number[has_no_messages?: where the layer mpimsg is recorded (ensio run --layers "
        "default,mpimsg), steps with messages are phases too]."
    ),
    "phases.outside": "Outside all phases: {calls:n call}.",
    "collective.time": "{how:clause}.",
    "steps.refused": "The steps of collective calls are not known: {why}.",
    "steps.legend": (
        "Steps of collective calls, summed over tasks. Storage: the task is in a storage call. Entry: it "
        "waits for tasks that have not entered yet. Others: it waits for the storage calls of others. "
        "Communication: the rest, in which tasks exchange data."
    ),
    "steps.crowded": (
        "{tasks:clause}: communication and waits here are also those for a processor. Record with at least "
        "one processor for each task."
    ),
    "steps.independent": "In {calls:n call} tasks did not wait for each other.",
    "steps.unmatched": (
        "{calls:n collective call} could not be matched, because some tasks call the function on the file "
        "more often than others."
    ),
}
"""The sentence of each statement, by its id."""

_OF_TEXTS = ("clause", "file")
"""Units of texts, which have no other form."""

BETWEEN = {"names": ", ", "parts": "; ", "sentences": ". "}
"""Units of several values, and what is written between them."""

_PART = re.compile(r"\[(?:(\w+)\?)?([^][]*)\]")


class _Formatter(string.Formatter):
    """Formats the fields of a sentence as the cells of a table."""

    def format_field(self, value: Any, format_spec: str) -> str:
        return cell(value, format_spec)


def cell(value: Any, unit: str) -> str:
    """Write a value; texts stay as they are, and nothing is written for None and NaN.

    Examples
    --------
    >>> cell(0.25, "s"), cell(2, "n task"), cell(None, "s"), cell("none", "s")
    ('250 ms', '2 tasks', '', 'none')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, Statement):
        return _filled(value)
    if isinstance(value, LowerBound):
        return f"≥ {cell(value.value, unit)}"
    if isinstance(value, UpperBound):
        return f"≤ {cell(value.value, unit)}"
    if isinstance(value, Interval):
        return f"{cell(value.low, unit)} – {cell(value.high, unit)}"
    if unit.startswith("n "):
        return count_text(value, unit[2:])
    if unit in BETWEEN and not isinstance(value, str):
        return BETWEEN[unit].join(cell(each, "") for each in value)
    return UNITS["" if isinstance(value, str) and unit not in _OF_TEXTS else unit](value)


def sentence(said: Statement) -> str:
    """Return the sentence of a statement; a name that begins it stays as it is.

    Examples
    --------
    >>> from ensembles.model.statement import Statement
    >>> sentence(Statement("phases.outside", {"calls": 1}))
    'Outside all phases: 1 call.'
    """
    text = _filled(said)
    return text if WORDS[said.id][0] == "{" else capital(text)


def _filled(said: Statement) -> str:
    values = {**said.where, **said.values}
    template = _PART.sub(lambda part: part[2] if _holds(part[1], part[2], values) else "", WORDS[said.id])
    return _FORMATTER.vformat(template, (), values)


def _holds(flag: str | None, part: str, values: Mapping[str, Any]) -> bool:
    """Whether a part of a sentence is said."""
    if flag is not None:
        return bool(values[flag])
    return all(values.get(name) not in (None, "", []) for _, name, _, _ in _FORMATTER.parse(part) if name)


_FORMATTER = _Formatter()
