"""Where the files of a run lie: file systems, striping, and the hints of MPI-IO."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from ensembles.model.units import count_text, size_text

if TYPE_CHECKING:
    from ensembles.run.run import Run

HINT = "hint."
"""Begin of the names of facts that are hints."""

_MOST_SHOWN = 3


def filesystems_of(run: Run, files: Collection[str]) -> list[dict[str, Any]]:
    """Return the file systems of the accessed files, the one with the most files first.

    ``point``, ``type`` and ``source`` of the mount, ``block_bytes`` (0: unknown), number of ``files``, and
    ``stripes``: ``stripe_count`` (-1: all targets), ``stripe_bytes`` and number of ``files`` of each
    striping, the most frequent first.
    """
    found: dict[Any, list[str]] = {}
    for path in files:
        mount = run.info.filesystem_of(path)
        if mount is not None:
            found.setdefault(mount, []).append(path)
    return [
        {
            "point": mount.point,
            "type": mount.type,
            "source": mount.source,
            "block_bytes": mount.block_bytes,
            "files": len(paths),
            "stripes": _stripes(run, paths),
        }
        for mount, paths in sorted(found.items(), key=lambda item: (-len(item[1]), item[0].point))
    ]


def _stripes(run: Run, paths: list[str]) -> list[dict[str, int]]:
    """Return the stripings of the files, the most frequent first."""
    stripings = Counter(
        (striping.stripe_count, striping.stripe_bytes)
        for striping in map(run.info.striping_of, paths)
        if striping is not None
    )
    return [
        {"stripe_count": count, "stripe_bytes": size, "files": files}
        for (count, size), files in stripings.most_common()
    ]


def hints_of(run: Run, files: Collection[str]) -> list[dict[str, Any]]:
    """Return the hints of MPI-IO that were in force for the accessed files."""
    found = Counter(
        hints
        for path in files
        if (
            hints := tuple(
                sorted(
                    (name.removeprefix(HINT), value)
                    for name, value in run.info.file_facts.get(path, {}).items()
                    if name.startswith(HINT)
                )
            )
        )
    )
    ordered = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return [{"hints": dict(hints), "files": count} for hints, count in ordered]


def storage_lines(
    filesystems: Sequence[dict[str, Any]], hints: Sequence[dict[str, Any]], all_of_them: bool = False
) -> list[tuple[str, str]]:
    """Return sentences on file systems and hints, each with its label.

    `all_of_them`: a line for each file system and set of hints, with source, block size and every striping.
    Default: one line for the first file systems, and one for the first hints.
    """
    if all_of_them:
        return [("file system", _whole_text(system)) for system in filesystems] + [
            ("MPI-IO hints", _hints_text(entry)) for entry in hints
        ]
    lines = []
    shown = [_short_text(system) for system in filesystems[:_MOST_SHOWN]]
    if len(filesystems) > _MOST_SHOWN:
        shown.append(f"{len(filesystems) - _MOST_SHOWN} more")
    if shown:
        lines.append(("files on", " · ".join(shown)))
    if hints:
        more = f" · {count_text(len(hints) - 1, 'other set')} of hints" if len(hints) > 1 else ""
        lines.append(("hints", _hints_text(hints[0]) + more))
    return lines


def _short_text(system: dict[str, Any]) -> str:
    text = f"{system['type']} at {system['point']} ({count_text(system['files'], 'file')}"
    for striping in system["stripes"][:1]:
        text += f", {_striping_text(striping)}"
    return text + ")"


def _whole_text(system: dict[str, Any]) -> str:
    parts = [f"{system['type']} at {system['point']}", count_text(system["files"], "file")]
    if system["source"]:
        parts.insert(1, f"from {system['source']}")
    if system["block_bytes"]:
        parts.append(f"block size {size_text(system['block_bytes'])}")
    parts += [
        f"{_striping_text(striping)} ({count_text(striping['files'], 'file')})"
        for striping in system["stripes"]
    ]
    return ", ".join(parts)


def _striping_text(striping: dict[str, int]) -> str:
    count = "all" if striping["stripe_count"] < 0 else f"{striping['stripe_count']:,}"
    return f"stripe count {count}, stripe size {size_text(striping['stripe_bytes'])}"


def _hints_text(entry: dict[str, Any]) -> str:
    values = ", ".join(f"{name}={value}" for name, value in entry["hints"].items())
    return f"{values} ({count_text(entry['files'], 'file')})"
