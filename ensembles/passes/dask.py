"""Passes over a run by the workers of a Dask cluster.

If a worker dies, Dask gives its part to another worker and recomputes lost results. The scheduler and the
workers must be able to import ensio, and the workers must see the run under the same path.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ensembles.model.errors import EnsioError
from ensembles.passes.group import SummaryGroup
from ensembles.passes.reading import ReadRequest
from ensembles.passes.spec import Partial, PassRun, PassSpec, merge_partials, run_partition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distributed import Client, Future

AT_ONCE = 8
"""Summaries that one Dask task merges: the number of branches at each node of the tree of merges."""

PATIENCE_S = 60.0
"""Time in seconds without any worker after which a pass fails."""

_LOOK_S = 1.0


class DaskExecutor:
    """An executor that makes passes by the workers of a Dask cluster.

    `patience_s`: time in seconds to wait while the cluster has no worker.
    `EnsioError`: dask is not installed, or no scheduler answers at the address.
    """

    def __init__(self, address: str, patience_s: float = PATIENCE_S) -> None:
        self.address = address
        self._patience_s = patience_s
        self._client = _client(address)

    def summarize(self, run: PassRun, spec: PassSpec) -> SummaryGroup:
        """Make a pass over a run (`ensembles.passes.executors.Executor.summarize`)."""
        with self._explained(spec.path), self._client.as_current():
            workers = self._workers()
            parts = spec.parts_for_workers(run, sum(worker["nthreads"] for worker in workers.values()))
            if not parts:
                return spec.new_group(run)
            # Dask workers limit the memory of all their threads together themselves.
            partial: Partial = self._result(self._started(spec.unwatched(), parts), spec.path)
        whole, damage = partial
        run.reading.note_damage(damage)
        return whole

    def _started(self, spec: PassSpec, requests: Sequence[ReadRequest]) -> Future:
        """Submit the whole pass as one graph.

        If parts were submitted one by one, Dask could forget results before it knew what depends on them.
        Nothing is scattered, as scattered data are lost with their worker.
        """
        from dask import delayed

        shared = delayed(spec, traverse=False, pure=False)
        parts = [delayed(run_partition, pure=False)(shared, request) for request in requests]
        while len(parts) > 1:
            groups = [parts[begin : begin + AT_ONCE] for begin in range(0, len(parts), AT_ONCE)]
            parts = [
                group[0] if len(group) == 1 else delayed(merge_partials, pure=False)(group)
                for group in groups
            ]
        future: Future = self._client.compute(parts[0])
        return future

    def _result(self, future: Future, path: str) -> Any:
        """Wait for the result as long as the cluster has workers."""
        from distributed import TimeoutError as NotYet
        from distributed import wait

        without_since: float | None = None
        while True:
            try:
                wait(future, timeout=_LOOK_S)
            except NotYet:
                pass
            else:
                return future.result()
            if self._client.scheduler_info(n_workers=-1)["workers"]:
                without_since = None
            elif without_since is None:
                without_since = time.monotonic()
            elif time.monotonic() - without_since > self._patience_s:
                future.cancel()
                raise EnsioError(
                    f"the Dask cluster at {self.address} has no worker left, and {path} is not read to its "
                    "end: start workers and run the command again"
                )

    def _workers(self) -> dict[str, Any]:
        """Return the scheduler's table of workers, once there is at least one."""
        from distributed import TimeoutError as NotYet

        try:
            self._client.wait_for_workers(1, timeout=self._patience_s)
        except NotYet:
            raise EnsioError(
                f"the Dask cluster at {self.address} has no worker: start some (dask worker {self.address})"
            ) from None
        workers: dict[str, Any] = self._client.scheduler_info(n_workers=-1)["workers"]
        return workers

    @contextmanager
    def _explained(self, path: str) -> Iterator[None]:
        """Turn Dask's exceptions into an `EnsioError` of one sentence."""
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError
        from distributed.comm import CommClosedError

        try:
            yield
        except KilledWorker as error:
            raise EnsioError(
                f"several workers of {self.address} ended while they read the same part of {path} (killed, "
                "or out of memory): give each worker more memory"
            ) from error
        except (ImportError, RuntimeError) as error:
            raise EnsioError(
                f"the Dask cluster at {self.address} cannot import ensio's code: install the same version of "
                f"ensio for its scheduler and workers ({str(error).splitlines()[0]})"
            ) from error
        except (CancelledError, FutureCancelledError, CommClosedError, OSError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise EnsioError(
                f"the connection to the Dask cluster at {self.address} was lost before {path} was read to "
                f"its end: run the command again ({reason})"
            ) from error


@lru_cache(maxsize=4)
def _client(address: str) -> Client:
    try:
        from distributed import Client
    except ImportError as error:
        raise EnsioError(
            'Dask is not installed: pip install "dask[distributed]" here and on the machines of the cluster'
        ) from error
    try:
        return Client(address, set_as_default=False)
    except (OSError, ValueError, ImportError) as error:
        raise EnsioError(
            f"no Dask scheduler answers at {address}: start one (dask scheduler) and give the address that "
            "it prints"
        ) from error
