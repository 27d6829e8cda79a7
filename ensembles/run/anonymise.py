"""Runs without names: paths, arguments and users are hashed with a key, all numbers stay.

A site's key is only readable by root, so that users cannot try names: runs are hashed after their end.
"""

from __future__ import annotations

import glob
import hmac
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from ensembles.files.names import LAUNCHER_SUFFIX, RECORDS, TRACE_FILE
from ensembles.files.readership import Readership, find_readership
from ensembles.files.site_settings import setting
from ensembles.files.untrusted import Reading, read_whole
from ensembles.model.errors import EnsioError, SeveralRuns
from ensembles.model.metadata import RunMetadata
from ensembles.model.sites import SiteTable
from ensembles.model.units import DAY_S
from ensembles.readers.native.directory import identity
from ensembles.readers.tracefile.tracefile import TraceFileSource
from ensembles.run.open import open_as
from ensembles.run.run import Run
from ensembles.writers.tracefile.tracefile import write_trace_file

_OF_SYSTEM = re.compile(r"/(usr|lib\w*|proc|sys|dev|etc)(/|$)")
_ENDING = re.compile(r"\.[a-z][a-z0-9]{0,4}$")
_PATH = re.compile(r"/[^\s,;:'\"()]+")
_HASHED = "ENSIO_ANONYMISED"
_KILLED_S = 7 * DAY_S
"""Age of the records of a process that was killed: a running one renews its clock reading."""

_NAMES = re.compile(r"(SLURM|PBS|LSB)_JOB_?NAME|SLURM_.*NODELIST|ENSIO_(COMMAND|LAUNCH)")


