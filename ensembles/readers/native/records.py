"""Open the spools and job files of all processes as one run."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence

from ensembles.files.names import JOB_FILE_SUFFIX, process_file_of
from ensembles.model.errors import EnsioError
from ensembles.model.units import few
from ensembles.readers.native import job_file
from ensembles.readers.native.directory import chosen_records, lies_elsewhere, record_paths
from ensembles.readers.native.launches import launchers_in, spools_of_launch
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

    Parameters
    ----------
    launch : int
        Number of the launch, if several recorded into the directory (`ensembles.readers.native.launches`).
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
    source = SpoolSource(chosen, few(sentences, "spools cannot be read"), launchers_in(path) if is_all else [])
    for sentence in foreign:
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
