"""The layout of a file on Lustre, from its attribute ``lustre.lov``.

Lustre publishes the structures behind it (``lov_user_md_v1``, ``lov_user_md_v3``, ``lov_comp_md_v1``):
packed, in the byte order of the node that asks.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

_PLAIN, _POOLED, _SPECIFIC, _COMPOSITE = 0x0BD10BD0, 0x0BD30BD0, 0x0BD50BD0, 0x0BD60BD0
_PATTERN_ON_METADATA_TARGET = 0x100
_PATTERN_RELEASED = 0x80000000
_INSTANTIATED = 0x10
_ALL_TARGETS = 0xFFFF
_END = (1 << 64) - 1
_POOL_BYTES = 16


@dataclass(frozen=True, slots=True)
class Component:
    """A part of a file that is striped in one way.

    Attributes
    ----------
    start_bytes : int
    end_bytes : int or None
        None: the end of the file, wherever that is.
    stripe_bytes : int
        Bytes on one target before the next one's turn.
    stripe_count : int
        Targets; -1: all that there are.
    targets : tuple of int
        Numbers of the targets, in their turn; of a component that nobody has written to yet, none. Of more
        than about 150 targets the last are missing.
    pool : str
        Name of the pool that the targets were taken from, or ``""``.
    kind : str
        ``"raid0"``; ``"mdt"``: the data lie on the metadata target; ``"released"``: they are in the archive
        alone.
    instantiated : bool
    mirror : int
        The copy of the file that the component belongs to; 0: there is one copy only.
    """

    start_bytes: int
    end_bytes: int | None
    stripe_bytes: int
    stripe_count: int
    targets: tuple[int, ...] = ()
    pool: str = ""
    kind: str = "raid0"
    instantiated: bool = True
    mirror: int = 0


@dataclass(frozen=True, slots=True)
class Striping:
    """How a file is spread over Lustre's targets.

    Attributes
    ----------
    components : tuple of Component
        At least one.
    """

    components: tuple[Component, ...]

    @property
    def stripe_bytes(self) -> int:
        """Of the last component that has been written to (files grow at their end), else of the first one."""
        return self._current.stripe_bytes

    @property
    def stripe_count(self) -> int:
        """Likewise."""
        return self._current.stripe_count

    @property
    def _current(self) -> Component:
        written = [component for component in self.components if component.instantiated]
        return written[-1] if written else self.components[0]


def decode_layout(digits: str) -> Striping | None:
    """The striping from the attribute's bytes, given as hexadecimal digits.

    The last targets of a long layout may have been left out. A layout of a kind that is not known, or one
    that makes no sense, gives None.
    """
    try:
        layout = bytes.fromhex(digits)
    except ValueError:
        return None
    # A node of the other byte order turns the magic number round.
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
