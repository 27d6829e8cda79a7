"""Read output of ``strace -f -ttt -T``, with or without ``-o``, ``-y`` and ``-yy``.

Each line affects the meaning of later lines (descriptors, file positions, working directories, child
processes). Therefore lines are interpreted one by one.
"""

from __future__ import annotations

import os
import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from errno import EBADF

import numpy as np

from ensembles.files.untrusted import Reading
from ensembles.model.errors import EnsioError
from ensembles.model.events import SAME_CALL
from ensembles.model.metadata import LEAST_BYTES, RunMetadata
from ensembles.model.units import HALF_INT64, ROWS_AT_ONCE
from ensembles.readers.foreign.common.call_catalog import canonical_function
from ensembles.readers.foreign.common.id_tables import CallIds, FileIds, IdTable, Tasks, TracedProcess
from ensembles.readers.foreign.common.import_table import ForeignTrace
from ensembles.readers.foreign.common.text_blocks import BLOCK_BYTES, note_others
from ensembles.readers.foreign.strace.call_arguments import (
    BIRTHS,
    FOLLOWED,
    MAPPING,
    OPENS,
    WITHOUT_FILE,
    access_of,
    bounded_number,
    split_result,
)
from ensembles.readers.foreign.strace.lines import (
    LINE,
    Stamps,
    TextLines,
    files_of,
    is_text_of_strace,
    merged_lines,
)
from ensembles.readers.foreign.strace.syscall_semantics import (
    Declared,
    Descriptors,
    Folder,
    Syscall,
    Thread,
    apply_syscall,
)

_MOST_UNFINISHED_BYTES = 1 << 16
_LEAST_BLOCK_BYTES = 1 << 13

_UNFINISHED = " <unfinished ...>"
_OWN_WORDS = ("strace: ", " > ", "/usr/bin/strace: ")
_BORN = re.compile(r"(?:clone3?|v?fork)\b.* = (\d+)(?:<[^>]*>)?(?: <[\d.]+>)?$", re.ASCII)
_FLAGS = re.compile(r"flags=([A-Z_|0-9xa-f]+)")

COLUMNS = (
    *("rank", "thread", "depth", "call", "carried", "file"),
    *("offset", "requested", "moved", "error", "start", "duration"),
)

_ROUNDED_NS = 2000
_EVERY_PROGRAM = {"open": OPENS, "mmap": MAPPING, "close": {"close"}}
"""Calls that every program makes, by name: without one of them, the trace is a selection."""

_LOADING = ("PROT_EXEC", "MAP_DENYWRITE", "MAP_FIXED")
_OF_SYSTEM = re.compile(
    r"/(usr|etc|lib(64)?|dev|proc|sys|run|var/cache)/|.*/(ompi\.|prte\.|pmix-|hsperfdata_)"
)
_STATS = ("newfstatat", "fstatat64")


