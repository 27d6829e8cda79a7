"""Licences of what pip brings with ensio and its extras for users, as the installed packages state them."""

import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.requirements import Requirement

FOR_DEVELOPERS = {"browser", "docs", "hub", "lint", "release", "test"}
LIKE_OURS = re.compile(r"\b(BSD|MIT|ISC|HPND|Apache|PSF|Python Software|MPL-2|LGPL|Redistribution and use)")
BINDS_OURS = re.compile(r"\bA?GPL|(?<!Lesser )General Public License")


def stated(package: Distribution) -> str:
    """What a package says of its licence, shortest first."""
    classifiers = [line for line in package.metadata.get_all("Classifier", []) if line.startswith("License")]
    short = (
        package.metadata.get("License-Expression") or " ".join(classifiers) or package.metadata.get("License")
    )
    texts = (file.read_text() for file in package.files or () if re.match("LICEN[CS]E|COPYING", file.name))
    return short or "\n".join(texts)


def add(found: dict[str, str | None], name: str, extras: list[str]) -> None:
    """Add a package and what it requires; None: not installed."""
    try:
        package = distribution(name)
    except PackageNotFoundError:
        found[name] = None
        return
    found[name] = stated(package)
    for required in map(Requirement, package.requires or ()):
        marker = required.marker
        wanted = marker is None or any(marker.evaluate({"extra": extra}) for extra in extras or [""])
        if wanted and (required.extras or required.name not in found):
            add(found, required.name, sorted(required.extras))


def test_licences_of_what_users_install_do_not_bind_ensio() -> None:
    found: dict[str, str | None] = {}
    add(found, "ensio", ["full"])
    assert len(found) > 15
    assert None not in found.values()
    extras = distribution("ensio").metadata.get_all("Provides-Extra", [])
    add(found, "ensio", sorted(set(extras) - FOR_DEVELOPERS))
    texts = {name: text for name, text in found.items() if text is not None}
    assert {name: text for name, text in texts.items() if BINDS_OURS.search(text)} == {}
    silent = {name: text for name, text in texts.items() if not LIKE_OURS.search(text)}
    assert silent in ({}, {"darshan": ""})  # its wheel says nothing, its sources have a licence like BSD
