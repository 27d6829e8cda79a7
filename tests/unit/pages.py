"""The pictures of a page that ``embed_pictures`` made."""

from __future__ import annotations

import base64
import gzip
import json
import re


def unpacked(page: str) -> str:
    """Return the data of the pictures, a group a line, and the programs; without pictures, nothing."""
    packed = re.findall(r'<script type="application/gzip"[^>]*>([^<]*)</script>', page)
    return gzip.decompress(base64.b64decode(packed[0])).decode() if packed else ""


def pictures_in(page: str) -> list[dict]:
    """Return the groups of pictures of a page: ``document`` and ``places``."""
    lines = unpacked(page).split("\n")
    return [json.loads(line) for line in lines[: next(i for i, line in enumerate(lines) if line[:1] != "{")]]
