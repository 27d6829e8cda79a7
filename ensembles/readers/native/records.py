"""Open the spools and job files of all processes as one run.

Several launches in one run directory: each is a run.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress

from ensembles.files.names import JOB_FILE_SUFFIX, LAUNCHER_SUFFIX, process_file_of
from ensembles.files.untrusted import open_regular
from ensembles.model.c_layout import ACCOUNT, SPOOL
from ensembles.model.errors import EnsioError, SeveralRuns
from ensembles.model.units import MOST_ROWS, count_text, few
from ensembles.readers.native import job_file
from ensembles.readers.native.account import CANCELLED, CHILDREN, HIDDEN, TAKEN, UNRECORDED, io_counters
from ensembles.readers.native.directory import choose, chosen_records, lies_elsewhere, record_paths
from ensembles.readers.native.spool import READABLE, Spool, read_spool
from ensembles.readers.native.spool_bytes import KnownTexts
from ensembles.readers.native.spool_source import SpoolSource


def open_spool(path: str) -> SpoolSource:
    """Open a single spool as a run."""
    spool = read_spool(path)
    process_file = process_file_of(path)
    notes = []
    if os.path.exists(process_file):
        spool.is_collected = True
        try:
            spool.leave_to(job_file.read_job_file(process_file)[0])
        except EnsioError as error:
            notes.append(str(error))
    return SpoolSource([spool], notes)


def open_job_file(path: str) -> SpoolSource:
    """Open a single job file as a run."""
    return SpoolSource([_with_rest(spool) for spool in job_file.read_job_file(path)])


def open_run_directory(path: str, launch: int = 0) -> SpoolSource:
    """Open all spools and job files in a directory as one run.

    A spool contains everything that its process recorded. It takes precedence over the job file's record of
    the same process, because the process may have written to the spool later. Only of a spool that its
    process coded in part, the coded events come from the job file.
    """
    spools: dict[str, Spool] = {}
    collected: dict[str, Spool] = {}
    failures: list[tuple[str, str]] = []
    paths, _, foreign = chosen_records(path)
    known = KnownTexts()
    elsewhere = [record_path for record_path in paths if lies_elsewhere(record_path)]
    unreachable = set(elsewhere)
    for record_path in paths:
        if record_path in unreachable:
            continue
        try:
            if record_path.endswith(JOB_FILE_SUFFIX):
                collected.update((spool.name, spool) for spool in job_file.read_job_file(record_path))
            else:
                spool = _spool_or_process_file(record_path, known)
                (collected if spool.job_path else spools)[os.path.basename(record_path)] = spool
        except EnsioError as error:
            failures.append((record_path, str(error)))
    # A spool that disappeared in the meantime is in the job file by now.
    sentences = [
        sentence
        for place, sentence in failures
        if os.path.basename(place) not in collected or os.path.lexists(place)
    ]
    sentences += _notes_on_other_nodes(elsewhere, path)
    for name in collected.keys() & spools.keys():
        spools[name].leave_to(collected[name])
    listed = set(paths)
    for spool in spools.values():
        spool.is_collected |= process_file_of(spool.path) in listed
    everything = [_with_rest(spool) for spool in (collected | spools).values()]
    if not everything:
        reasons = [*foreign, *sentences]
        if len(reasons) == 1:
            raise EnsioError(reasons[0])
        if reasons:
            count = len(record_paths(path))
            raise EnsioError(f"none of the {count} spools in {path} can be read: {reasons[0]}")
        raise EnsioError(f"{path} is not a run directory, it has no recorded calls: {READABLE}")
    chosen = spools_of_launch(everything, path, launch)
    # What a launcher started is known only if all of it is there.
    is_all = len(chosen) == len(everything) and not sentences and not foreign
    launchers = launchers_in(path) if is_all else []
    source = SpoolSource(chosen, few(sentences, "spools cannot be read"), launchers)
    hidden = [os.fsdecode(each.properties[HIDDEN]) for each in launchers]
    for sentence in filter(None, [*foreign, *hidden]):
        source.metadata.note(sentence)
    return source


def _spool_or_process_file(path: str, known: KnownTexts) -> Spool:
    """Read a spool, or the job file that its process made of it since the directory was listed."""
    try:
        return read_spool(path, known)
    except EnsioError:
        process_file = process_file_of(path)
        if os.path.lexists(path) or not os.path.exists(process_file):
            raise
        return job_file.read_job_file(process_file)[0]


def _with_rest(spool: Spool) -> Spool:
    """Join a record with the spool that holds the rest of its events, or note that the spool is missing."""
    if not spool.rest_in_spool:
        return spool
    try:
        rest = read_spool(spool.path)
    except EnsioError:
        spool.notes.append(
            f"{os.path.basename(spool.job_path)} holds only the first calls of its process: the others are "
            f"in {spool.name}, which is missing here"
        )
        return spool
    rest.leave_to(spool)
    return rest


def _notes_on_other_nodes(links: Sequence[str], directory: str) -> list[str]:
    """Describe the spools on other nodes, one sentence per folder."""
    places = Counter(
        (os.path.basename(link).rsplit("-", 2)[0], os.path.dirname(os.readlink(link)))
        for link in sorted(links)
    )
    return [
        f"the spools of {count} process{'es' * (count > 1)} on host {host} lie in {folder} on that host "
        f"and cannot be reached from here, their calls are missing: copy them from there to {directory}"
        for (host, folder), count in places.items()
    ]


_FIRST_WITH_LAUNCHES = 4
"""Version of spools from which on ``ensio run`` gives its programs one key."""


def spools_of_launch(spools: Sequence[Spool], directory: str, number: int) -> list[Spool]:
    """Choose the processes of one launch.

    All processes that a launcher started together have one key (property ``launch``). If a directory has
    ranks of several launches, each of them is a run. Processes without a rank belong together if one
    ``ensio run`` started them, if one is the parent of the other, or if they ran at the same time; other
    groups of them are separate runs, unless ranks of exactly one launch are there too.

    `number`: of the launch, from 1, in the order of their starts; 0: there has to be only one.
    """
    launches = _launches(spools)
    if not number:
        if len(launches) == 1:
            return launches[0]
        listed = [
            f"{directory}#{place} ({_described(launch)})"
            for place, launch in enumerate(launches[:MOST_ROWS], start=1)
        ]
        more = len(launches) - len(listed)
        raise SeveralRuns(
            f"{directory} holds {len(launches)} runs, name one of them: {', '.join(listed)}"
            + (f", and {more} more" if more else ""),
            [f"{directory}#{place}" for place in range(1, len(launches) + 1)],
        )
    if number > len(launches):
        raise EnsioError(f"{directory} holds {count_text(len(launches), 'run')}: there is no #{number}")
    return launches[number - 1]


def launchers_in(directory: str) -> list[Spool]:
    """Read what ``ensio run`` kept of shells and launchers: processes with an account alone.

    Those that cannot be read are left out: without them, less is known.
    """
    with os.scandir(directory) as entries:
        paths = sorted(entry.path for entry in entries if entry.name.endswith(LAUNCHER_SUFFIX))
    found = []
    for path in choose(directory, paths).paths:
        with suppress(OSError, ValueError), open_regular(path) as file:
            lines = (line.partition(b"=") for line in file.read(1 << 16).split(b"\0"))
            facts = {key: value for key, _, value in lines}
            pid, begin, end = (int(facts.get(key, b"")) for key in (b"pid", b"begin", b"end"))
            # A launcher that is recorded has its account in its spool.
            io, cancelled = io_counters(facts[b"io"]) if b"io" in facts else ({}, 0)
            account = ACCOUNT.unpack(bytes(ACCOUNT.size))._replace(facts=TAKEN | CHILDREN if io else 0, **io)
            head = SPOOL.unpack(bytes(SPOOL.size))._replace(
                pid=pid, first_realtime_ns=begin, last_realtime_ns=end
            )
            properties = {
                b"host": facts.get(b"host", b""),
                CANCELLED: b"%d" % cancelled,
                **{name: facts.get(name, b"") for name in (UNRECORDED, HIDDEN)},
            }
            found.append(Spool(path, head, os.fstat(file.fileno()), properties, own_account=account))
    return found


def _launches(spools: Sequence[Spool]) -> list[list[Spool]]:
    found: defaultdict[bytes, list[Spool]] = defaultdict(list)
    without: list[Spool] = []
    for spool in spools:
        if spool.head.rank >= 0:
            found[spool.launch].append(spool)
        else:
            without.append(spool)
    if len(found) == 1:
        return [list(spools)]
    launches = list(found.values())
    if any(spool.has_events for spool in without):
        launches += _programs(without)
    elif launches:
        launches[0].extend(without)
    else:
        return [list(spools)]
    return sorted(launches, key=lambda launch: min(_start_ns(spool) for spool in launch))


def _programs(spools: Sequence[Spool]) -> list[list[Spool]]:
    """Group processes without a rank; those that made no calls come to the first group."""
    if any(spool.head.version < _FIRST_WITH_LAUNCHES for spool in spools):
        return [list(spools)]
    groups: defaultdict[int, list[Spool]] = defaultdict(list)
    in_order = sorted(spools, key=_start_ns)
    for spool, place in zip(in_order, _groups(in_order), strict=True):
        groups[place].append(spool)
    active = [group for group in groups.values() if any(spool.has_events for spool in group)]
    for group in groups.values():
        if not any(spool.has_events for spool in group):
            active[0].extend(group)
    return active


def _groups(spools: Sequence[Spool]) -> list[int]:
    """Return for each process, in the order of their starts, the place of one that stands for its group."""
    group = list(range(len(spools)))

    def of(place: int) -> int:
        while group[place] != place:
            group[place] = group[group[place]]
            place = group[place]
        return place

    launches: dict[bytes, int] = {}
    processes: dict[tuple[bytes, int], int] = {}
    latest = 0
    for place, spool in enumerate(spools):
        host = spool.host
        same = [
            launches.setdefault(spool.launch, place),
            processes.get((host, spool.head.pid), place),
            processes.get((host, spool.head.parent_pid), place),
        ]
        if _start_ns(spool) <= _end_ns(spools[latest]):
            same.append(latest)
        for other in same:
            group[of(place)] = of(other)
        processes[host, spool.head.pid] = place
        if _end_ns(spool) > _end_ns(spools[latest]):
            latest = place
    return [of(place) for place in range(len(spools))]


def _start_ns(spool: Spool) -> int:
    return int(spool.head.first_realtime_ns)


def _end_ns(spool: Spool) -> int:
    """Return when the process ended; of one that was killed or still runs, a moment at which it ran."""
    last = int(spool.head.last_realtime_ns)
    return last if spool.ended else max(last, spool.status.st_mtime_ns)


def _described(launch: Sequence[Spool]) -> str:
    programs = {os.path.basename(os.fsdecode(spool.properties.get(b"program", b""))) for spool in launch}
    program = sorted(filter(None, programs))
    named = program[0] + (f" and {len(program) - 1} more" if len(program) > 1 else "") if program else "?"
    ranks = {spool.head.rank for spool in launch if spool.head.rank >= 0}
    return f"{named}, {count_text(len(ranks), 'rank') if ranks else 'without ranks'}"
