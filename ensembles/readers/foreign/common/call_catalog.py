"""Catalog of functions that other tools record: one name for all variants, and the kind of operation."""

from __future__ import annotations

import re
from functools import cache

from ensembles.model.events import Call

_OPS = {
    "read": "read pread readv preadv preadv2 sendfile copy_file_range_read splice aio_read fread fgets fgetc "
    "getdelim fscanf getc",
    "write": "write pwrite writev pwritev pwritev2 copy_file_range sendfile_write splice_write aio_write "
    "fwrite fputs fputc puts fprintf putc",
    "open": "open openat openat2 creat fopen fdopen freopen tmpfile opendir mkstemp",
    "close": "close fclose closedir",
    "seek": "lseek fseek ftell rewind",
    "wait": "aio_suspend io_getevents io_pgetevents io_uring_enter",
    "sync": "fsync fdatasync sync syncfs sync_file_range msync aio_fsync fflush",
}
_OP_OF = {name: op for op, names in _OPS.items() for name in names.split()}

_VARIANT = re.compile(r"^_*(.+?)(?:64)?(?:_chk|_unlocked)?$")
_OTHER_NAMES = {
    "xstat": "stat",
    "lxstat": "lstat",
    "fxstat": "fstat",
    "fxstatat": "fstatat",
    "newfstatat": "fstatat",
    "fseeko": "fseek",
    "ftello": "ftell",
    "fsetpos": "fseek",
    "fgetpos": "ftell",
    "getline": "getdelim",
    "preadv64v2": "preadv2",
    "pwritev64v2": "pwritev2",
    "mkostemp": "mkstemp",
    "vfprintf": "fprintf",
    "_llseek": "lseek",
    "llseek": "lseek",
    "fadvise": "posix_fadvise",
}

_NO_IO = """
fork vfork clone execv execve execvp execvpe execl execle execlp execlpe getpid pipe pipe2 mkfifo umask
chdir fchdir wait waitpid
confstr pathconf sysconf"""
NO_IO = frozenset(_NO_IO.split())
"""Functions that tools record among I/O calls although they are not I/O."""


@cache
def canonical_function(name: str, layer: str) -> Call:
    """Return the call for a function name of another tool, as ensio's recorder would name it.

    docs/reference/calls.md lists the names.

    Examples
    --------
    >>> canonical_function("__xstat64", "posix")
    Call(name='stat', layer='posix', op='meta')
    >>> canonical_function("MPI_File_iwrite_at", "mpiio").op
    'write'
    """
    if layer in ("posix", "stdio"):
        match = _VARIANT.match(name)
        plain = match[1] if match else name
        plain = _OTHER_NAMES.get(plain, plain)
        return Call(plain, layer, _OP_OF.get(plain, "meta"))
    return Call(name, layer, _op_of_library(name, layer))


def _op_of_library(name: str, layer: str) -> str:
    if layer == "mpisync":
        return "wait"
    words = name.lower()
    for op in ("read", "write"):
        if re.search(rf"_i?{op}(_|$)|d{op}$", words):
            return op
    if re.search(r"open|create", words):
        return "open"
    for op in ("close", "seek"):
        if op in words:
            return op
    return "sync" if re.search(r"sync|flush", words) else "meta"
