"""Run the cases of a calibration in several processes, each with one thread."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

Result = TypeVar("Result")

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Workers:
    """Number of processes, set by ``--jobs``."""

    jobs = 2


def in_order(function: Callable[..., Result], cases: Sequence[tuple[Any, ...]]) -> Iterator[Result]:
    """Call a function with each tuple of arguments, and yield the results in the order of the tuples."""
    # Matrices are small: threads of the linear algebra would only wait for each other.
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    if Workers.jobs == 1:
        yield from (function(*case) for case in cases)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(Workers.jobs, mp_context=context) as pool:
        yield from pool.map(function, *zip(*cases, strict=True))


def processor_s() -> float:
    """Return the processor time of this process and of its ended children, in seconds."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