class Names:
    """Hashes of names: the same for the same name and key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def word(self, text: str) -> str:
        """Hash a word; "" stays."""
        hashed = hmac.digest(self._key, text.encode(errors="surrogateescape"), "sha256").hex()
        return text and hashed[:12]

    def path(self, text: str) -> str:
        """Hash each name of a path; its ending stays, and so do paths of the system."""
        if _OF_SYSTEM.match(text):
            return text
        ending = found[0] if (found := _ENDING.search(text)) and not text.startswith(found[0]) else ""
        return "/".join(map(self.word, text.removesuffix(ending).split("/"))) + ending

    def sentence(self, text: str) -> str:
        """Hash the paths in a text."""
        return _PATH.sub(lambda found: self.path(found[0]), text)


def read_key(path: str) -> bytes:
    """Read a key; `EnsioError`: it is too short, or cannot be read."""
    with Reading(path):
        key = read_whole(path, 4096).strip()
    if len(key) < 16:
        raise EnsioError(f"{path} has {len(key)} bytes: a key has at least 16")
    return key


def site_names() -> Names | None:
    """Return the hashes that the site demands of what is kept of runs; None: it demands none."""
    path = setting("ENSIO_ANONYMISE")
    return Names(read_key(path)) if path else None


def hash_names(run: Run, names: Names) -> None:
    """Hash the names of a run that is open; those that have been hashed with the same key stay."""
    metadata, mark = run.reading.source.metadata, names.word(_HASHED)
    if metadata.environment.get(_HASHED) != mark:
        _hash_metadata(metadata, names)
        metadata.environment[_HASHED] = mark


def anonymise(run: Run, path: str, names: Names, readers: Readership | None = None) -> int:
    """Write a run with hashed names to a file, and return its number of events.

    `readers`: who may read a file that ensio chose the name of; None: a user chose it.
    `EnsioError`: the file cannot be written.
    """
    source = run.reading.source
    hash_names(run, names)
    for module in run.counters.modules:
        source.metadata.note(f"the counters of {module} are not in this file")
    allowed = find_readership(run.path) if readers is None else readers
    try:
        return write_trace_file(source, path, allowed, follow=readers is None)
    except OSError as error:
        raise EnsioError(f"{path} cannot be written: {error.strerror or error}") from error


def hash_in_place(directory: str, names: Names) -> None:
    """Replace the records of a directory by files without names, unless a process may still be running.

    After a crash at any moment, the next call goes on: records that are in a file without names are removed.
    The directory stays open: of what its user puts in its place meanwhile, nothing is removed.
    """
    with Reading(directory):
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            _hash_in(descriptor, names)
        except EnsioError as error:
            raise EnsioError(str(error).replace(f"/proc/self/fd/{descriptor}", directory)) from error
        finally:
            os.close(descriptor)


def _hash_in(directory: int, names: Names) -> None:
    place = f"/proc/self/fd/{directory}"
    _remove(directory, _hashed(place, names))
    records = [name for name in os.listdir(directory) if name.endswith((*RECORDS, LAUNCHER_SUFFIX))]
    launches = sum(name.isdigit() for name in os.listdir(directory))
    try:
        runs = {f"{place}/{launches + 1}" if launches else place: open_as(Run, place)} if records else {}
    except SeveralRuns as several:
        runs = {
            f"{place}/{number}": open_as(Run, path) for number, path in enumerate(several.paths, launches + 1)
        }
    changed_s = max((os.stat(name, dir_fd=directory).st_mtime for name in records), default=0.0)
    is_over = time.time() - changed_s > _KILLED_S
    if is_over or all(run.reading.source.is_complete for run in runs.values()):
        readers = Readership(everyone=not os.fstat(directory).st_mode & 0o077)
        for folder, run in runs.items():
            os.makedirs(folder, exist_ok=True)
            anonymise(run, f"{folder}/{TRACE_FILE}", names, readers)
        _remove(directory, records)


def _hashed(place: str, names: Names) -> Iterator[str]:
    """Yield the names of the records that files of an earlier call hold as they are."""
    for path in glob.glob(f"{place}/{TRACE_FILE}") + glob.glob(f"{place}/[0-9]*/{TRACE_FILE}"):
        stored = TraceFileSource(path)
        if stored.metadata.environment.get(_HASHED) == names.word(_HASHED):
            for name, known in stored.spool_identities.items():
                with suppress(OSError):
                    if identity(os.stat(f"{place}/{name}", follow_symlinks=False)) == known:
                        yield name


def _remove(directory: int, names: Iterable[str]) -> None:
    for name in names:
        os.unlink(name, dir_fd=directory)


def _hash_metadata(metadata: RunMetadata, names: Names) -> None:
    known = sorted({*metadata.files, *(process.cwd for process in metadata.processes)} - {"", "/"}, key=len)
    metadata.notes = [names.sentence(_replaced(note, known[::-1], names.path)) for note in metadata.notes]
    metadata.files = [names.path(file) for file in metadata.files]
    metadata.file_facts = {names.path(file): facts for file, facts in metadata.file_facts.items()}
    metadata.sites = SiteTable([_site(text, names) for text in metadata.sites.texts])
    metadata.mounts = {
        host: tuple(
            replace(mount, point=names.path(mount.point), source=names.word(mount.source)) for mount in mounts
        )
        for host, mounts in metadata.mounts.items()
    }
    metadata.environment = {
        name: names.word(value) if _NAMES.fullmatch(name) else names.sentence(value)
        for name, value in metadata.environment.items()
    }
    metadata.user, metadata.uid = names.word(metadata.user), ""
    metadata.processes = [
        replace(
            process,
            program=names.path(process.program),
            command=tuple(map(names.path, process.command)),
            cwd=names.path(process.cwd),
            user=names.word(process.user),
        )
        for process in metadata.processes
    ]
    if (kernel := metadata.kernel_bytes) is not None:
        unrecorded = tuple(map(names.sentence, kernel.unrecorded))
        metadata.kernel_bytes = replace(kernel, unrecorded=unrecorded)


def _replaced(text: str, known: Sequence[str], hashed: Callable[[str], str]) -> str:
    for path in known:
        text = text.replace(path, hashed(path))
    return text


def _site(text: str, names: Names) -> str:
    """Hash the module and the source file of each caller (`ensembles.model.sites.parse_frames`)."""
    lines = []
    for line in text.split("\n"):
        where, *known = line.split("\t")
        *numbers, module = where.split(" ", 2)
        if len(known) == 4:
            known[2] = names.path(known[2])
        lines.append("\t".join([" ".join([*numbers, names.path(module)]), *known]))
    return "\n".join(lines)
