"""Convert the Lustre layouts in a Darshan log to the extended attribute ``lustre.lov``.

`ensembles.model.lustre` decodes this attribute, so that striping has one representation.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

_PLAIN, _POOLED, _COMPOSITE = 0x0BD10BD0, 0x0BD30BD0, 0x0BD60BD0
_RAID0 = 1
_ALL_TARGETS = 0xFFFF
_U32, _U64 = (1 << 32) - 1, (1 << 64) - 1
_MOST_COMPONENTS = 1000


def encode_attribute(components: Sequence[dict[str, Any]]) -> str | None:
    """Encode a layout as the attribute ``lustre.lov``.

    Parameters
    ----------
    components : sequence of dict
        ``counters`` (stripe size in bytes, stripe count, pattern, flags, first and last byte, mirror),
        ``pool`` (str) and ``targets`` (list of int) of each component.

    Returns
    -------
    str or None
        The bytes of the attribute as hexadecimal digits; None: the layout is invalid.

    Examples
    --------
    >>> from ensembles.model.lustre import decode_layout
    >>> from ensembles.readers.foreign.darshan.lustre_layout import encode_attribute
    >>> component = {"counters": [1 << 20, 2, 1, 0, 0, -1, 0], "pool": "", "targets": [3, 8]}
    >>> decode_layout(encode_attribute([component])).components[0].targets
    (3, 8)
    """
    try:
        plain = [_component(component) for component in components[:_MOST_COMPONENTS]]
        if len(plain) < 2:
            return plain[0].hex() if plain else None
        return _composite(components, plain).hex()
    except (struct.error, ValueError, KeyError, TypeError):
        return None


def _component(component: dict[str, Any]) -> bytes:
    stripe_bytes, count, pattern, *_ = component["counters"]
    if count == -1:
        count = _ALL_TARGETS
    # Old logs lack the pattern; Lustre had only one at that time.
    pattern = _RAID0 if pattern < 0 else pattern & _U32
    pool = component["pool"].encode("utf-8", "surrogateescape")
    head = struct.pack("<II16xIHH", _POOLED if pool else _PLAIN, pattern, stripe_bytes, count, 0)
    targets = b"".join(struct.pack("<20xI", target) for target in component["targets"])
    return head + (struct.pack("<16s", pool) if pool else b"") + targets


def _composite(components: Sequence[dict[str, Any]], plain: Sequence[bytes]) -> bytes:
    offset = 32 + 48 * len(plain)
    size = offset + sum(map(len, plain))
    mirrors = {component["counters"][6] for component in components}
    head = struct.pack("<IIIHHH14x", _COMPOSITE, size, 0, 0, len(plain), max(len(mirrors) - 1, 0))
    entries = b""
    for component, layout in zip(components, plain, strict=False):
        _, _, _, flags, start, end, mirror = component["counters"]
        identity = max(mirror, 0) << 16
        entries += struct.pack(
            "<IIQQII16x", identity, flags & _U32, start & _U64, end & _U64, offset, len(layout)
        )
        offset += len(layout)
    return head + entries + b"".join(plain)