class StraceImport(ForeignTrace):
    """Output of strace; a `ForeignTrace`."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._calls = CallIds()
        self._numbers = IdTable(lambda name: self._calls.number(canonical_function(name, "posix")))
        self._files = FileIds()
        self._tasks = Tasks()
        self._processes: list[TracedProcess] = []
        self._threads: dict[int, Thread] = {}
        self._stored = 0
        self._unnamed: Thread | None = None
        self._alone = 0
        self._stamps = Stamps()
        self._births: dict[int, deque[tuple[int, str]]] = {}
        self._counts: Counter[str] = Counter()
        self._latest = 0
        self._seen: set[str] = set()
        self._rows: list[tuple[int, ...]] = []
        self._maps: dict[str, int] = {}
        with Reading(path):
            self._paths, self._others = files_of(path)
        origin = self._look_through()
        if origin is None:
            raise EnsioError(f"{path} has no system call with a time: trace with strace -f -ttt -T -o FILE")
        self.metadata = RunMetadata(0, 0, origin, (), [], [], [], mode="trace", recorder="strace")

    def _texts(self) -> list[TextLines]:
        block_bytes = max(BLOCK_BYTES // max(len(self._paths), 1), _LEAST_BLOCK_BYTES)
        return [TextLines(path, block_bytes=block_bytes) for path in self._paths]

    def _look_through(self) -> int | None:
        """Collect the parents of all threads, and return the time of the first call (ns since 1970)."""
        origin = None
        flags: dict[str, str] = {}
        for line in merged_lines(self._texts()):
            if origin is None and (match := LINE.match(line)):
                origin = Stamps().time_ns(match)
            if "clone" not in line and "fork" not in line:
                continue
            match = LINE.match(line)
            if match is None or (match[5] or match[7]) not in BIRTHS:
                continue
            parent = match[1] or match[2] or "0"
            if match[5]:
                told = _FLAGS.search(match[6])
                flags[parent] = told[1] if told else ""
            born = _BORN.search(line)
            if born and bounded_number(born[1]):
                self._births.setdefault(bounded_number(born[1]), deque()).append(
                    (bounded_number(parent), flags.get(parent) or flags.get("0", ""))
                )
        return origin

    def blocks(self, max_events: int) -> Iterator[Mapping[str, np.ndarray]]:
        """Yield blocks of calls in the order of their returns, as `ForeignTrace.blocks`."""
        limit = min(max_events, ROWS_AT_ONCE)
        files = self._texts()
        for line in merged_lines(files):
            match = LINE.match(line)
            if match is None or not is_text_of_strace(line):
                if line.strip() and not line.startswith(_OWN_WORDS):
                    self._counts["lines"] += 1
                    self._counts["zeros"] += line.count("\0")
                continue
            self._line(match)
            if len(self._rows) >= limit:
                yield self._block()
        yield self._block()
        self._counts["lines"] += sum(file.skipped for file in files)
        alive = {id(each.process) for each in self._threads.values() if not each.process.ended}
        self._counts["endless"] = max(len(alive), int(any(file.ends_in_line for file in files)))
        self._finish()

    def _line(self, match: re.Match[str]) -> None:
        pid = self._pid_of(match)
        now = self._stamps.time_ns(match)
        thread = self._threads.get(pid) or self._born(pid)
        process = thread.process
        process.first = process.first or now
        process.last = max(process.last, now)
        self._counts["disorder"] += now < max(self._latest, thread.busy_until)
        self._latest = now
        name, resumed = match[5], match[7]
        if name is not None:
            self._seen.add(name)
            process.ended |= name == "exit_group"  # strace -qq says no more
            if name not in FOLLOWED:
                return
            self._counts["endings"] += thread.unfinished is not None
            thread.end()
            if match[6].endswith(_UNFINISHED):
                text = match[6][: -len(_UNFINISHED)].rstrip(" ")
                thread.begin(Syscall(name, text[:_MOST_UNFINISHED_BYTES], now))
                return
            self._returned(thread, Syscall(name, match[6], now), now)
        elif resumed is not None:
            begun = thread.unfinished
            thread.end()
            if begun is None or begun.name != resumed:
                self._counts["resumed"] += resumed in FOLLOWED
                return
            begun.text += match[8] if not begun.text or match[8][:1] in ",)" else " " + match[8]
            self._returned(thread, begun, now)
        elif match[9] is not None:
            self._ended(pid, thread, match[9])

    def _pid_of(self, match: re.Match[str]) -> int:
        """Return the process id of a line; on a terminal, strace prints it only for several processes."""
        told = match[1] or match[2]
        if told is None:
            if len(self._threads) == 1:
                self._alone = next(iter(self._threads))
            # strace follows a child a little later than the child starts.
            return self._alone if self._alone in self._threads else 0
        pid = bounded_number(told)
        if pid not in self._threads and 0 in self._threads and not self._births.get(pid):
            self._unnamed = self._threads[pid] = self._threads.pop(0)
            self._unnamed.process.pid = self._alone = pid
        return pid

    def _born(self, pid: int) -> Thread:
        """Add a thread or process at its first line."""
        births = self._births.get(pid)
        parent_pid, flags = births.popleft() if births else (0, "")
        parent = self._threads.get(parent_pid)
        if parent is None and births is not None:
            # On a terminal the parent may have no number yet.
            parent = self._unnamed or self._threads.get(0)
        if parent is None:
            process = TracedProcess("", pid, source=os.path.basename(self._path))
            thread = Thread(pid, process, Descriptors(), Folder())
        elif "CLONE_THREAD" in flags:
            thread = Thread(pid, parent.process, parent.descriptors, parent.folder)
            self._threads[pid] = thread
            return thread
        else:
            process = TracedProcess("", pid, parent=parent.process.pid, source=os.path.basename(self._path))
            process.program, process.command = parent.process.program, parent.process.command
            shares = "CLONE_FILES" in flags
            thread = Thread(
                pid,
                process,
                parent.descriptors if shares else parent.descriptors.copy(),
                parent.folder if "CLONE_FS" in flags else Folder(parent.folder.path),
            )
        self._processes.append(process)
        self._threads[pid] = thread
        return thread

    def _returned(self, thread: Thread, call: Syscall, now: int) -> None:
        split = split_result(call.text)
        if split is None:
            self._counts["lines"] += 1
            return
        arguments, result = split
        if result.value is None:
            self._counts["restarted"] += call.name not in ("execve", "execveat")
            return
        if call.name in BIRTHS:
            if result.value > 0 and result.value not in self._threads and self._births.get(result.value):
                self._born(result.value)
            return
        told = apply_syscall(thread, call.name, arguments, result)
        if told is None:
            return
        if told == "no file":
            self._counts["no file"] += 1
            return
        # An empty path is the descriptor itself: so the C library makes fstat.
        asks_file = call.name in _STATS and "AT_EMPTY_PATH" in arguments
        halves = told if isinstance(told, list) else [("fstat" if asks_file else call.name, told)]
        duration = result.duration_ns
        if duration is None:
            self._counts["untimed"] += len(halves)
            duration = max(now - call.start, 0)
        self._counts["submitted"] += len(halves) * (call.name == "io_submit")
        if call.name in MAPPING and result.value >= 0:
            self._mapped(halves[0][1], arguments)
        for number, (name, half) in enumerate(halves):
            flags = access_of(call.name, arguments) | SAME_CALL * (number > 0)
            self._store(thread, min(number, 1), name, flags, half, result.errno, call.start, duration)

    def _mapped(self, told: Declared, arguments: str) -> None:
        """Keep how much of a file the program may read, or write, by its map; what it loads is code."""
        path, _, size, _ = told
        if "MAP_SHARED" in arguments and "PROT_WRITE" in arguments:
            size = HALF_INT64
        if any(word in arguments for word in _LOADING) or _OF_SYSTEM.match(path):
            size = 0
        self._maps[path] = max(self._maps.get(path, 0), size)

    def _store(
        self,
        thread: Thread,
        depth: int,
        name: str,
        flags: int,
        told: Declared,
        errno: int,
        start: int,
        duration: int,
    ) -> None:
        path, offset, requested, moved = told
        process = thread.process
        if thread.number is None:
            self._tasks.enter(process)
            thread.number = self._tasks.thread(process, thread.tid)
        # A descriptor that is not open is of no file.
        if not path.startswith("/") and name not in WITHOUT_FILE and errno != EBADF:
            self._counts["relative" if path else "unknown file"] += 1
        self._stored += 1
        row = (
            process.rank,
            thread.number,
            depth,
            self._numbers[name],
            flags,
            self._files.number(path),
            offset,
            requested,
            moved,
            errno,
            start - self.metadata.origin_unix_ns,
            duration,
        )
        self._rows.append(row)
        process.last = max(process.last, start + duration)
        # Durations and dates are of different clocks, which may differ by a thousandth, and are rounded.
        thread.busy_until = start + duration - duration // 1000 - _ROUNDED_NS

    def _ended(self, pid: int, thread: Thread, how: str) -> None:
        if how.startswith("superseded"):
            return
        self._counts["never returned"] += thread.unfinished is not None
        thread.end()
        process = thread.process
        if process.pid == pid:
            process.ended = how.startswith("exited")
            self._counts["killed"] += not process.ended
        del self._threads[pid]

    def _block(self) -> dict[str, np.ndarray]:
        table = np.array(self._rows, np.int64).reshape(len(self._rows), len(COLUMNS))
        self._rows.clear()
        return {name: np.ascontiguousarray(table[:, place]) for place, name in enumerate(COLUMNS)}

    def _finish(self) -> None:
        metadata = self.metadata
        if self._stored and self._counts["untimed"] == self._stored:
            raise EnsioError(f"{self._path} has no durations of calls: trace with strace -f -ttt -T -o FILE")
        self._counts["never returned"] += sum(
            thread.unfinished is not None for thread in self._threads.values()
        )
        metadata.calls, metadata.files = self._calls.calls, self._files.paths
        processes = [process.as_process() for process in self._processes]
        metadata.processes = sorted(processes, key=lambda process: (process.rank < 0, process.rank))
        metadata.tasks = self._tasks.number_of_tasks(self._processes)
        metadata.threads = sum(process.threads for process in processes)
        left_out = sum(self._counts[what] for what in ("lines", "resumed", "endings"))
        metadata.left_out = -1 if self._counts["endless"] or self._counts["zeros"] else left_out
        if sum(self._maps.values()) >= LEAST_BYTES:
            metadata.has_maps()
        metadata.clock_error_s = 0.0
        metadata.clock_step_s = 1e-6
        self._tell()

    def _tell(self) -> None:
        note, counts = self.metadata.note, self._counts
        note_others(note, self._others, "strace")
        note("timer resolution 1 µs (strace); the duration of every call includes the overhead of strace")
        if self._stamps.are_relative:
            note("the times are differences (strace -r), added up: the date is unknown (use strace -ttt)")
        unborn = [process for process in self._processes if not process.parent and not process.command]
        if len(unborn) > 1:
            note(
                f"the trace has no clone, fork or exec call of {len(unborn):,} processes: threads among them "
                "are shown as tasks (add process to strace -e trace=, and use -f)"
            )
        missing = [name for name, calls in _EVERY_PROGRAM.items() if not self._seen & calls]
        if missing:
            note(
                f"the trace has no call of {', '.join(missing)}: I/O by calls that strace -e trace= left "
                "out, or before strace -p, is missing"
            )
        sentences = {
            "lines": "invalid lines skipped: {:,}",
            "zeros": "bytes of zeros in place of lines, which are lost: {:,}",
            "disorder": "lines with a time before the end of the line or call before (the clock was set, or "
            "the text is damaged: times may be wrong): {:,}",
            "resumed": "calls skipped, because their beginning is missing: {:,}",
            "endings": "calls skipped, because their end is missing: {:,}",
            "never returned": "calls without a return before the end of the file or process: {:,}",
            "restarted": "calls that were interrupted and restarted (only the last attempt counts): {:,}",
            "untimed": "calls without a duration, which is estimated from time stamps (use strace -T): {:,}",
            "submitted": "requests of io_submit, with the bytes that they asked for: {:,}",
            "no file": "calls on pipes, sockets, devices and the like left out: {:,}",
            "unknown file": "calls on unknown files (use strace -y): {:,}",
            "relative": "calls with a path relative to an unknown folder (use strace -y): {:,}",
            "killed": "processes killed: {:,}",
            "endless": "processes whose end is missing (strace killed, file cut, or strace -p or -qq): {:,}",
        }
        for what, sentence in sentences.items():
            if counts[what]:
                note(sentence.format(counts[what]))
