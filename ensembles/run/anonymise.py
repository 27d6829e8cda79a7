"""Write a run without names: paths, arguments and users are hashed with a key, all numbers stay."""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from ensembles.files.readership import find_readership
from ensembles.model.errors import EnsioError
from ensembles.model.metadata import RunMetadata
from ensembles.model.sites import SiteTable
from ensembles.run.run import Run
from ensembles.writers.tracefile.tracefile import write_trace_file

_OF_SYSTEM = re.compile(r"/(usr|lib\w*|proc|sys|dev|etc)(/|$)")
_ENDING = re.compile(r"\.[a-z][a-z0-9]{0,4}$")
_PATH = re.compile(r"/[^\s,;:'\"()]+")
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


def anonymise(run: Run, path: str, key: bytes) -> int:
    """Write a run with hashed names to a file, and return its number of events.

    `EnsioError`: the file cannot be written.
    """
    source = run.reading.source
    _hash_metadata(source.metadata, Names(key))
    for module in run.counters.modules:
        source.metadata.note(f"the counters of {module} are not in this file")
    try:
        return write_trace_file(source, path, find_readership(run.path))
    except OSError as error:
        raise EnsioError(f"{path} cannot be written: {error.strerror or error}") from error


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
