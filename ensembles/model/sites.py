"""Call sites: the places in a program that led to its calls."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, overload

STATES = ("line", "function", "stripped", "rebuilt", "missing", "unknown")
"""How well the place of a frame is known, the best first."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A caller on the stack."""

    module: str  # Path of the program or library that the return address lies in; ``""``: none
    address: int  # Return address, relative to the start of the module
    build_id: str = ""  # Build id of the module, or ``""``
    # ``line``: source file and line are known. ``function``: only the function, from the symbol table.
    # ``stripped``: not even that. ``rebuilt``: the module has another build id now. ``missing``: the file
    # does not exist here. ``unknown``: the place was not looked up.
    state: str = "unknown"
    function: str = ""  # Name of the function, or ``""``
    file: str = ""  # Path of the source file as the compiler noted it, or ``""``
    line: int = 0  # Line in `file`; without a file, bytes from the start of the function

    @property
    def place(self) -> str:
        """The place as ``file:line``, ``function+0x1f`` or ``module+0x11ab``."""
        if self.file:
            return f"{os.path.basename(self.file)}:{self.line}"
        if self.function:
            return f"{self.function}+{self.line:#x}"
        return f"{os.path.basename(self.module) or '?'}+{self.address:#x}"

    @property
    def label(self) -> str:
        """Function and place, such as ``write_restart, restart.f90:212``."""
        if self.file and self.function:
            return f"{self.function}, {self.place}"
        name = os.path.basename(self.module)
        if self.function:
            return f"{self.place} ({name})"
        return f"{self.place} (rebuilt since)" if self.state == "rebuilt" else self.place

    def matches(self, wanted: str) -> bool:
        """Test whether a filter names this place.

        `wanted`: ``file:line``, a source file (its name or its path), or a function; with wildcards.
        """
        name = os.path.basename(self.file)
        places = (self.place, self.label, f"{self.file}:{self.line}", self.file, name, self.function)
        return any(fnmatchcase(place, wanted) for place in places if place)


@dataclass(frozen=True, slots=True)
class Site:
    """A call site."""

    number: int  # Number in events; 0: unknown
    frames: tuple[Frame, ...]  # The caller, then its callers if they were recorded (``ENSIO_CALLPATH``)

    @property
    def label(self) -> str:
        """Function and place of the caller, then of its callers, such as ``dump, io.c:7 < main, io.c:20``."""
        return " < ".join(frame.label for frame in self.frames)

    def matches(self, wanted: str) -> bool:
        """Test whether a filter names the place of the caller or of one of its callers."""
        return any(frame.matches(wanted) for frame in self.frames)

    def to_json(self) -> dict[str, Any]:
        """Return the site for JSON."""
        return {
            "site": self.number,
            "label": self.label,
            "frames": [
                {
                    "function": frame.function,
                    "file": frame.file,
                    "line": frame.line,
                    "module": frame.module,
                    "address": frame.address,
                    "build_id": frame.build_id,
                    "state": frame.state,
                }
                for frame in self.frames
            ],
        }


def parse_frames(text: str) -> tuple[Frame, ...]:
    """Parse the text of a site, as the recorder or a ``trace.h5`` has it.

    `text`: a line for each caller: return address, build id and path of the module, separated by blanks. Once
    the place has been looked up, state, function, file and line follow, separated by tabs.
    """
    frames = []
    for line in text.split("\n"):
        where, *known = line.split("\t")
        address, build_id, module = [*where.split(" ", 2), "", "", ""][:3]
        number = int(address) if address.isascii() and address.isdigit() and len(address) <= 20 else 0
        frame = Frame(module, number, "" if build_id == "-" else build_id)
        if len(known) == 4 and known[0] in STATES and known[3].isascii() and known[3].isdigit():
            state, function, file, line_number = known
            frame = Frame(module, number, frame.build_id, state, function, file, int(line_number[:18]))
        frames.append(frame)
    return tuple(frames)


def frames_text(frames: Sequence[Frame]) -> str:
    """Format frames as the text that `parse_frames` parses."""
    return "\n".join(
        f"{frame.address} {frame.build_id or '-'} {frame.module}"
        + (
            ""
            if frame.state == "unknown"
            else f"\t{frame.state}\t{frame.function}\t{frame.file}\t{frame.line}"
        )
        for frame in frames
    )


class SiteTable(Sequence[str]):
    """The call sites of a run, as labels by number. Places are looked up when a label is first needed.

    `texts`: texts of the sites (`parse_frames`); the first is ``""``, the unknown site.
    `resolve`: looks up the places of sites, when they are first asked for. Default: places are those of the
    texts.
    """

    def __init__(
        self,
        texts: Sequence[str] = ("",),
        resolve: Callable[[list[tuple[Frame, ...]]], list[tuple[Frame, ...]]] = list,
    ) -> None:
        self._texts, self._resolve = list(texts), resolve
        self._sites: list[Site] | None = None

    @property
    def sites(self) -> list[Site]:
        """All sites by number, with their places."""
        if self._sites is None:
            known = [parse_frames(text) for text in self._texts]
            known[1:] = self._resolve(known[1:])
            self._texts[1:] = [frames_text(frames) for frames in known[1:]]
            self._sites = [Site(number, frames) for number, frames in enumerate(known)]
            self._sites[0] = Site(0, ())
        return self._sites

    @property
    def texts(self) -> list[str]:
        """Texts of all sites by number, with their places."""
        if len(self._texts) > 1:
            _ = self.sites
        return list(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    @overload
    def __getitem__(self, number: int) -> str: ...

    @overload
    def __getitem__(self, number: slice) -> list[str]: ...

    def __getitem__(self, number: int | slice) -> str | list[str]:
        if isinstance(number, slice):
            return [self[place] for place in range(len(self))[number]]
        if number == 0 or number == -len(self):
            return ""
        return self.sites[number].label

    def __iter__(self) -> Iterator[str]:
        return (self[number] for number in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SiteTable):
            return self._key() == other._key()
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def _key(self) -> list[str]:
        """The texts without places, which depend on the machine that looks them up."""
        return ["\n".join(line.split("\t")[0] for line in text.split("\n")) for text in self._texts]

    def __repr__(self) -> str:
        return f"SiteTable({len(self) - 1} sites)"
