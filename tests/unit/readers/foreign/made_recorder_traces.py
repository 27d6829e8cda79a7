"""Traces of Recorder, written from the description of the format alone (other-tools.md)."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path

FUNCTIONS = ["creat", "open", "close", "read", "write", "pread", "pwrite", "lseek", "fsync", "fopen", "fread"]
FUNCTIONS += [
    "fclose",
    "getcwd",
    "MPI_Barrier",
    "MPI_Comm_rank",
    "MPI_File_open",
    "MPI_File_write_at",
    "H5Fopen",
    "mmap",
]


@dataclass
class MadeCall:
    """A call; times in ticks since the start of the run."""

    function: str
    arguments: tuple[str, ...]
    start: int
    end: int
    depth: int = 0
    thread: int = 0

    @property
    def key(self) -> bytes:
        text = b"".join(word.encode() + b" " for word in self.arguments)
        number = FUNCTIONS.index(self.function)
        head = struct.pack("<QBBBi", self.thread, number, self.depth, len(self.arguments), len(text))
        return head + text


@dataclass
class MadeTrace:
    """A trace of ranks; `write` makes its folder."""

    version: str
    is_merged: bool = False
    packs_times: bool = False
    start_s: float = 1_700_000_000.0
    step_s: float = 1e-7
    patterns: tuple[bool, bool] = (False, False)
    ranks: list[list[MadeCall]] = field(default_factory=list)

    @property
    def is_newer(self) -> bool:
        """Whether it is of Recorder 3, which compresses its parts."""
        return self.version >= "3"

    def metadata(self) -> bytes:
        """The content of recorder.mt."""
        tasks = len(self.ranks)
        if self.is_newer:
            head = struct.pack("<i8?4xddi4?", tasks, *[True] * 8, self.start_s, self.step_s, 1 << 18,
                               self.packs_times, self.is_merged, *self.patterns)  # fmt: skip
            head = head.ljust(1024, b"\0")
        else:
            head = struct.pack("<i4xddii", tasks, self.start_s, self.step_s, 1 << 18, 0)
            head += struct.pack("<i4x", self.is_merged) if self.version >= "2.4" else b""
        return head + "".join(f"{name}\n" for name in FUNCTIONS).encode()

    def part(self, data: bytes) -> bytes:
        """A part as it is stored."""
        if not self.is_newer:
            return data
        packed = zlib.compress(data)
        return struct.pack("<QQ", len(packed), len(data)) + packed

    @staticmethod
    def table(keys: list[bytes]) -> bytes:
        """The table of signatures, in another order than that of their numbers."""
        entries = [
            struct.pack("<iiii", number, 0, len(key), 1) + key
            for number, key in reversed(list(enumerate(keys)))
        ]
        return struct.pack("<i", len(keys)) + b"".join(entries)

    @staticmethod
    def grammar(numbers: list[int]) -> bytes:
        """A grammar: repetitions of one call as exponents, the first half of the calls in a rule below."""
        runs: list[list[int]] = []
        for number in numbers:
            if runs and runs[-1][0] == number:
                runs[-1][1] += 1
            else:
                runs.append([number, 1])
        low, high = runs[: len(runs) // 2], runs[len(runs) // 2 :]
        rules = [(-1, [[-2, 1], *high]), (-2, low)] if low else [(-1, high)]
        words = [len(rules)]
        for rule, body in rules:
            words += [rule, len(body), *(word for pair in body for word in pair)]
        return struct.pack(f"<{len(words)}i", *words)

    @staticmethod
    def times(calls: list[MadeCall]) -> bytes:
        """Ticks since the start of the call before, of start and end."""
        found, before = b"", 0
        for call in calls:
            found += struct.pack("<II", call.start - before, call.end - before)
            before = call.start
        return found

    def write(self, folder: Path) -> Path:
        """Write the folder."""
        folder.mkdir()
        (folder / "VERSION").write_text(self.version)
        (folder / "recorder.mt").write_bytes(self.metadata())
        keys = [list(dict.fromkeys(call.key for call in calls)) for calls in self.ranks]
        if self.is_merged:
            shared = list(dict.fromkeys(key for of_rank in keys for key in of_rank))
            keys = [shared] * len(self.ranks)
        grammars = [
            self.grammar([of_rank.index(call.key) for call in calls])
            for of_rank, calls in zip(keys, self.ranks, strict=True)
        ]
        if self.is_merged:
            unique = list(dict.fromkeys(grammars))
            numbers = [*(unique.index(each) for each in grammars), len(unique)]
            (folder / "ug.mt").write_bytes(struct.pack(f"<{len(numbers)}i", *numbers))
            name = "recorder.cst" if self.is_newer else "0.cst"
            (folder / name).write_bytes(self.part(self.table(keys[0])))
            if self.is_newer:
                (folder / "ug.cfg").write_bytes(b"".join(map(self.part, unique)))
            else:
                for i, grammar in enumerate(unique):
                    (folder / f"{i}.cfg").write_bytes(grammar)
        else:
            for rank, (of_rank, grammar) in enumerate(zip(keys, grammars, strict=True)):
                (folder / f"{rank}.cst").write_bytes(self.part(self.table(of_rank)))
                (folder / f"{rank}.cfg").write_bytes(self.part(grammar))
        self._write_times(folder)
        return folder

    def _write_times(self, folder: Path) -> None:
        times = [self.times(calls) for calls in self.ranks]
        if not self.is_newer:
            for rank, data in enumerate(times):
                (folder / f"{rank}.ts").write_bytes(data)
            return
        stored = [self.part(data) if self.packs_times else data for data in times]
        sizes = struct.pack(f"<{len(stored)}Q", *map(len, stored))
        (folder / "recorder.ts").write_bytes(sizes + b"".join(stored))
