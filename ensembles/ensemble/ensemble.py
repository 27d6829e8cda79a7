"""Ensemble: the durations of many calls as one distribution."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal, Self

import numpy as np

from ensembles.ensemble.call_scale import bytes_of_each, of_scale, step_of_events, values_of
from ensembles.ensemble.calls import EnsembleCalls
from ensembles.ensemble.display import ensemble_html, ensemble_text, noting
from ensembles.ensemble.inputs import as_column, as_integers, checked_per
from ensembles.ensemble.splitting import found_before
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.statistics.sums.consecutive_calls import ConsecutiveCalls

if TYPE_CHECKING:
    import numpy.typing as npt

    from ensembles.model.events import Events
    from ensembles.model.filters import Quantity
    from ensembles.statistics.extremes.backtest import Backtest
    from ensembles.statistics.extremes.tail import Tail
    from ensembles.statistics.modes.modes import Modes
    from ensembles.statistics.moments.moments import Moments
    from ensembles.statistics.moments.quantiles import Quantiles
    from ensembles.statistics.samples.histogram import Histogram
    from ensembles.statistics.sums.split import Split


class Ensemble(EnsembleCalls):
    """Durations of many calls as one distribution, with the statistics of it.

    Parameters
    ----------
    durations_s : array_like of float, shape (n,)
        Durations in seconds, or differences of times as those of NumPy and pandas; with ``per="MiB"``, in
        seconds per MiB.
    phase : array_like of int, shape (n,), optional
        Phase of each call, numbered in the order of time; -1: in no phase.
    rank : array_like of int, shape (n,), optional
        Task that made each call.
    ordinal : array_like of int, shape (n,), optional
        Number of each call among those of its rank, operation and file, from 1.
    bytes : array_like of int, shape (n,), optional
        Bytes that each call moved.
    start_ns : array_like of int64, shape (n,), optional
        Entry into each call, ns. Without it, calls of a rank are assumed to be in the order of time.
    per : {"call", "MiB"}
        Unit of work to which the durations refer.
    name : str
        Name of the calls in texts and pictures.
    op : str
        Kind of operation, one of `OPS`; ``""``: several or unknown.
    notes : iterable of str
        Caveats about the data, one sentence each.
    resolution_s : float, optional
        Step of the clock, s; 0.0: finer than the bins of the histogram. Default: estimated.

    Raises
    ------
    EnsioError
        The arrays have different lengths, or a duration is negative, not a number or longer than 146 years.

    See Also
    --------
    ensembles.Run.ensemble : the ensemble of a recorded run; without events it has no columns.

    References
    ----------
    A. Uselton et al., "Parallel I/O performance: From events to ensembles", IPDPS 2010.

    Examples
    --------
    >>> random = np.random.default_rng(1)
    >>> durations_s = np.repeat([1.0, 0.5], [700, 300]) * random.lognormal(0.0, 0.05, 1000)
    >>> ensemble = en.Ensemble(durations_s, name="write")
    >>> ensemble
    Ensemble of write: 1,000 calls, phases not known; median 972 ms, from 419 ms to 1.17 s
    >>> [round(mode.t_s, 1) for mode in ensemble.modes().modes]
    [0.5, 1.0]
    """

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
        self.durations_s = durations = as_column("durations_s", durations_s, np.float64)
        n = len(durations)
        self.phase = as_integers("phase", phase, n)
        self.rank = as_integers("rank", rank, n)
        self.ordinal = as_integers("ordinal", ordinal, n)
        self.bytes = as_integers("bytes", bytes, n)
        self.start_ns = as_integers("start_ns", start_ns, n)
        self.per, self.name, self.op, self.notes = checked_per(per), name, op, list(notes)
        self.node, self._resolution_s, self.left_out = None, resolution_s, ()
        self.crowded = ""
        self.counted = CountedDurations.from_durations(durations, self.phase)

    @classmethod
    def from_events(
        cls, events: Events, per: Literal["call", "MiB"] = "call", quantity: Quantity = "duration"
    ) -> Self:
        """Make an ensemble of events; see `Events.ensemble`.

        Parameters
        ----------
        events : Events
        per : {"call", "MiB"}
            Seconds of each call, or seconds per MiB moved; then calls that moved nothing are left out.
        quantity : {"duration", "flight"}
            "flight": time in flight of non-blocking requests with an observed completion.

        Returns
        -------
        Ensemble
        """
        events, durations_s, (name, op, notes) = values_of(events, per, quantity)
        columns = (durations_s, events.phase, events.rank, None, np.maximum(events.moved, 0))
        step_s = step_of_events(events, per)
        ensemble = cls(
            *columns, start_ns=events.start, per=per, name=name, op=op, notes=notes, resolution_s=step_s
        )
        ensemble._events = events
        del ensemble.ordinal
        return ensemble

    @classmethod
    def from_sample(
        cls,
        sample: CountedDurations,
        per: Literal["call", "MiB"] = "call",
        name: str = "",
        op: str = "",
        notes: Iterable[str] = (),
        successive: ConsecutiveCalls | None = None,
        resolution_s: float | None = None,
    ) -> Self:
        """Make an ensemble of which only the histogram is known.

        Parameters
        ----------
        sample : CountedDurations
            Durations counted by phase and bin.
        per : {"call", "MiB"}
            Unit of work to which the durations refer.
        name, op : str
            As for `Ensemble`.
        notes : iterable of str
            Caveats about the data, one sentence each.
        successive : ConsecutiveCalls, optional
            Consecutive calls of some tasks, from which `split` forms the times of tasks.
        resolution_s : float, optional
            As for `Ensemble`; that of the sample is used if it has one.

        Returns
        -------
        Ensemble
            Every column is None.
        """
        ensemble = cls.__new__(cls)
        if successive is not None:
            ensemble.__dict__["successive"] = successive
        ensemble.durations_s = ensemble.phase = ensemble.rank = None
        ensemble.ordinal = ensemble.bytes = ensemble.start_ns = ensemble.node = None
        ensemble.per, ensemble.name, ensemble.op, ensemble.notes = checked_per(per), name, op, list(notes)
        ensemble.counted, ensemble._resolution_s = sample, sample.resolution_s or resolution_s
        return ensemble

    def __getstate__(self) -> dict[str, object]:  # with ordinals and an answer in place of events and run
        why = self._why_not_split and partial(found_before, self._why_not_split())
        return {**self.__dict__, "ordinal": self.ordinal, "_events": None, "_why_not_split": why}

    def moments(self, level: float = 0.9, seed: int = 0) -> Moments:
        """Compute mean, standard deviation, skewness and kurtosis, each with an interval.

        Parameters
        ----------
        level : float
            Confidence level of the intervals, between 0 and 1.
        seed : int
            Seed of the bootstrap. The same seed gives the same intervals.

        Returns
        -------
        Moments
            Formulas and sources: `ensembles.statistics.moments.moments.compute_moments`.

        Examples
        --------
        >>> en.Ensemble([1.0, 2.0, 3.0, 4.0]).moments().mean_s.value
        2.5
        """
        from ensembles.statistics.moments.moments import compute_moments

        return noting((*self.left_out, *self.unsettled), compute_moments(self.atoms, level=level, seed=seed))

    def quantiles(
        self, quantiles: float | Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99), level: float = 0.9
    ) -> Quantiles:
        """Compute quantiles of the durations, each with an interval.

        Parameters
        ----------
        quantiles : float or sequence of float
            Probabilities between 0 and 1.
        level : float
            Confidence level of the intervals.

        Returns
        -------
        Quantiles
            Formulas and sources: `ensembles.statistics.moments.quantiles.compute_quantiles`.

        Examples
        --------
        >>> en.Ensemble(np.arange(1.0, 102.0)).quantiles([0.5, 0.9])[0.9].value
        91.0
        """
        from ensembles.statistics.moments.quantiles import compute_quantiles

        return noting((*self.left_out, *self.unsettled), compute_quantiles(self.atoms, quantiles, level))

    def histogram(
        self,
        scale: Literal["log", "linear"] = "log",
        bins: int | None = None,
        weight: Literal["calls", "time"] = "calls",
    ) -> Histogram:
        """Count calls, or add up their time, by duration.

        Parameters
        ----------
        scale : {"log", "linear"}
            Spacing of the bins.
        bins : int, optional
            Number of bins. Default: chosen from the data.
        weight : {"calls", "time"}
            Number of calls, or seconds they took.

        Returns
        -------
        Histogram
            See `ensembles.statistics.samples.histogram.compute_histogram`.

        Examples
        --------
        >>> histogram = en.Ensemble([0.1, 0.2, 0.2, 0.4]).histogram("linear", bins=3)
        >>> histogram.amounts.tolist()
        [1.0, 2.0, 1.0]
        """
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
        """Estimate the modes of log duration, with intervals, and their harmonics or time slices.

        Parameters
        ----------
        limit_bytes_per_s : float, optional
            Limit of the aggregate rate. With `tasks`, modes are compared with the fair share of a task.
        tasks : int, optional
            Number of tasks that share the limit.
        level : float
            Confidence level of the intervals, between 0 and 1.
        seed : int
            Seed of the bootstrap.
        resolution_s : float, optional
            Step of the clock in seconds. Default: that of the sample.
        size : int
            Number of bootstrap samples.

        Returns
        -------
        Modes
            Method and sources: `ensembles.statistics.modes.modes.fit_modes`.

        Raises
        ------
        EnsioError
            A fair share is asked for, and the calls moved different or unknown amounts.

        Examples
        --------
        >>> random = np.random.default_rng(1)
        >>> ensemble = en.Ensemble(np.repeat([4.0, 2.0, 1.0], 400) * random.lognormal(0.0, 0.05, 1200))
        >>> modes = ensemble.modes()
        >>> [round(mode.t_s) for mode in modes.modes]
        [1, 2, 4]
        >>> modes.harmonics.orders
        (1, 2, 4)
        """
        from ensembles.ensemble.calls import steps_of_turns
        from ensembles.statistics.modes.modes import fit_modes

        step_s = self.sample.resolution_s if resolution_s is None else resolution_s
        modes = fit_modes(self.sample, level, seed, step_s, size)
        modes = of_scale(modes, self.per, self.op, self.bytes, self.durations_s, self.crowded)
        why = next(iter(self.unsettled), None)
        modes = replace(modes.with_turns(steps_of_turns(self)), name=self.name, unsettled=why)
        if limit_bytes_per_s is None or tasks is None or modes.refused:
            return modes
        return modes.with_fair_share(limit_bytes_per_s, tasks, bytes_of_each(self.per, self.bytes))

    def tail(self, tasks: int, level: float = 0.9, *, seed: int = 0) -> Tail:
        """Predict the duration of the slowest of `tasks` new calls.

        Parameters
        ----------
        tasks : int
            Number of calls whose maximum is predicted, one for each task.
        level : float
            Probability with which the interval shall contain the maximum.
        seed : int
            Seed of the permutation tests of exchangeability.

        Returns
        -------
        Tail
            Prediction and its method, which `ensembles.statistics.extremes.slowest_of_n.predict_slowest`
            chooses; or the reason of a refusal.

        Raises
        ------
        EnsioError
            `tasks` is not a positive integer, or `level` is not between 0 and 1.

        Examples
        --------
        >>> durations_s = np.random.default_rng(1).lognormal(0.0, 0.1, 20_000)
        >>> tail = en.Ensemble(durations_s).tail(tasks=1000)
        >>> tail.method
        'within-reach'
        >>> tail.low_s < tail.median_s < tail.high_s < tail.observed_max_s
        True
        """
        from ensembles.statistics.extremes.slowest_of_n import predict_slowest

        return replace(predict_slowest(self.sample, tasks, level, calls=self.calls, seed=seed), per=self.per)

    def backtest(self, tasks: int | None = None, level: float = 0.9, *, seed: int = 0) -> Backtest:
        """Measure the coverage of `tail` on the data: predict parts that are left out.

        Parameters
        ----------
        tasks : int, optional
            Number of calls whose maximum is predicted. Default: as many as the phase that is left out has.
        level : float
            Level of the prediction intervals.
        seed : int
            Seed of the choice of what is left out.

        Returns
        -------
        Backtest
            Coverage for phases, later phases and ranks that are left out; see
            `ensembles.statistics.extremes.backtest.run_backtest`.

        Raises
        ------
        EnsioError
            `tasks` is less than 1.

        Examples
        --------
        >>> durations_s = np.random.default_rng(1).lognormal(0.0, 0.1, 4000)
        >>> backtest = en.Ensemble(durations_s, phase=np.repeat(np.arange(40), 100)).backtest()
        >>> backtest.trials, backtest.level
        (40, 0.9)
        """
        from ensembles.statistics.extremes.backtest import run_backtest

        return run_backtest(self.sample, tasks, level, calls=self.calls, seed=seed)

    def split(
        self, calls: Sequence[int] = (1, 2, 4, 8), tasks: int | None = None, level: float = 0.9
    ) -> Split:
        """Predict the time of a phase in which each task makes k calls instead of one.

        Parameters
        ----------
        calls : sequence of int
            Numbers k of calls to predict for.
        tasks : int, optional
            Number of tasks that wait for each other. Default: the tasks of the ensemble.
        level : float
            Level of the prediction intervals.

        Returns
        -------
        Split
            As from `ensembles.statistics.sums.split.predict_split`.

        Raises
        ------
        EnsioError
            An argument is out of range, or `tasks` is neither given nor known.

        Examples
        --------
        >>> random = np.random.default_rng(1)
        >>> ensemble = en.Ensemble(random.gamma(2.0, 1.0, 4096), rank=np.arange(4096) % 64)
        >>> split = ensemble.split(calls=[1, 4], tasks=64)
        >>> [round(one.speedup, 1) for one in split.splits]
        [1.0, 1.7]
        """
        from ensembles.ensemble.splitting import split_of
        from ensembles.statistics.sums.split import check_calls

        return split_of(self, check_calls(calls), self.tasks if tasks is None else tasks, level)

    def __repr__(self) -> str:
        return ensemble_text(self)

    def _repr_html_(self) -> str:
        return ensemble_html(self)
