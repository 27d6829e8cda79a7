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


def setting(name: str) -> str | None:
    """Return the value of a setting; None: it has none.

    Raises
    ------
    EnsioError
        The site's file is not as it must be.
    """
    given = os.environ.get(name)
    for always, of, value in _lines(os.environ.get("ENSIO_CONF")):
        if of == name and (always or given is None):
            return value
    return given


@cache
def _lines(named: str | None) -> list[tuple[bool, str, str]]:
    """Return the settings of the file: whether always, name and value."""
    texts = _header()
    path = texts["ENSIO_SITE_FILE"] if named is None else named
    own = texts["ENSIO_SITE_USERS_OWN"].split()
    found = []
    for number, raw in enumerate(_content(path, named is not None).split("\n"), 1):
        line = raw.strip(" \t\r")
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None or match[2] not in (*texts["ENSIO_SITE_NAMES"].split(), *own):
            raise _wrong(f"line {number} of {path}", "not a setting of it, such as ENSIO_MODE=profile")
        if match[1] and match[2] in own:
            raise _wrong(f"line {number} of {path}", "always, but users have the last word on it")
        found.append((bool(match[1]), match[2], match[3]))
    return found


def _content(path: str, is_named: bool) -> str:
    """Read the file: "" if there is none."""
    if not path or not (is_named or os.path.lexists(path)):
        return ""
    try:
        with open_regular(path) as file:
            status = os.fstat(file.fileno())
            content = file.read()
    except OSError as error:
        raise _wrong(path, f"not readable ({error.strerror or error})") from None
    if status.st_uid not in (0, os.geteuid()) or status.st_mode & stat.S_IWOTH:
        raise _wrong(path, "not a file of root or of you that only its owner or group can write")
    if len(content) > int(_header()["ENSIO_SITE_FILE_BYTES"]):
        raise _wrong(path, "longer than 16 KiB")
    return os.fsdecode(content)


@cache
def _header() -> dict[str, str]:
    """Return the definitions of the header."""
    text = (get_data("ensembles.headers", "site.h") or b"").decode().replace("\\\n", " ")
    found = re.findall(r"^#define (ENSIO_\w+) +(.+)$", re.sub(r"/\*.*?\*/", "", text, flags=re.S), re.M)
    return {name: "".join(re.findall(r'"([^"]*)"', value)) or value.strip() for name, value in found}


def _wrong(what: str, problem: str) -> EnsioError:
    return EnsioError(f"{what} is {problem}: mend it, or set ENSIO_CONF= to read no file")
