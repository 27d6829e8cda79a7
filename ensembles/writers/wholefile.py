"""Files that appear under their name only when they are whole."""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_OWN_DESCRIPTORS = re.compile(r"/proc/(?:self|thread-self|(?P<pid>[0-9]+)(?:/task/[0-9]+)?)/fd")


@contextmanager
def whole_file(path: str, private: bool = False) -> Iterator[str]:
    """Where to write a file that appears as `path` when it is whole, and not at all if anything goes wrong.

    That is a temporary name beside it, or beside the file that `path` links to. What is no regular file (a
    device, a pipe) cannot be replaced, and is written to as it is. If `path` means an open descriptor of this
    process (``/dev/stdout``), the file goes there when it is whole, to the descriptor's own position. A new
    file that is `private` is its owner's alone to read.

    Raises
    ------
    OSError
        The directory cannot be written to.
    """
    if not os.path.exists(path):
        with _renamed(os.path.realpath(path), private) as temporary:
            yield temporary
    elif not stat.S_ISREG(os.stat(path).st_mode):
        yield path
    elif (descriptor := _own_descriptor(path)) is not None:
        with _copied(descriptor) as temporary:
            yield temporary
    else:
        with _renamed(os.path.realpath(path), private) as temporary:
            yield temporary


@contextmanager
def _renamed(path: str, private: bool) -> Iterator[str]:
    """A temporary name beside `path`, which is renamed to it at the end."""
    descriptor, temporary = tempfile.mkstemp(prefix=".ensio-", suffix=".part", dir=os.path.dirname(path))
    os.close(descriptor)
    try:
        yield temporary
        if not private:
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


@contextmanager
def _copied(descriptor: int) -> Iterator[str]:
    """A temporary name, of which the content is written to a descriptor at the end.

    Opening the file behind a descriptor anew would truncate it, and what its owner writes next would
    overwrite ours.
    """
    with tempfile.TemporaryDirectory(prefix="ensio-") as folder:
        temporary = os.path.join(folder, "whole")
        yield temporary
        with open(temporary, "rb") as source, os.fdopen(os.dup(descriptor), "wb") as destination:
            shutil.copyfileobj(source, destination, 1 << 20)


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
