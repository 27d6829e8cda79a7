"""Bytes on storage targets: against a loop over stripes, and layouts from which targets do not follow."""

from __future__ import annotations

import numpy as np
import pytest

from ensembles.model import layouts as module
from ensembles.model.layouts import Layouts
from ensembles.model.lustre import Component, Striping

MIB = 1 << 20


def made(rng: np.random.Generator, files: int) -> dict[int, Striping]:
    """Plain layouts and such of two components, the second of which lacks its last target."""
    found = {}
    for file in range(1, files):
        first, second = (int(count) for count in rng.integers(1, 9, 2))
        targets = [tuple(rng.permutation(20)[:count].tolist()) for count in (first, second)]
        size = int(rng.choice([65536, MIB, 3 * 65536]))
        if rng.random() < 0.5:
            found[file] = Striping((Component(0, None, size, first, targets[0]),))
            continue
        end = int(rng.integers(1, 20)) * 3 * MIB
        parts = Component(0, end, MIB, first, targets[0]), Component(end, None, size, second, targets[1][:-1])
        found[file] = Striping(parts)
    return found


def by_stripes(striping: Striping, offset: int, length: int) -> dict[int, int]:
    """Bytes by target, stripe after stripe, as darshan-dxt-parser walks over them."""
    found: dict[int, int] = {}
    end = offset + length
    while offset < end:
        (part,) = (
            each
            for each in striping.components
            if each.start_bytes <= offset and (each.end_bytes is None or offset < each.end_bytes)
        )
        until = min(end, (offset // part.stripe_bytes + 1) * part.stripe_bytes, part.end_bytes or end)
        stripe = offset // part.stripe_bytes % part.stripe_count
        if stripe < len(part.targets):
            target = part.targets[stripe]
            found[target] = found.get(target, 0) + until - offset
        offset = until
    return found


def computed(layouts: Layouts, *ranges: np.ndarray) -> dict[tuple[int, int], int]:
    found: dict[tuple[int, int], int] = {}
    for pieces in layouts.pieces(*ranges):
        targets = layouts.targets[pieces.target].tolist()
        for number, target, count in zip(pieces.number.tolist(), targets, pieces.bytes.tolist(), strict=True):
            assert count > 0
            found[number, target] = found.get((number, target), 0) + count
    return found


@pytest.mark.parametrize("block", [1 << 20, 100])
@pytest.mark.parametrize("seed", range(3))
def test_bytes_of_each_target_are_those_of_its_stripes(
    seed: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AT_ONCE", block)
    rng = np.random.default_rng(seed)
    stripings = made(rng, 30)
    file, offset = rng.integers(0, 35, 500), rng.integers(-1, 90 * MIB, 500)
    length = np.where(rng.random(500) < 0.3, 0, rng.integers(0, 20 * MIB, 500))
    expected = {
        (number, target): count
        for number, (of, at, size) in enumerate(np.stack([file, offset, length], axis=1).tolist())
        if of in stripings and at >= 0
        for target, count in by_stripes(stripings[of], at, size).items()
    }
    layouts = Layouts(stripings)
    assert computed(layouts, file, offset, length) == expected
    assert layouts.most_pieces(len(file), int(length.sum())) >= len(expected)


def one_range(striping: Striping) -> int:
    layouts = Layouts({1: striping})
    return sum(computed(layouts, np.array([1]), np.array([0]), np.array([4 * MIB])).values())


def test_targets_follow_from_exact_layouts_only() -> None:
    whole = Component(0, None, MIB, 2, (4, 5))
    assert one_range(Striping((whole,))) == 4 * MIB
    for other in (
        Component(0, None, MIB, -1),
        Component(0, None, MIB, 2, (), kind="mdt"),
        Component(0, None, MIB, 2, (4, 5), kind="released"),
        Component(0, None, MIB, 2, (4, 5), instantiated=False),
        Component(0, None, 0, 2, (4, 5)),
    ):
        assert one_range(Striping((other,))) == 0, other
        assert not Layouts({1: Striping((other,))})
    # A read may go to either mirror.
    assert one_range(Striping((whole, Component(0, None, MIB, 2, (6, 7), mirror=1)))) == 0


def test_damaged_layouts_and_ranges_end_no_pass() -> None:
    far = np.iinfo(np.int64).max
    striping = Striping(
        (Component(0, (1 << 64) - 2, 4 << 30, 65000, (1,)), Component(1 << 63, None, 1, 1, (2,)))
    )
    layouts = Layouts({1: striping})
    found = computed(layouts, np.array([1, 1]), np.array([far - 5, 0]), np.array([100, far]))
    assert sum(count for (number, _), count in found.items() if number == 0) <= 5
    assert list(Layouts({}).pieces(np.array([1]), np.array([0]), np.array([5]))) == []
