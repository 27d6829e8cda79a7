"""Parse arguments and results of system calls in strace output: files, sizes, offsets and times."""

from __future__ import annotations

import errno
import os
import re

from ensembles.model.c_layout import CONSTANTS
from ensembles.model.units import HALF_INT64

_BY_DESCRIPTOR = """
read write pread64 pwrite64 pread pwrite readv writev preadv pwritev preadv2 pwritev2 lseek _llseek fsync
fdatasync ftruncate ftruncate64 fstat fstat64 fstatfs fchmod fchown fallocate sync_file_range fadvise64
flock getdents getdents64 syncfs close fcntl fcntl64 dup dup2 dup3 readahead futimesat fgetxattr fsetxattr
flistxattr fremovexattr"""
BY_DESCRIPTOR = frozenset(_BY_DESCRIPTOR.split())
_BY_PATH = """
open creat stat stat64 lstat lstat64 access unlink rename mkdir rmdir link symlink readlink chmod chown
lchown truncate truncate64 utime utimes statfs mknod getxattr lgetxattr setxattr lsetxattr listxattr
llistxattr removexattr lremovexattr"""
BY_PATH = frozenset(_BY_PATH.split())
_BY_FOLDER = """
openat openat2 newfstatat fstatat64 statx faccessat faccessat2 unlinkat renameat renameat2 mkdirat linkat
symlinkat readlinkat fchmodat fchmodat2 fchownat utimensat mknodat"""
BY_FOLDER = frozenset(_BY_FOLDER.split())
TWO_DESCRIPTORS = frozenset(("sendfile", "sendfile64", "copy_file_range", "splice"))
MAPPING = frozenset(("mmap", "mmap2"))
WITHOUT_FILE = frozenset(("sync", "io_getevents", "io_pgetevents", "io_uring_enter", "io_submit"))

RECORDED = BY_DESCRIPTOR | BY_PATH | BY_FOLDER | TWO_DESCRIPTORS | MAPPING | WITHOUT_FILE
"""System calls that become events."""

_NO_FILES = """
socket socketpair accept accept4 pipe pipe2 eventfd eventfd2 epoll_create epoll_create1 timerfd_create
signalfd signalfd4 inotify_init inotify_init1 memfd_create memfd_secret pidfd_open pidfd_getfd userfaultfd
io_uring_setup perf_event_open bpf fanotify_init landlock_create_ruleset"""
NO_FILES = frozenset(_NO_FILES.split())
"""System calls that make descriptors of other objects than files."""

OPENS = frozenset(("open", "openat", "openat2", "creat"))
BIRTHS = frozenset(("fork", "vfork", "clone", "clone3"))

FOLLOWED = (
    RECORDED
    | NO_FILES
    | BIRTHS
    | {"execve", "execveat", "chdir", "fchdir", "getcwd", "close_range", "unshare", "ioctl"}
)
"""System calls that are interpreted."""

MOVING = {
    "read": "read",
    "pread64": "at",
    "pread": "at",
    "readv": "vector",
    "preadv": "vector at",
    "preadv2": "vector at",
    "write": "write",
    "pwrite64": "at",
    "pwrite": "at",
    "writev": "vector",
    "pwritev": "vector at",
    "pwritev2": "vector at",
}
WRITING = frozenset(("write", "writev", "pwrite64", "pwritev", "pwritev2"))
AT_POSITION = frozenset(("read", "write", "readv", "writev"))

_DESCRIPTOR = re.compile(
    r"(AT_FDCWD|-?\d+)(?:<((?:[^<>]|->|<[^<>]*>)*)>(\(deleted\))?)?(?:, ?|[)} ]|$)", re.ASCII
)
TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"(\.\.\.)?')
_RESULT = re.compile(
    r"(-?\d+|0x[0-9a-f]+|\?)(?:<((?:[^<>]|->|<[^<>]*>)*)>(?:\(deleted\))?)?"
    r"(?: ([A-Z][A-Z0-9_]+))?(?: \(.*\))?(?: <(\d+)\.(\d{1,9})>)?",
    re.ASCII,
)
_LENGTHS = re.compile(r"(?:iov_len|aio_nbytes)=(\d+)", re.ASCII)
_REQUEST = re.compile(r"aio_lio_opcode=IOCB_CMD_(\w+), aio_fildes=", re.ASCII)
_OFFSET = re.compile(r"aio_offset=(\d+)", re.ASCII)
_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|[0-7]{1,3}|.)", re.DOTALL)
_LETTERS = {bytes((code,)): bytes((of,)) for code, of in zip(b"ntrvfabe", b"\n\t\r\v\f\a\b\x1b", strict=True)}
_MOST_DIGITS = 64
OPENED_TO_READ, OPENED_TO_WRITE = (CONSTANTS[f"ENSIO_OPENED_TO_{way}"] for way in ("READ", "WRITE"))
LARGEST = (1 << 63) - 1
_UNIT_NS: list[int] = [10 ** max(9 - digits, 0) for digits in range(10)]


def unescaped(text: str) -> str:
    """Decode a name in strace output, which is Latin-1 with C escapes, to a Python file name."""

    def plain(match: re.Match[bytes]) -> bytes:
        code = match[1]
        if code[:1] == b"x" and len(code) == 3:
            return bytes((int(code[1:], 16),))
        if code[:1].isdigit() and code[:1] < b"8":
            return bytes((int(code, 8) & 0xFF,))
        return _LETTERS.get(code, code)

    raw = text.encode("latin-1", "replace")
    return os.fsdecode(_ESCAPE.sub(plain, raw) if b"\\" in raw else raw)


