"""Files of the user that may be lost: kept results and programs, in ``$XDG_CACHE_HOME/ensio``.

Results never fail: what cannot be read is not there, and what cannot be written is not kept. The folder can
be deleted at any time.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from ensembles.files.site_settings import setting
from ensembles.files.untrusted import OTHERS_WRITE, open_regular

MOST_BYTES = 256 << 20
"""Size of all files; the oldest are removed above it."""

_FOLDER = "ensio"


def is_switched_off() -> bool:
    """Whether the user wants no results to be kept."""
    return setting("ENSIO_CACHE") in ("0", "off", "no")


def read_cached(name: str, most_bytes: int) -> bytes | None:
    """Read a file."""
    with suppress(OSError), _opened_folder(create=False) as folder, open_regular(name, folder) as file:
        status = os.fstat(file.fileno())
        if status.st_uid != os.geteuid() or status.st_size > most_bytes:
            return None
        content = file.read(status.st_size)
        with suppress(OSError):
            os.utime(file.fileno())  # the least recently used files are removed first
        return content
    return None


def write_cached(name: str, content: bytes, most_bytes: int = MOST_BYTES) -> bool:
    """Write a file: completely under a temporary name, which is then changed.

    `most_bytes`: size of all files; the oldest are removed above it.
    """
    with suppress(OSError), _opened_folder(create=True) as folder:
        if not _make_room(folder, len(content), most_bytes):
            return False
        temporary = f".{os.urandom(8).hex()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, 0o600, dir_fd=folder)
        try:
            with open(descriptor, "wb") as file:
                file.write(content)
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise
        return True
    return False


def made_once(folder: str, name: str, make: Callable[[str], None]) -> str:
    """Return the path of a file that only this user can have written, and that is made if it is missing."""
    with _opened_folder(create=True):
        place = os.path.join(_base(), _FOLDER, folder)
        path = os.path.join(place, name)
        if not os.path.exists(path):
            os.makedirs(place, stat.S_IRWXU, exist_ok=True)
            half = os.path.join(place, f".{os.urandom(8).hex()}")
            make(half)
            os.rename(half, path)
        return path


def may_have_cache() -> bool:
    """Whether there is a folder for cached files, or one can probably be made."""
    try:
        place = os.path.join(_base(), _FOLDER)
    except FileNotFoundError:
        return False
    if os.path.lexists(place):
        return os.path.isdir(place)
    while not os.path.lexists(place):
        place = os.path.dirname(place)
    return os.path.isdir(place) and os.access(place, os.W_OK)


def _base() -> str:
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".cache")
    if not os.path.isabs(base):
        raise FileNotFoundError(base)
    return base


@contextmanager
def _opened_folder(create: bool) -> Iterator[int]:
    """Open the folder; raise OSError if there is none, or it is not this user's alone."""
    base = _base()
    path = os.path.join(base, _FOLDER)
    if create:
        for each in (base, path):
            # As root with the settings of a user, nothing is made in the user's folders.
            if os.stat(os.path.dirname(each)).st_uid == os.geteuid():
                with suppress(FileExistsError):
                    os.mkdir(each, stat.S_IRWXU)
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(folder)
        if status.st_uid != os.geteuid() or status.st_mode & OTHERS_WRITE:
            raise PermissionError(path)
        yield folder
    finally:
        os.close(folder)


_size_bytes: dict[tuple[int, int], int] = {}
"""Size of all files of a folder when they were last listed, and those that this process has written since."""


def _make_room(folder: int, length: int, most_bytes: int) -> bool:
    """Remove the oldest files until there is room for another one."""
    if length > most_bytes:
        return False
    status = os.fstat(folder)
    place = status.st_dev, status.st_ino
    if place in _size_bytes and _size_bytes[place] + length <= most_bytes:
        _size_bytes[place] += length
        return True
    found = []
    for name in os.listdir(folder):
        with suppress(OSError):
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISREG(status.st_mode):
                found.append((status.st_mtime_ns, status.st_size, name))
    whole = sum(size for _, size, _ in found) + length
    for _, size, name in sorted(found):
        if whole <= most_bytes:
            break
        os.unlink(name, dir_fd=folder)
        whole -= size
    _size_bytes[place] = whole
    return True
