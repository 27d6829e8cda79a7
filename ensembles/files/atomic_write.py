"""Write files that appear under their name only when they are complete.

Any user who can write to a folder can rename and replace the files of other users there. Therefore a file is
written through the descriptor that created it and never opened again by name, and a descriptor also holds its
folder. If another file has taken its place, that file does not get the name, and the write fails.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ensembles.files.readership import OWNER, Readership, umask
from ensembles.model.errors import EnsioError

_OWN_DESCRIPTORS = re.compile(r"/proc/(?:self|thread-self|(?P<pid>[0-9]+)(?:/task/[0-9]+)?)/fd")

_MOST_LINKS = 40
_ANYONES = stat.S_ISVTX | stat.S_IWOTH


class Interfered(EnsioError):
    """Another process replaced a file while it was being written."""


@contextmanager
def atomic_write(path: str, readers: Readership = OWNER) -> Iterator[int]:
    """Write a file under a name that a user chose: completely, or not at all.

    The file has a temporary name in the same folder until the ``with`` block ends without an error. Symbolic
    links are followed as `followed` says. A device or a pipe cannot be replaced and is written directly. If
    `path` names an open descriptor of this process (``/dev/stdout``), the complete file is copied to that
    descriptor at its current position.

    `readers`: who may read a new file, in addition to its owner. A file that replaces another one is readable
    at most by those who could read the other one.
    `OSError`: the folder cannot be written to, or the disk is full.
    `Interfered`: another process replaced the file, or another user made it (`made_by_another`), or a link to
    it.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "report.html")
    ...     with atomic_write(path) as descriptor:
    ...         _ = os.write(descriptor, b"<html></html>")
    ...         before = os.path.exists(path)
    ...     print(before, os.path.getsize(path))
    False 13
    """
    places = followed(path)
    destination = _own_descriptor(places)
    if destination is None and made_by_another(places[-1]):
        raise _not_ours(places[-1])
    if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
        with _opened(path, os.O_WRONLY) as descriptor:
            yield descriptor
    elif os.path.exists(path) and destination is not None:
        with _copied(destination) as descriptor:
            yield descriptor
    else:
        with _renamed(places[-1], readers) as descriptor:
            yield descriptor


def followed(path: str) -> list[str]:
    """Follow the links of a name that a user chose, also of its folders, except links `made_by_another`.

    The path itself, and where each link leads to; the last one has no links.
    """
    places = [path]
    while len(places) <= _MOST_LINKS:
        whole = Path(places[-1])
        link = next((each for each in (*reversed(whole.parents), whole) if os.path.islink(each)), None)
        if link is None:
            return places
        if made_by_another(str(link)):
            raise _not_ours(str(link))
        places.append(str(link.parent / os.readlink(link) / whole.relative_to(link)))
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)


def made_by_another(path: str) -> bool:
    """Test whether another user made a file or link in a folder where all users can make files.

    Such a folder is sticky and writable by all (``/tmp``). What its owner made is trusted, as the kernel does
    where ``fs.protected_symlinks``, ``protected_regular`` and ``protected_fifos`` are set.
    """
    with suppress(FileNotFoundError, NotADirectoryError):
        around, made = os.stat(os.path.dirname(path) or "."), os.lstat(path)
        return around.st_mode & _ANYONES == _ANYONES and made.st_uid not in (os.geteuid(), around.st_uid)
    return False


def _not_ours(path: str) -> Interfered:
    return Interfered(
        f"{path} was made by another user, in a folder that all users can write to, and is neither followed "
        "nor written: choose another name"
    )


@contextmanager
def temporary_file(path: str, readers: Readership = OWNER) -> Iterator[int]:
    """Write a file under a name that ensio chose: as `atomic_write`, but links are not followed.

    `OSError`: the folder cannot be written to, or the disk is full.
    `Interfered`: `path` exists and is not a regular file, or another process replaced the file.
    """
    with suppress(FileNotFoundError):
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            raise Interfered(
                f"{path} is a symbolic link, to {os.readlink(path)}, and ensio does not follow links here: "
                "remove it, or choose another name"
            )
        if not stat.S_ISREG(mode):
            raise Interfered(f"{path} is not a regular file: remove it, or choose another name")
    with _renamed(path, readers) as descriptor:
        yield descriptor


@contextmanager
def _opened(path: str, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _renamed(path: str, readers: Readership) -> Iterator[int]:
    """Write a file with a temporary name in the folder of `path`, and rename it at the end."""
    folder, name = os.path.split(path)
    # O_PATH: a folder may allow new files but not listing.
    with _opened(folder or ".", os.O_PATH | os.O_DIRECTORY) as place:
        temporary = f".ensio-{secrets.token_hex(6)}.part"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, 0o600, dir_fd=place)
        try:
            yield descriptor
            # Some file systems report a full disk only when a file is closed.
            os.close(os.dup(descriptor))
            _set_mode(descriptor, readers, name, place)
            _check(descriptor, temporary, place, path)
            os.replace(temporary, name, src_dir_fd=place, dst_dir_fd=place)
            # Another process may have replaced it between the check and the rename.
            _check(descriptor, name, place, path)
        except BaseException:
            with suppress(OSError):
                if _is(descriptor, temporary, place):
                    os.unlink(temporary, dir_fd=place)
            raise
        finally:
            os.close(descriptor)


@contextmanager
def atomic_write_folder(path: str, readers: Readership = OWNER) -> Iterator[int]:
    """Make a folder that appears as `path` when it is complete, or not at all.

    `path`: must not exist. Links of its folders are followed as `followed` says.
    `readers`: who may read the folder, in addition to its owner. The umask applies too.

    Descriptor of the new, empty folder. Write into it through ``/proc/self/fd/N``.
    """
    around, name = os.path.split(followed(path)[-1])
    with _opened(around or ".", os.O_PATH | os.O_DIRECTORY) as place:
        temporary = f".ensio-{secrets.token_hex(6)}.part"
        os.mkdir(temporary, 0o700, dir_fd=place)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, dir_fd=place)
        try:
            made = os.fstat(descriptor)
            if made.st_uid != os.geteuid() or os.listdir(descriptor):
                raise _interfered(temporary, path)
            mode = 0o700 | readers.folder_mode(made.st_gid) & ~umask()
            os.fchmod(descriptor, mode | made.st_mode & stat.S_ISGID)
            yield descriptor
            _check(descriptor, temporary, place, path)
            os.rename(temporary, name, src_dir_fd=place, dst_dir_fd=place)
            _check(descriptor, name, place, path)
        except BaseException:
            with suppress(OSError):
                if _is(descriptor, temporary, place):
                    shutil.rmtree(temporary, dir_fd=place)
            raise
        finally:
            os.close(descriptor)


def _set_mode(descriptor: int, readers: Readership, name: str, place: int) -> None:
    mode = readers.mode(os.fstat(descriptor).st_gid) & ~umask()
    with suppress(FileNotFoundError):
        mode &= os.stat(name, dir_fd=place, follow_symlinks=False).st_mode
    if mode & 0o077:
        os.fchmod(descriptor, 0o600 | mode)


def _is(descriptor: int, name: str, place: int) -> bool:
    """Test whether an open file has this name; its inode number is not reused while it is open."""
    ours = os.fstat(descriptor)
    try:
        found = os.stat(name, dir_fd=place, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return (found.st_dev, found.st_ino) == (ours.st_dev, ours.st_ino)


def _check(descriptor: int, name: str, place: int, path: str) -> None:
    if not _is(descriptor, name, place):
        raise _interfered(name, path)


def _interfered(name: str, path: str) -> Interfered:
    return Interfered(
        f"{path} is not written: another process replaced {name} in the same folder meanwhile; try again, or "
        "choose a folder that others cannot write to"
    )


@contextmanager
def _copied(destination: int) -> Iterator[int]:
    """Write an unnamed file, and copy it to an open descriptor at the end.

    Opening the descriptor's file by name would truncate it, and later output of this process would overwrite
    the file's beginning.
    """
    with tempfile.TemporaryFile(prefix="ensio-") as whole:
        yield whole.fileno()
        whole.seek(0)
        with os.fdopen(os.dup(destination), "wb") as file:
            shutil.copyfileobj(whole, file, 1 << 20)


def _own_descriptor(places: Sequence[str]) -> int | None:
    """Return the descriptor of this process that links lead over, or None."""
    for folder, name in map(os.path.split, places):
        match = _OWN_DESCRIPTORS.fullmatch(os.path.realpath(folder))
        if match and name.isdecimal() and match["pid"] in (None, str(os.getpid())):
            return int(name)
    return None