def bounded_number(text: str) -> int:
    """Parse an integer, ``0x`` or decimal, by so many digits as `int` does not refuse: others are damage."""
    return int(text[:_MOST_DIGITS], 16 if "x" in text else 10)


def access_of(name: str, arguments: str) -> int:
    """Return the access that a call asks for, as flags of an event; 0: it opens no file."""
    plain = _without_texts(arguments) if name in OPENS else ""
    both = "O_RDWR" in plain
    writes = both or "O_WRONLY" in plain or name == "creat"
    return OPENED_TO_READ * (both or "O_RDONLY" in plain) + OPENED_TO_WRITE * writes


class SyscallResult:
    """Result of a system call.

    `value`: returned value; None: the call did not return, or is restarted.
    `path`: path of the returned descriptor, if strace printed it.
    `errno`: 0: no error, or an unknown one.
    `duration_ns`: None: strace ran without ``-T``.
    """

    __slots__ = ("duration_ns", "errno", "path", "value")

    def __init__(self, match: re.Match[str]) -> None:
        value, path, error, seconds, fraction = match.groups()
        self.value = None if value == "?" else max(min(bounded_number(value), LARGEST), -1 - LARGEST)
        self.path = path
        self.errno = 0
        if self.value is not None and self.value < 0:
            # Error names that Python does not know on this system remain failures without a number.
            self.errno = getattr(errno, error or "", 0)
        self.duration_ns = None if seconds is None else time_ns(seconds, fraction)


def time_ns(seconds: str, fraction: str) -> int:
    """Convert seconds and their decimals to ns, at most `HALF_INT64`."""
    return min(bounded_number(seconds) * 1_000_000_000 + int(fraction) * _UNIT_NS[len(fraction)], HALF_INT64)


def split_result(text: str) -> tuple[str, SyscallResult] | None:
    """Split the text after the opening bracket of a call into arguments and result.

    None: the text is invalid.
    """
    at = len(text)
    for _ in range(8):  # a path in the result may contain " = "
        at = text.rfind(" = ", 0, at)
        if at < 0:
            return None
        match = _RESULT.fullmatch(text, at + 3)
        if match:
            arguments = text[:at].rstrip()
            return (arguments[:-1], SyscallResult(match)) if arguments.endswith(")") else None
    return None


def descriptor(arguments: str, begin: int = 0) -> tuple[int | None, str | None, int] | None:
    """Parse a descriptor among the arguments.

    Descriptor (None: ``AT_FDCWD``), path printed by strace, position of the next argument. None: there is no
    descriptor.
    """
    match = _DESCRIPTOR.match(arguments, begin)
    if not match:
        return None
    number = None if match[1] == "AT_FDCWD" else bounded_number(match[1])
    if number == -100:
        number = None
    return number, match[2], match.end()


def texts(arguments: str) -> list[str]:
    """Return the first two quoted texts among the arguments, decoded."""
    found = []
    for match in TEXT.finditer(arguments):
        found.append(unescaped(match[1]))
        if len(found) == 2:
            break
    return found


def _without_texts(arguments: str) -> str:
    return TEXT.sub('""', arguments) if '"' in arguments else arguments


def size_and_offset(name: str, arguments: str) -> tuple[int, int]:
    """Parse the requested bytes and the explicit offset (-1: none) of a read or write.

    Examples
    --------
    >>> size_and_offset("pwrite64", '3, "..."..., 4096, 8192')
    (4096, 8192)
    """
    kind = MOVING[name]
    if kind in ("read", "write"):
        return _number(arguments.rpartition(", ")[2]), -1
    if kind == "at":
        head, _, last = arguments.rpartition(", ")
        return _number(head.rpartition(", ")[2]), _number(last)
    plain = _without_texts(arguments)
    lengths = sum(map(int, _LENGTHS.findall(plain)))
    offset = -1
    if kind == "vector at":
        behind = plain.rpartition("], ")[2].split(", ")
        offset = _number(behind[1], -1) if len(behind) > 1 else -1
    return min(lengths, LARGEST), offset


def submitted(arguments: str) -> list[tuple[str, int, str | None, int, int]]:
    """Parse the requests of ``io_submit``: kind, descriptor, path that strace printed, bytes, offset."""
    parts = _REQUEST.split(_without_texts(arguments))
    found = []
    for kind, rest in zip(parts[1::2], parts[2::2], strict=True):
        number, path, end = descriptor(rest) or (None, None, 0)
        if number is not None:
            size = sum(map(bounded_number, _LENGTHS.findall(rest, end)))
            offset = _OFFSET.search(rest, end)
            found.append((kind, number, path, min(size, LARGEST), _number(offset[1] if offset else "-1")))
    return found


def number_at(arguments: str, place: int) -> int:
    """Return the integer argument at an index (negative: from the end); 0: it is not an integer."""
    words = _without_texts(arguments).split(", ")
    return _number(words[place]) if -len(words) <= place < len(words) else 0


def _number(word: str, otherwise: int = 0) -> int:
    try:
        return max(min(bounded_number(word), LARGEST), -1)
    except ValueError:
        return otherwise
