"""What eyes without one kind of cone see, and how far apart two colours are for them."""

from __future__ import annotations

import numpy as np

VISION = {
    "trichromat": np.eye(3),
    "protanope": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranope": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanope": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
"""Matrices of linear RGB, severity 1 (G. M. Machado et al., "A Physiologically-based Model for Simulation of
Color Vision Deficiency", IEEE TVCG 15, 2009)."""

_TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
_WHITE = np.array([0.95047, 1.0, 1.08883])


def lab(colour: str, vision: str = "trichromat") -> np.ndarray:
    """CIE L*a*b* of a colour such as ``"#1f77b4"``, as these eyes see it."""
    parts = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    xyz = _TO_XYZ @ np.clip(VISION[vision] @ linear, 0, 1) / _WHITE
    x, y, z = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz * (29 / 6) ** 2 / 3 + 4 / 29)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def ciede2000(one: np.ndarray, other: np.ndarray) -> float:
    """Difference of two colours in L*a*b* (G. Sharma et al., Color Research & Application 30, 2005)."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    chroma = (np.hypot(a1, b1) + np.hypot(a2, b2)) / 2
    stretch = 1.5 - 0.5 * np.sqrt(chroma**7 / (chroma**7 + 25.0**7))
    c1, c2 = np.hypot(stretch * a1, b1), np.hypot(stretch * a2, b2)
    h1, h2 = (np.degrees(np.arctan2(b, stretch * a)) % 360 for a, b in ((a1, b1), (a2, b2)))
    turn = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0.0
    lightness, chroma = (l1 + l2) / 2, (c1 + c2) / 2
    hue = np.radians(h1 + turn / 2 if c1 * c2 else h1 + h2)
    degree = np.pi / 180
    weight = (
        1
        - 0.17 * np.cos(hue - 30 * degree)
        + 0.24 * np.cos(2 * hue)
        + 0.32 * np.cos(3 * hue + 6 * degree)
        - 0.20 * np.cos(4 * hue - 63 * degree)
    )
    dl = (l2 - l1) / (1 + 0.015 * (lightness - 50) ** 2 / np.sqrt(20 + (lightness - 50) ** 2))
    dc = (c2 - c1) / (1 + 0.045 * chroma)
    dh = 2 * np.sqrt(c1 * c2) * np.sin(turn * degree / 2) / (1 + 0.015 * chroma * weight)
    blue = np.exp(-((((np.degrees(hue) % 360) - 275) / 25) ** 2))
    rotated = -2 * np.sqrt(chroma**7 / (chroma**7 + 25.0**7)) * np.sin(60 * degree * blue)
    return float(np.sqrt(dl**2 + dc**2 + dh**2 + rotated * dc * dh))
