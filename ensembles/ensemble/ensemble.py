"""Ensemble: the durations of many calls, taken together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np

from ensembles.ensemble.call_names import call_name, caveats_about, op_name, used_calls
from ensembles.ensemble.consecutive import ConsecutiveCalls
from ensembles.ensemble.display import ensemble_html, ensemble_text
from ensembles.model.errors import EnsioError
from ensembles.model.units import bytes_text
from ensembles.statistics.samples.counted_durations import CountedDurations

if TYPE_CHECKING:
    import numpy.typing as npt

    from ensembles.model.events import Events
    from ensembles.statistics.extremes.backtest import Backtest
    from ensembles.statistics.extremes.exchangeability import CallAttributes
    from ensembles.statistics.extremes.maximum import Tail
    from ensembles.statistics.modes.modes import Modes
    from ensembles.statistics.moments.moments import Moments
    from ensembles.statistics.moments.quantiles import Quantiles
    from ensembles.statistics.moments.robust import Robust
    from ensembles.statistics.resampling.dependence import Dependence
    from ensembles.statistics.samples.distinct_values import WeightedValues
    from ensembles.statistics.samples.histogram import Histogram
    from ensembles.statistics.sums.split import Split

__all__ = ["MIB", "ConsecutiveCalls", "Ensemble", "call_name", "caveats_about", "op_name"]

Number = TypeVar("Number", np.float64, np.int64)

MIB = float(1 << 20)


class Ensemble:
    """Durations of calls, and the statements about them.

    Parameters
    ----------
    durations_s : array of float, shape (n,)
        Seconds; of an ensemble per MiB, seconds per MiB.
    phase, rank, ordinal : array of integers, shape (n,), optional
        Phase of each call, in the order of time (-1: in none); its task; which call of its rank, operation
        and file it is, from 1.
    bytes : array of integers, shape (n,), optional
        What each call moved.
    start_ns : array of int64, shape (n,), optional
        When each call began. Without it the calls of a rank are taken to be in the order of time.
    per : {"call", "MiB"}
        What the durations are of.
    name : str
        What the calls are, for people.
    op : str
        Their kind of operation, one of `OPS`; ``""``: several, or not known.
    notes : iterable of str
        What is partial or doubtful, in plain sentences.
    resolution_s : float, optional
        Step of the clock; 0.0: finer than the bins of the histogram. Default: found in the durations.

    Raises
    ------
    EnsioError
        The arrays have different lengths, or a duration is negative, not a number or longer than 146 years.

    Notes
    -----
    Where only the histogram of the ensemble is known (`from_sample`), every column is None.
    """

    durations_s: npt.NDArray[np.float64] | None
    """Seconds; of an ensemble per MiB, seconds per MiB. Shape (n,)."""
    phase: npt.NDArray[np.int64] | None
    """Phase of each call, in the order of time; -1: in none. Shape (n,). None: not known."""
    rank: npt.NDArray[np.int64] | None
    """Task of each call. Shape (n,). None: not known."""
    ordinal: npt.NDArray[np.int64] | None
    """Number of each call among those of its rank, operation and file, from 1. Shape (n,), or None."""
    bytes: npt.NDArray[np.int64] | None
    """Bytes that each call moved. Shape (n,). None: not known."""
    start_ns: npt.NDArray[np.int64] | None
    """Entry into each call: nanoseconds since the origin of the run. Shape (n,). None: not known."""
    per: Literal["call", "MiB"]
    """What the durations are of."""
    name: str
    """What the calls are, for people."""
    op: str
    """Kind of operation, one of `OPS`; ``""``: several, or not known."""
    notes: list[str]
    """What is partial or doubtful, in plain sentences."""
    counted: CountedDurations
    """The durations counted by phase and bin, without the step of the clock (see `sample`)."""
    _resolution_s: float | None

    def __init__(
        self,
        durations_s: npt.ArrayLike,
        phase: npt.ArrayLike | None = None,
        rank: npt.ArrayLike | None = None,
        ordinal: npt.ArrayLike | None = None,
        bytes: npt.ArrayLike | None = None,
        *,
        start_ns: npt.ArrayLike | None = None,
        per: Literal["call", "MiB"] = "call",
        name: str = "",
        op: str = "",
        notes: Iterable[str] = (),
        resolution_s: float | None = None,
    ) -> None:
        durations = _column("durations_s", durations_s, np.float64)
        n = len(durations)
        self.durations_s = durations
        self.phase = _whole_numbers("phase", phase, n)
        self.rank = _whole_numbers("rank", rank, n)
        self.ordinal = _whole_numbers("ordinal", ordinal, n)
        self.bytes = _whole_numbers("bytes", bytes, n)
        self.start_ns = _whole_numbers("start_ns", start_ns, n)
        self.per, self.name, self.op, self.notes = _checked(per), name, op, list(notes)
        self._resolution_s = resolution_s
        self.counted = CountedDurations.from_durations(durations, self.phase)

    @classmethod
    def from_events(cls, events: Events, per: Literal["call", "MiB"] = "call") -> Ensemble:
        """The durations of events; see `Events.ensemble`."""
        durations_s = events.duration * 1e-9
        if _checked(per) == "MiB":
            events = events[events.moved > 0]
            durations_s = events.duration * 1e-9 / (events.moved / MIB)
        used = used_calls(events)
        return cls(
            durations_s,
            events.phase,
            events.rank,
            events.ordinal,
            np.maximum(events.moved, 0),
            start_ns=events.start,
            per=per,
            name=call_name(used),
            op=op_name(used),
            notes=caveats_about(used),
        )

    @classmethod
    def from_sample(
        cls,
        sample: CountedDurations,
        per: Literal["call", "MiB"] = "call",
        name: str = "",
        op: str = "",
        notes: Iterable[str] = (),
        successive: ConsecutiveCalls | None = None,
    ) -> Ensemble:
        """An ensemble of which only the histogram is known, and perhaps successive calls of some tasks."""
        ensemble = cls.__new__(cls)
        if successive is not None:
            ensemble.__dict__["successive"] = successive
        ensemble.durations_s = ensemble.phase = ensemble.rank = None
        ensemble.ordinal = ensemble.bytes = ensemble.start_ns = None
        ensemble.per, ensemble.name, ensemble.op, ensemble.notes = _checked(per), name, op, list(notes)
        ensemble.counted, ensemble._resolution_s = sample, sample.resolution_s or None
        return ensemble

    @cached_property
    def sample(self) -> CountedDurations:
        """The durations counted by phase and bin, on which the statistics stand."""
        step_s = self._resolution_s
        if step_s is None:
            from ensembles.statistics.samples.clock_step import clock_step_of_counts_s, clock_step_s

            if self.durations_s is None:
                step_s = clock_step_of_counts_s(self.counted.counts)
            else:
                step_s = clock_step_s(self.durations_s)
        return replace(self.counted, resolution_s=step_s)

    @property
    def n(self) -> int:
        """Number of calls."""
        return self.counted.total

    def __len__(self) -> int:
        return self.n

    @property
    def unit(self) -> str:
        """Unit of the durations: ``s`` or ``s/MiB``."""
        return "s" if self.per == "call" else "s/MiB"

    @cached_property
    def successive(self) -> ConsecutiveCalls:
        """The durations of each task one after the other, phase by phase.

        Raises
        ------
        EnsioError
            It is not known which task made which call.
        """
        if self.durations_s is None or self.rank is None:
            raise EnsioError(
                "this ensemble does not tell which task made which call, so that no calls of a task follow "
                "one another: make it from the events of a run recorded in mode trace, or give the ranks"
            )
        return ConsecutiveCalls.from_calls(self.durations_s, self.rank, self.phase, self.start_ns)

    @cached_property
    def atoms(self) -> WeightedValues:
        """The values that the durations take: exactly, where they are few or hardly differ."""
        from ensembles.statistics.samples.distinct_values import WeightedValues

        if self.durations_s is None or not self.n:
            return WeightedValues.from_sample(self.counted)
        return WeightedValues.from_durations(self.durations_s, self.phase, self.counted)

    def moments(self, level: float = 0.9, seed: int = 0) -> Moments:
        """Mean, spread and shape of the durations, each with an interval: `statistics.moments`."""
        from ensembles.statistics.moments.moments import compute_moments

        return compute_moments(self.atoms, level=level, seed=seed)

    def robust(self, level: float = 0.9, seed: int = 0) -> Robust:
        """Median, MAD and L-moments, each with an interval: `statistics.robust`."""
        from ensembles.statistics.moments.robust import compute_robust

        return compute_robust(self.atoms, level=level, seed=seed)

    def quantiles(
        self, quantiles: Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99), level: float = 0.9
    ) -> Quantiles:
        """Quantiles of the durations, each with an interval: `statistics.quantiles`."""
        from ensembles.statistics.moments.quantiles import compute_quantiles

        return compute_quantiles(self.atoms, quantiles, level)

    def histogram(
        self,
        scale: Literal["log", "linear"] = "log",
        bins: int | None = None,
        weight: Literal["calls", "time"] = "calls",
    ) -> Histogram:
        """Calls, or the time they took, by duration: `statistics.histogram`."""
        from ensembles.statistics.samples.histogram import compute_histogram

        return compute_histogram(self.atoms, scale, bins, weight)

    def modes(
        self,
        *,
        limit_bytes_per_s: float | None = None,
        tasks: int | None = None,
        level: float = 0.9,
        seed: int = 0,
        resolution_s: float | None = None,
        size: int = 200,
    ) -> Modes:
        """Modes of log duration: `statistics.modes.modes.modes_of`.

        With a limit and a number of tasks, the modes are compared to the fair share of each task.
        """
        from ensembles.statistics.modes.modes import fit_modes

        step_s = self.sample.resolution_s if resolution_s is None else resolution_s
        modes = fit_modes(self.sample, level, seed, step_s, size)
        if limit_bytes_per_s is None or tasks is None or modes.refused:
            return modes
        return modes.with_fair_share(limit_bytes_per_s, tasks, self._bytes_per_call())

    def _bytes_per_call(self) -> float:
        if self.per == "MiB":
            return MIB
        if self.bytes is None or not self.n:
            raise EnsioError("a fair share takes calls of known sizes, which these are not: take --per-byte")
        least, median, most = np.quantile(self.bytes, [0.05, 0.5, 0.95])
        if most > 1.1 * least or not median:
            raise EnsioError(
                f"a fair share takes calls of one size, and these moved from {bytes_text(least)} to "
                f"{bytes_text(most)}: choose one by --size, or take --per-byte"
            )
        return float(median)

    def tail(self, tasks: int, level: float = 0.9, *, seed: int = 0) -> Tail:
        """The slowest call of `tasks`: `statistics.slowest.tail.slowest_of`."""
        from ensembles.statistics.extremes.maximum import predict_maximum

        return predict_maximum(self.sample, tasks, level, calls=self.calls, seed=seed)

    def backtest(self, tasks: int | None = None, level: float = 0.9, *, seed: int = 0) -> Backtest:
        """How often predictions of the slowest call come true: `statistics.slowest.backtest.backtest_of`."""
        from ensembles.statistics.extremes.backtest import run_backtest

        return run_backtest(self.sample, tasks, level, calls=self.calls, seed=seed)

    @property
    def calls(self) -> CallAttributes | None:
        """What is known of each call, for tests of exchangeability; None: only the histogram is."""
        from ensembles.statistics.extremes.exchangeability import CallAttributes

        if self.durations_s is None:
            return None
        return CallAttributes(self.durations_s, self.phase, self.rank, self.ordinal, None, self.start_ns)

    @cached_property
    def dependence(self) -> Dependence | None:
        """How alike the calls of a phase, and successive calls of a task, are; None where it is not known
        which task made which call."""
        from ensembles.statistics.resampling.dependence import estimate_dependence

        try:
            calls = self.successive
        except EnsioError:
            return None
        return estimate_dependence(calls.duration_s, calls.rank, calls.phase if calls.phases_known else None)

    def split(
        self, calls: Sequence[int] = (1, 2, 4, 8), tasks: int | None = None, level: float = 0.9
    ) -> Split:
        """What k smaller calls before a barrier take instead of one: `statistics.split.split_of`.

        Parameters
        ----------
        calls : sequence of int
            The k to predict for.
        tasks : int, optional
            Tasks that wait for each other; those of the ensemble if not given.

        Raises
        ------
        EnsioError
            An argument makes no sense, or the tasks are neither given nor known.
        """
        from ensembles.statistics.sums.split import predict_split

        if tasks is None:
            try:
                rank = self.successive.rank if self.rank is None else self.rank
            except EnsioError as error:
                raise EnsioError(
                    "this ensemble does not tell how many tasks there were: give the number of tasks"
                ) from error
            tasks = max(len(np.unique(rank)), 1)
        return predict_split(self.sample, calls, tasks, self.dependence, level)

    def __repr__(self) -> str:
        return ensemble_text(self)

    def _repr_html_(self) -> str:
        return ensemble_html(self)


def _column(name: str, values: npt.ArrayLike, dtype: type[Number]) -> npt.NDArray[Number]:
    try:
        column = np.asarray(values)
        if column.ndim != 1 and column.size:
            raise EnsioError(f"{name} has {column.ndim} dimensions: an ensemble is made of flat arrays")
        return column.reshape(-1).astype(dtype, copy=False)
    except (TypeError, ValueError) as error:
        raise EnsioError(f"{name} is not an array of numbers: {error}") from error


def _whole_numbers(name: str, values: npt.ArrayLike | None, n: int) -> npt.NDArray[np.int64] | None:
    """A column of n whole numbers; None where it was not given."""
    if values is None:
        return None
    column = _column(name, values, np.int64)
    if len(column) != n:
        raise EnsioError(
            f"an ensemble of {n:,} durations was given {len(column):,} values of {name}: give one for each "
            "duration, or none"
        )
    return column


def _checked(per: str) -> Literal["call", "MiB"]:
    if per == "MiB":
        return "MiB"
    if per == "call":
        return "call"
    raise EnsioError(f'there is no ensemble per "{per}": it is per call or per MiB')
