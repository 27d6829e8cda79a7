"""Look up functions and source lines of call sites, by addr2line of binutils or elfutils."""

from __future__ import annotations

import os
import re
import stat
import struct
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from ensembles.model.sites import Frame
from ensembles.recorder.elf import read_build_id

PATIENCE_S = 120.0
"""Longest time that the places in one module may take, s."""

_AT_A_TIME = 4096
_SYSTEM = re.compile(r"^/usr/(local/)?include/|/include/c\+\+/|/lib/gcc/|<built-in>")
_DISCRIMINATOR = re.compile(r" \(discriminator \d+\)$")
_FORTRAN = (".f", ".for", ".ftn", ".f77", ".f90", ".f95", ".f03", ".f08", ".f18")
_CLONE = re.compile(r"(\.(constprop|isra|part|cold|lto_priv)(\.\d+)?)+$")
_MODULE_PROCEDURE = re.compile(r"__(\w+)_MOD_(\w+)")


def resolve_sites(sites: Sequence[tuple[Frame, ...]]) -> list[tuple[Frame, ...]]:
    """Look up the places of call sites that are not known yet.

    Returns
    -------
    list of tuple of Frame
        The same frames with their places. A module that is missing here, or was built again since it was
        recorded, gives no place.
    """
    wanted: dict[tuple[str, str], set[int]] = defaultdict(set)
    for frame in (frame for frames in sites for frame in frames):
        if frame.state == "unknown" and frame.module:
            wanted[frame.module, frame.build_id].add(frame.address)
    found = {}
    for (module, build_id), addresses in wanted.items():
        for frame in places_in(module, build_id, sorted(addresses)):
            found[module, build_id, frame.address] = frame
    return [
        tuple(found.get((frame.module, frame.build_id, frame.address), frame) for frame in frames)
        for frames in sites
    ]


def places_in(module: str, build_id: str, addresses: Sequence[int]) -> list[Frame]:
    """Look up the places of return addresses in one module.

    Parameters
    ----------
    build_id : str
        Its build id when it was recorded; ``""``: it had none.
    """
    frames = [Frame(module, address, build_id) for address in addresses]
    now = _build_id_now(module)
    if now is None:
        return [replace(frame, state="missing") for frame in frames]
    if now != build_id:
        return [replace(frame, state="rebuilt") for frame in frames]
    lines = _lines(module, addresses)
    if lines is None:
        return frames
    symbols: list[tuple[int, str, int]] | None = None
    placed = []
    for frame in frames:
        function, file, line = lines.get(frame.address, ("", "", 0))
        if file:
            placed.append(replace(frame, state="line", function=function, file=file, line=line))
            continue
        if symbols is None:
            symbols = _symbols(module)
        place = bisect_right(symbols, (frame.address - 1, chr(0x10FFFF), 0)) - 1
        begin, name, length = symbols[place] if place >= 0 else (0, "", 0)
        if frame.address - begin > length:
            placed.append(replace(frame, state="stripped"))
        else:
            placed.append(replace(frame, state="function", function=name, line=frame.address - begin))
    return placed


def _build_id_now(module: str) -> str | None:
    """Return the build id of a module, ``""`` if it has none, None if there is no such file."""
    with suppress(OSError, ValueError):
        if stat.S_ISREG(os.stat(module).st_mode):
            return read_build_id(module)
    return None


def _lines(module: str, addresses: Sequence[int]) -> dict[int, tuple[str, str, int]] | None:
    """Return function, file and line by return address; None: there is no addr2line."""
    tool = _tool("addr2line")
    if tool is None:
        return None
    found = {}
    for low in range(0, len(addresses), _AT_A_TIME):
        some = addresses[low : low + _AT_A_TIME]
        # The call ends just before its return address, which may belong to the next line already.
        text = "".join(f"{address - 1:#x}\n" for address in some if address > 0)
        output = _output([tool, "-a", "-f", "-i", "-C", "-e", module], text)
        for address, pairs in _parse(output):
            found[address + 1] = _best(pairs)
    return found


def _parse(output: str) -> Iterable[tuple[int, list[tuple[str, str]]]]:
    """Yield each address with its functions and places, those of inlined functions first."""
    address: int | None = None
    function: str | None = None
    pairs: list[tuple[str, str]] = []
    for line in output.splitlines():
        if function is None and re.fullmatch(r"0x[0-9a-fA-F]+", line):
            if address is not None:
                yield address, pairs
            address, pairs = int(line, 16), []
        elif function is None:
            function = line
        else:
            pairs.append((function, line))
            function = None
    if address is not None:
        yield address, pairs


def _best(pairs: Sequence[tuple[str, str]]) -> tuple[str, str, int]:
    """Return the innermost place that is not in a header of the system: calls in these are inlined."""
    places = []
    for function, text in pairs:
        file, _, line = _DISCRIMINATOR.sub("", text).rpartition(":")
        if file and not file.startswith("??") and line.isdigit() and int(line) > 0:
            places.append((_readable(function, file), file, int(line)))
    own = [place for place in places if not _SYSTEM.search(place[1])]
    return (own or places or [("", "", 0)])[0]


def _readable(function: str, file: str) -> str:
    """Return the name of a function as its programmer wrote it, without its arguments."""
    if function.startswith("??"):
        return ""
    if os.path.splitext(file)[1].lower() in _FORTRAN:
        procedure = _MODULE_PROCEDURE.fullmatch(function)
        if procedure is not None:
            return f"{procedure[1]}::{procedure[2]}"
        return "main program" if function == "MAIN__" else function.rstrip("_")
    return _without_arguments(function)


def _without_arguments(function: str) -> str:
    """Cut the arguments of a demangled C++ name, in its last brackets, and what a compiler appended."""
    function = _CLONE.sub("", function).removesuffix(" const")
    if not function.endswith(")"):
        return function
    depth = 0
    for place in range(len(function) - 1, -1, -1):
        depth += (function[place] == ")") - (function[place] == "(")
        if depth == 0:
            return function[:place] or function
    return function


def _symbols(module: str) -> list[tuple[int, str, int]]:
    """Return start, name and length of the functions in the symbol tables of a module, ascending."""
    tool = _tool("nm")
    found: dict[int, tuple[str, int]] = {}
    for options in (["-D"], []):
        output = "" if tool is None else _output([tool, *options, "-C", "-S", "--defined-only", module], "")
        for line in output.splitlines():
            words = line.split(" ", 3)
            if len(words) == 4 and words[2] in "tTwWiu":
                with suppress(ValueError):
                    name = _without_arguments(words[3].partition("@")[0].partition(" [clone")[0])
                    found[int(words[0], 16)] = name, int(words[1], 16)
    return [(begin, *known) for begin, known in sorted(found.items())]


def _tool(name: str) -> str | None:
    import shutil

    return shutil.which(name) or shutil.which(f"eu-{name}")


def _output(command: Sequence[str], text: str) -> str:
    """Return the standard output of a tool, or "" if it fails."""
    import subprocess

    try:
        done = subprocess.run(
            command,
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=PATIENCE_S,
            encoding="utf-8",
            errors="replace",
            check=False,
            env={**os.environ, "LC_ALL": "C", "ENSIO_DISABLE": "1"},
        )
    except (OSError, subprocess.TimeoutExpired, struct.error):
        return ""
    return done.stdout
