"""What the kernel saw: calls counted by strace, by call and file."""

import re
import subprocess
from collections import Counter
from pathlib import Path

# The system calls under the recorded functions of the C library.
SYSTEM_CALLS = {
    "openat": "open",
    "open": "open",
    "creat": "creat",
    "close": "close",
    "read": "read",
    "write": "write",
    "pread64": "pread",
    "pwrite64": "pwrite",
    "readv": "readv",
    "writev": "writev",
    "preadv": "preadv",
    "pwritev": "pwritev",
    "preadv2": "preadv2",
    "pwritev2": "pwritev2",
    "lseek": "lseek",
    "fsync": "fsync",
    "fdatasync": "fdatasync",
    "ftruncate": "ftruncate",
    "dup": "dup",
    "dup2": "dup2",
    "dup3": "dup3",
    "newfstatat": "stat",
    "statx": "statx",
    "access": "access",
    "faccessat": "faccessat",
    "faccessat2": "faccessat",
    "unlink": "unlink",
    "unlinkat": "unlinkat",
    "rename": "rename",
    "renameat": "renameat",
    "renameat2": "renameat2",
    "mkdir": "mkdir",
    "mkdirat": "mkdirat",
    "rmdir": "rmdir",
    "link": "link",
    "linkat": "linkat",
    "symlink": "symlink",
    "symlinkat": "symlinkat",
    "readlink": "readlink",
    "readlinkat": "readlinkat",
    "chmod": "chmod",
    "fchmod": "fchmod",
    "fchmodat": "fchmodat",
    "truncate": "truncate",
    "fallocate": "fallocate",
    "sync_file_range": "sync_file_range",
    "fadvise64": "posix_fadvise",
    "sendfile": "sendfile",
    "copy_file_range": "copy_file_range",
    **dict.fromkeys(("utime", "utimes", "utimensat", "futimesat"), "utimensat"),
    **dict.fromkeys(("mknod", "mknodat"), "mknodat"),
}
SYSTEM_CALLS |= {
    name: name
    for name in (
        *("syncfs", "readahead", "chown", "fchown", "lchown", "fchownat", "statfs", "fstatfs"),
        *(f"{on}{what}xattr" for on in ("", "l", "f") for what in ("get", "set", "list", "remove")),
    )
}

# Recorded functions that share a system call: counted together.
SHARED = {
    "openat": "open", "mkstemp": "open", "opendir": "open", "closedir": "close", "lstat": "stat",
    "fstat": "stat", "fstatat": "stat", "posix_fallocate": "fallocate", "remove": "unlink",
    "utime": "utimensat", "utimes": "utimensat", "lutimes": "utimensat", "futimes": "utimensat",
    "futimesat": "utimensat", "futimens": "utimensat", "statvfs": "statfs", "fstatvfs": "fstatfs",
    "mknod": "mknodat", "mkfifo": "mknodat", "mkfifoat": "mknodat",
}  # fmt: skip

# A string among their arguments is what they move, and no path.
MOVING_BYTES = (
    "read",
    "write",
    "pread64",
    "pwrite64",
    "readv",
    "writev",
    "preadv",
    "pwritev",
    "preadv2",
    "pwritev2",
)

LINE = re.compile(
    r"^(?:\d+ +)?(\w+)\("  # call
    r"(?:AT_FDCWD(?:<[^>]*>)?, )?(?:\d+<([^>]*)>, )?"  # folder of a path, or file of a descriptor
    r"(?:\"([^\"]*)\"|\d+<([^>]*)>)?"  # path, or file of an only argument
)


def counted(command: list[str], log: Path, folder: Path, **options) -> Counter:
    """Run a command under strace and count its calls on files of a folder.

    Parameters
    ----------
    command : list of str
    log : Path
        Where strace writes.
    folder : Path
        Calls on files elsewhere are not counted; relative paths count as inside.

    Returns
    -------
    Counter
        By name of the recorded call; ``openat`` counts as ``open``, for the C library makes no difference.
    """
    trace = "trace=" + ",".join(SYSTEM_CALLS)
    subprocess.run(["strace", "-f", "-y", "-e", trace, "-o", str(log), *command], check=False, **options)
    counts: Counter = Counter()
    for line in log.read_text(errors="replace").splitlines():
        if "resumed>" in line:
            continue
        match = LINE.match(line)
        if not match or match[1] not in SYSTEM_CALLS:
            continue
        base, path, target = match[2], match[3], match[4]
        if path and match[1] not in MOVING_BYTES:
            where = path if path.startswith("/") else f"{base or folder}/{path}"
        else:
            where = base or target or ""
        if where.startswith(str(folder)):
            counts[SYSTEM_CALLS[match[1]]] += 1
    return counts
