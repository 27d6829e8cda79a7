"""What processes noted beside their calls: facts of files, environment variables, mounts, versions."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

from ensembles.metadata import Mount, RunMetadata
from ensembles.readers.spool import Spool

_ESCAPE = re.compile(rb"\\([0-7]{3})")
_VARIABLE = b"env."
_BLOCK = b"block."


def add_facts(metadata: RunMetadata, spools: Sequence[Spool]) -> None:
    """Put what the spools tell into the metadata. Where they differ, the first one's word is taken."""
    for spool in spools:
        host = os.fsdecode(spool.properties.get(b"host", b""))
        if host not in metadata.mounts and b"mounts" in spool.properties:
            metadata.mounts[host] = _mounts(spool.properties)
        for number, name in spool.files:
            if number in spool.facts:
                facts = metadata.file_facts.setdefault(os.fsdecode(name), {})
                for key, value in _pairs(spool.facts[number]):
                    facts.setdefault(key, value)
    metadata.environment = next((found for spool in spools if (found := _environment(spool))), {})
    for fact in ("user", "uid", "libc", "mpi"):
        values = (spool.properties.get(fact.encode(), b"") for spool in spools)
        setattr(metadata, fact, os.fsdecode(next(filter(None, values), b"")))


def _pairs(text: bytes) -> Iterable[tuple[str, str]]:
    for line in text.split(b"\0"):
        key, equals, value = line.partition(b"=")
        if equals and key:
            yield os.fsdecode(key), os.fsdecode(value)


def _environment(spool: Spool) -> dict[str, str]:
    return {
        os.fsdecode(key[len(_VARIABLE) :]): os.fsdecode(value)
        for key, value in sorted(spool.properties.items())
        if key.startswith(_VARIABLE)
    }


def _plain(text: bytes) -> str:
    r"""A text of /proc/self/mountinfo, with blanks for ``\040``."""
    return os.fsdecode(_ESCAPE.sub(lambda escape: bytes([int(escape[1], 8) & 0xFF]), text))


def _mounts(properties: dict[bytes, bytes]) -> tuple[Mount, ...]:
    mounts = []
    for line in properties[b"mounts"].splitlines():
        point, _, rest = line.partition(b" ")
        kind, _, source = rest.partition(b" ")
        block = properties.get(_BLOCK + point, b"")
        if point.startswith(b"/") and kind:
            block_bytes = int(block) if block.isdigit() and len(block) < 16 else 0
            mounts.append(Mount(_plain(point), _plain(kind), _plain(source), block_bytes))
    return tuple(mounts)
