"""The files of a plan: numbered, and named when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import overload

from ensembles.errors import EnsioError
from ensembles.patterns.parameters import count_of
from ensembles.patterns.pattern import File, Pattern

MOST_FILES = 1 << 26


class FileNames(Sequence[str]):
    """Names of all files, in the order of the pattern; those of one template one after the other.

    Attributes
    ----------
    first, counts : dict of str to int
        Number of the first file of a key of the pattern, and how many it has.
    """

    def __init__(self, pattern: Pattern, parameters: Mapping[str, int]) -> None:
        self.first: dict[str, int] = {}
        self.counts: dict[str, int] = {}
        self._paths: list[tuple[str, int]] = []
        self._total = 0
        for key, file in pattern.files.items():
            count = _number_of(file, parameters)
            if self._total + count > MOST_FILES:
                raise EnsioError(f"{pattern.path}: there would be more than {MOST_FILES} files")
            self.first[key], self.counts[key] = self._total, count
            self._paths.append((file.path, count))
            self._total += count
        self._refuse_equal_names(pattern)

    def __len__(self) -> int:
        return self._total

    @overload
    def __getitem__(self, number: int) -> str: ...
    @overload
    def __getitem__(self, number: slice) -> list[str]: ...
    def __getitem__(self, number: int | slice) -> str | list[str]:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        if number < 0:
            number += self._total
        for path, count in self._paths:
            if 0 <= number < count:
                return _name(path, number)
            number -= count
        raise IndexError(number)

    def __iter__(self) -> Iterator[str]:
        for path, count in self._paths:
            yield from (_name(path, number) for number in range(count))

    def _refuse_equal_names(self, pattern: Pattern) -> None:
        for position, (path, count) in enumerate(self._paths):
            for other, other_count in self._paths[:position]:
                if _may_meet(path, other) and not {_name(path, i) for i in range(count)}.isdisjoint(
                    _name(other, i) for i in range(other_count)
                ):
                    raise EnsioError(
                        f"{pattern.path}: two of the files have the same name: {path} and {other}"
                    )


def _number_of(file: File, parameters: Mapping[str, int]) -> int:
    if file.count:
        return count_of(file.count, parameters, "count")
    return parameters["tasks"] if file.one_a_task else 1


def _name(path: str, number: int) -> str:
    return path.replace("{rank}", str(number)).replace("{index}", str(number))


def _may_meet(path: str, other: str) -> bool:
    """Whether two templates might give the same name: what is around the numbers must fit."""
    before, _, after = path.replace("{rank}", "{index}").partition("{index}")
    other_before, _, other_after = other.replace("{rank}", "{index}").partition("{index}")
    if "{" not in path + other:
        return path == other
    begins = before.startswith(other_before) or other_before.startswith(before)
    return begins and (after.endswith(other_after) or other_after.endswith(after))
