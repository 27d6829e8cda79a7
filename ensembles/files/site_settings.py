"""Settings from the environment and the site's file, by the rule of ``libtrace/include/ensio/site.h``."""

from __future__ import annotations

import os
import re
import stat
from functools import cache
from pkgutil import get_data

from ensembles.files.untrusted import open_regular
from ensembles.model.errors import EnsioError

_LINE = re.compile(r"(always[ \t\r]+)?([A-Z_]+)=([^\0]*)")


@cache
def site_table(name: str) -> list[str]:
    """Return the words of a text of ``site.h``."""
    return " ".join(re.findall(r'"([^"]*)"', _definition(name))).split()


def _definition(name: str) -> str:
    header = (get_data("ensembles.headers", "site.h") or b"").decode().replace("\\\n", "")
    (line,) = re.findall(rf"#define {name} (.*)", header)
    return str(line)


def setting(name: str) -> str | None:
    """Return the value of a setting; None: it has none.

    `EnsioError`: the site's file is not as it must be.
    """
    given = os.environ.get(name)
    named = os.environ.get("ENSIO_CONF")
    (path,) = site_table("ENSIO_SITE_FILE") if named is None else [named]
    is_there = bool(path) and (named is not None or os.path.lexists(path))
    for always, of, value in _lines(path) if is_there else ():
        if of == name and (always or given is None):
            return value
    return given


@cache
def _lines(path: str) -> list[tuple[bool, str, str]]:
    """Return the settings of the file: whether always, name and value."""
    own, found = site_table("ENSIO_SITE_USERS_OWN"), []
    for number, raw in enumerate(_content(path).split("\n"), 1):
        line = raw.strip(" \t\r")
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None or match[2] not in (*site_table("ENSIO_SITE_NAMES"), *own):
            raise _wrong(f"line {number} of {path}", "not a setting of it, such as ENSIO_MODE=profile")
        if match[1] and match[2] in own:
            raise _wrong(f"line {number} of {path}", "always, but users have the last word on it")
        found.append((bool(match[1]), match[2], match[3]))
    return found


def _content(path: str) -> str:
    try:
        with open_regular(path) as file:
            status = os.fstat(file.fileno())
            content = file.read(status.st_size)
    except OSError as error:
        raise _wrong(path, f"not readable ({error.strerror or error})") from None
    if status.st_uid not in (0, os.geteuid()) or status.st_mode & stat.S_IWOTH:
        raise _wrong(path, "not a file of root or of you that only its owner or group can write")
    if len(content) > int(_definition("ENSIO_SITE_FILE_BYTES").split()[0]):
        raise _wrong(path, "longer than 16 KiB")
    return os.fsdecode(content)


def _wrong(what: str, problem: str) -> EnsioError:
    return EnsioError(f"{what} is {problem}: mend it, or set ENSIO_CONF= to read no file")
