"""How tasks share a grid."""

from __future__ import annotations


def balanced_factors(tasks: int, axes: int) -> tuple[int, ...]:
    """As many numbers as there are axes, with the product `tasks`, close to each other, the largest first.

    What ``MPI_Dims_create`` is asked for. Each prime factor, from the largest on, goes to the axis with the
    smallest number so far.

    Parameters
    ----------
    tasks, axes : int
        At least 1.
    """
    factors = [1] * axes
    for prime in reversed(_prime_factors(tasks)):
        factors[factors.index(min(factors))] *= prime
    return tuple(sorted(factors, reverse=True))


def _prime_factors(number: int) -> list[int]:
    """In ascending order."""
    found = []
    divisor = 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            found.append(divisor)
            number //= divisor
        divisor += 1
    if number > 1:
        found.append(number)
    return found
