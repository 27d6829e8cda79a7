"""Files that appear under their name only when they are whole.

Whoever can write to a folder can rename and replace what others write there. So a file is written through the
descriptor that made it, never opened by name again, and its folder is held by a descriptor too. What has
taken its place meanwhile is not given the name, and is never told as a success.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ensembles.files.readership import OWNER, Readership, umask
from ensembles.model.errors import EnsioError

_OWN_DESCRIPTORS = re.compile(r"/proc/(?:self|thread-self|(?P<pid>[0-9]+)(?:/task/[0-9]+)?)/fd")


class Interfered(EnsioError):
    """Another process put something else in the place of a file that was being written."""


@contextmanager
def atomic_write(path: str, readers: Readership = OWNER) -> Iterator[int]:
    """A descriptor through which to write a file that appears as `path`, a name that a user chose, when it is
    whole, and not at all if anything goes wrong.

    Until then it has a temporary name beside `path`, or beside the file that `path` links to. What is no
    regular file (a device, a pipe) cannot be replaced, and is written to as it is. If `path` means an open
    descriptor of this process (``/dev/stdout``), the file goes there when it is whole, to the descriptor's
    own position.

    Parameters
    ----------
    path : str
    readers : Readership
        Who may read a new file beside its owner. One that is replaced lets nobody in whom it kept out.

    Raises
    ------
    OSError
        The folder cannot be written to, or there is no room.
    Interfered
        Something else lies in the file's place.
    """
    if not os.path.exists(path):
        with _renamed(os.path.realpath(path), readers) as descriptor:
            yield descriptor
    elif not stat.S_ISREG(os.stat(path).st_mode):
        with _opened(path, os.O_WRONLY) as descriptor:
            yield descriptor
    elif (destination := _own_descriptor(path)) is not None:
        with _copied(destination) as descriptor:
            yield descriptor
    else:
        with _renamed(os.path.realpath(path), readers) as descriptor:
            yield descriptor


@contextmanager
def temporary_file(path: str, readers: Readership = OWNER) -> Iterator[int]:
    """The same for a name that no user chose: a link of that name is not followed.

    Raises
    ------
    OSError
        The folder cannot be written to, or there is no room.
    Interfered
        `path` is there, and is no regular file; or something else lies in the file's place.
    """
    with suppress(FileNotFoundError):
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            raise Interfered(
                f"{path} is a symbolic link, to {os.readlink(path)}, and ensio writes through no link that "
                "was not named: remove it, or name the file that is to be written with -o"
            )
        if not stat.S_ISREG(mode):
            raise Interfered(
                f"{path} is no regular file: remove it, or name the file that is to be written with -o"
            )
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
    """A file with a temporary name beside `path`, which is renamed to it at the end."""
    folder, name = os.path.split(path)
    # Not O_RDONLY: a folder may be open for new files, and its list closed.
    with _opened(folder or ".", os.O_PATH | os.O_DIRECTORY) as place:
        temporary = f".ensio-{secrets.token_hex(6)}.part"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, 0o600, dir_fd=place)
        try:
            yield descriptor
            # Some file systems tell only when a file is closed that there was no room.
            os.close(os.dup(descriptor))
            _set_mode(descriptor, readers, name, place)
            _check(descriptor, temporary, place, path)
            os.replace(temporary, name, src_dir_fd=place, dst_dir_fd=place)
            # It may have been replaced between the check and the renaming.
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
    """A descriptor of a new, empty folder that appears as `path`, where there must be nothing, when it is
    whole, and not at all if anything goes wrong.

    Write into it by way of ``/proc/self/fd/N``. Its mode is what its readers and the umask let it be.

    Raises
    ------
    OSError
        The folder around it cannot be written to.
    Interfered
        Something else lies in the folder's place.
    """
    around, name = os.path.split(path)
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
    """Whether the open file has this name. While it is open, no other file gets its number."""
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
    """A file without a name, of which the content is written to a descriptor at the end.

    Opening the file behind a descriptor anew would truncate it, and what its owner writes next would
    overwrite ours.
    """
    with tempfile.TemporaryFile(prefix="ensio-") as whole:
        yield whole.fileno()
        whole.seek(0)
        with os.fdopen(os.dup(destination), "wb") as file:
            shutil.copyfileobj(whole, file, 1 << 20)


def _own_descriptor(path: str) -> int | None:
    """The descriptor of this process that an existing path means by way of links, or None."""
    while os.path.islink(path):
        folder, name = os.path.split(path)
        folder = os.path.realpath(folder)
        match = _OWN_DESCRIPTORS.fullmatch(folder)
        if match and name.isdecimal() and match["pid"] in (None, str(os.getpid())):
            return int(name)
        path = os.path.join(folder, os.readlink(path))
    return None
