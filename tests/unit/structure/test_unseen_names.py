"""Of the dozens of libraries that a program loads, the note names those that do I/O."""

from __future__ import annotations

from ensembles.model.metadata import UnseenIo
from ensembles.structure.unseen import unseen_sentence


def sentence(*libraries: str) -> str:
    unseen = UnseenIo(4_000, 80 << 20, libraries)
    return unseen_sentence(unseen, calls=16, read=0, written=16 << 20, excluded_calls=0, nodes=1)


def test_libraries_of_io_are_named_alone() -> None:
    told = sentence("libcurl.so.4", "libhdf5.so.103", "libkrb5.so.3", "libgfortran.so.5")
    assert "(loaded: libhdf5.so.103, libgfortran.so.5)" in told


def test_of_many_others_some_are_named() -> None:
    told = sentence(*(f"libother{number}.so" for number in range(40)))
    assert "libother0.so" in told
    assert "libother7.so and 32 more)" in told
