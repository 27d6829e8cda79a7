"""Text entries of a spool: properties of the process, files, call sites and tables of calls.

Processes of a job often have equal texts, which are parsed once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ensembles.model.c_layout import CONSTANTS, TEXT

_FILE, _FILE_FACTS, _REGION, _SITE, _CALLS, _PROPERTIES = (
    CONSTANTS[f"ENSIO_TEXT_{kind}"]
    for kind in ("FILE", "FILE_FACTS", "REGION", "SITE", "CALLS", "PROPERTIES")
)
_MOST_KNOWN = 1 << 10


@dataclass(slots=True)
class Texts:
    """The texts of a window, or of several. Spools share them: they are not changed.

    Attributes
    ----------
    properties, calls_text, files, facts, sites, region_names, unknown
        As of `ensembles.readers.native.spool.Spool`.
    is_whole : bool
        Whether every entry is complete.
    """

    properties: dict[bytes, bytes] = field(default_factory=dict)
    calls_text: bytes = b""
    files: list[tuple[int, bytes]] = field(default_factory=list)
    facts: dict[int, bytes] = field(default_factory=dict)
    sites: list[tuple[int, bytes]] = field(default_factory=list)
    region_names: dict[int, bytes] = field(default_factory=dict)
    unknown: int = 0
    is_whole: bool = True


class KnownTexts:
    """The texts of the spools of a run that were parsed before.

    Examples
    --------
    >>> from ensembles.readers.native.spool_texts import KnownTexts
    >>> known = KnownTexts()
    >>> known.parsed(b"") is known.parsed(b"")
    True
    """

    def __init__(self) -> None:
        self._texts: dict[bytes, Texts] = {}
        self._properties: dict[bytes, dict[bytes, bytes]] = {}
        self._calls: dict[bytes, bytes] = {}

    def parsed(self, text: bytes) -> Texts:
        """Parse the text entries of a window.

        Returns
        -------
        Texts
            Not to be changed. Equal texts give one object; of others, equal properties and tables do.
        """
        found = self._texts.get(text)
        if found is None:
            found = self._parse(text)
            if len(self._texts) < _MOST_KNOWN:
                self._texts[text] = found
        return found

    def _parse(self, text: bytes) -> Texts:
        texts = Texts()
        position = 0
        while position + TEXT.size <= len(text):
            kind, _, number, length, is_taken = TEXT.unpack(text, position)
            end = position + TEXT.size + length
            if (kind == 0 and not is_taken) or end > len(text):
                texts.is_whole = False
                break
            body = text[position + TEXT.size : end]
            if kind == _FILE:
                texts.files.append((number, body))
            elif kind == _FILE_FACTS:
                texts.facts[number] = texts.facts.get(number, b"") + body
            elif kind == _REGION:
                texts.region_names[number] = body
            elif kind == _SITE:
                texts.sites.append((number, body))
            elif kind == _CALLS:
                texts.calls_text = self._calls.setdefault(body, body)
            elif kind == _PROPERTIES:
                texts.properties = self._joined(texts.properties, body)
            elif kind:
                texts.unknown += 1
            position = end + -end % 8
        return texts

    def _joined(self, properties: dict[bytes, bytes], body: bytes) -> dict[bytes, bytes]:
        mine = self._properties.get(body)
        if mine is None:
            mine = dict([line.partition(b"=")[::2] for line in body.split(b"\0") if line])
            if len(self._properties) < _MOST_KNOWN:
                self._properties[body] = mine
        return properties | mine if properties else mine
