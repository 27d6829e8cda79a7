"""Striping of a file on Lustre, decoded from its extended attribute ``lustre.lov``.

The attribute holds one of Lustre's public structures ``lov_user_md_v1``, ``lov_user_md_v3`` and
``lov_comp_md_v1``: packed, in the byte order of the client node.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_PLAIN, _POOLED, _SPECIFIC, _COMPOSITE = 0x0BD10BD0, 0x0BD30BD0, 0x0BD50BD0, 0x0BD60BD0
_RAID0 = 1

_PATTERN_ON_METADATA_TARGET = 0x100
_PATTERN_RELEASED = 0x80000000
_INSTANTIATED = 0x10
_ALL_TARGETS = 0xFFFF
_PATTERN_BITS, _END = (1 << 32) - 1, (1 << 64) - 1
_MOST_COMPONENTS = 1000
_POOL_BYTES = 16


@dataclass(frozen=True, slots=True)
class Component:
    """A part of a file with one striping."""

    start_bytes: int  # Offset in the file at which the component begins
    end_bytes: int | None  # Offset in the file at which it ends; None: the end of the file
    stripe_bytes: int  # Stripe size: contiguous bytes on one target
    stripe_count: int  # Number of targets; -1: all targets of the file system
    # Indices of the targets in striping order. Empty until the first write to the component. With more than
    # about 150 targets the last ones are missing.
    targets: tuple[int, ...] = ()
    pool: str = ""  # Name of the pool of the targets, or ``""``
    # "mdt": the data are on the metadata target. "released": the data are in the archive only.
    kind: str = "raid0"
    instantiated: bool = True  # Whether Lustre has allocated the targets
    mirror: int = 0  # Number of the mirror that the component belongs to; 0: the file is not mirrored


@dataclass(frozen=True, slots=True)
class Striping:
    """Striping of a file over Lustre's targets."""

    components: tuple[Component, ...]  # At least one

    @property
    def stripe_bytes(self) -> int:
        """Stripe size of the last instantiated component, else of the first one.

        Files grow at their end, so that the last component receives the new data.
        """
        return self._current.stripe_bytes

    @property
    def stripe_count(self) -> int:
        """Number of targets of the same component; -1: all targets."""
        return self._current.stripe_count

    @property
    def _current(self) -> Component:
        written = [component for component in self.components if component.instantiated]
        return written[-1] if written else self.components[0]


def decode_layout(digits: str) -> Striping | None:
    """Decode the attribute ``lustre.lov``.

    `digits`: the bytes of the attribute as hexadecimal digits. The last targets may be cut off.

    None: the layout is invalid or of an unknown kind.
    """
    try:
        layout = bytes.fromhex(digits)
    except ValueError:
        return None
    # The magic number shows the byte order of the client node.
    for order in "<>":
        try:
            (magic,) = struct.unpack_from(order + "I", layout)
            if magic == _COMPOSITE:
                return _composite(layout, order)
            component = _component(layout, order)
        except struct.error:
            return None
        if component is not None:
            return Striping((component,))
    return None


def _component(
    layout: bytes,
    order: str,
    extent: tuple[int, int | None] = (0, None),
    instantiated: bool = True,
    mirror: int = 0,
) -> Component | None:
    magic, pattern, _, stripe_bytes, count, _ = struct.unpack_from(order + "II16sIHH", layout)
    if magic not in (_PLAIN, _POOLED, _SPECIFIC):
        return None
    position, pool = 32, ""
    if magic != _PLAIN:
        pool = layout[32 : 32 + _POOL_BYTES].partition(b"\0")[0].decode("utf-8", "replace")
        position += _POOL_BYTES
    kind = "mdt" if pattern & _PATTERN_ON_METADATA_TARGET else "raid0"
    kind = "released" if pattern & _PATTERN_RELEASED else kind
    targets: list[int] = []
    if instantiated and kind == "raid0" and count != _ALL_TARGETS:
        whole = (len(layout) - position) // 24
        for number in range(min(count, whole)):
            (target,) = struct.unpack_from(order + "I", layout, position + 24 * number + 20)
            targets.append(target)
    return Component(
        start_bytes=extent[0],
        end_bytes=extent[1],
        stripe_bytes=stripe_bytes,
        stripe_count=-1 if count == _ALL_TARGETS else count,
        targets=tuple(targets),
        pool=pool,
        kind=kind,
        instantiated=instantiated,
        mirror=mirror,
    )


def _composite(layout: bytes, order: str) -> Striping | None:
    size, _, _, count, mirrors = struct.unpack_from(order + "IIHHH", layout, 4)
    components = []
    for number in range(count):
        entry = struct.unpack_from(order + "IIQQII", layout, 32 + 48 * number)
        identity, flags, start, end, offset, length = entry
        if offset + length > size:
            return None
        component = _component(
            layout[offset : offset + length],
            order,
            (start, None if end == _END else end),
            bool(flags & _INSTANTIATED),
            (identity >> 16) & 0x7FFF if mirrors else 0,
        )
        if component is not None:
            components.append(component)
    return Striping(tuple(components)) if components else None


def encode_layout(components: Sequence[dict[str, Any]]) -> str | None:
    """Encode a layout as the attribute ``lustre.lov``.

    The bytes of the attribute as hexadecimal digits; None: the layout is invalid.

    Examples
    --------
    >>> from ensembles.model.lustre import decode_layout, encode_layout
    >>> component = {"counters": [1 << 20, 2, 1, 0, 0, -1, 0], "pool": "", "targets": [3, 8]}
    >>> decode_layout(encode_layout([component])).components[0].targets
    (3, 8)
    """
    try:
        plain = [_plain_bytes(component) for component in components[:_MOST_COMPONENTS]]
        if len(plain) < 2:
            return plain[0].hex() if plain else None
        return _composite_bytes(components, plain).hex()
    except (struct.error, ValueError, KeyError, TypeError):
        return None


def _plain_bytes(component: dict[str, Any]) -> bytes:
    stripe_bytes, count, pattern, *_ = component["counters"]
    if count == -1:
        count = _ALL_TARGETS
    # Old logs lack the pattern; Lustre had only one at that time.
    pattern = _RAID0 if pattern < 0 else pattern & _PATTERN_BITS
    pool = component["pool"].encode("utf-8", "surrogateescape")
    head = struct.pack("<II16xIHH", _POOLED if pool else _PLAIN, pattern, stripe_bytes, count, 0)
    targets = b"".join(struct.pack("<20xI", target) for target in component["targets"])
    return head + (struct.pack("<16s", pool) if pool else b"") + targets


def _composite_bytes(components: Sequence[dict[str, Any]], plain: Sequence[bytes]) -> bytes:
    offset = 32 + 48 * len(plain)
    size = offset + sum(map(len, plain))
    mirrors = {component["counters"][6] for component in components}
    head = struct.pack("<IIIHHH14x", _COMPOSITE, size, 0, 0, len(plain), max(len(mirrors) - 1, 0))
    entries = b""
    for component, layout in zip(components, plain, strict=False):
        _, _, _, flags, start, end, mirror = component["counters"]
        identity = max(mirror, 0) << 16
        entries += struct.pack(
            "<IIQQII16x", identity, flags & _PATTERN_BITS, start & _END, end & _END, offset, len(layout)
        )
        offset += len(layout)
    return head + entries + b"".join(plain)
