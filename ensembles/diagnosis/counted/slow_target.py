"""A slow storage target in counters by file: files that lie on it take longer than those of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ensembles.diagnosis.counted.case import counted_case, counted_finding
from ensembles.diagnosis.finding import Check, Finding
from ensembles.diagnosis.rule import NotApplicable
from ensembles.model.units import number_text

if TYPE_CHECKING:
    from ensembles.run.run import Run

LEVEL = 0.01
LEAST_TARGETS, LEAST_FILES = 4, 2
LEAST_FACTOR = 1.4
_DRAWS = 400
_OUTLIER = 2.0
_PARTS = (0.7, 1.0, 1.1)
_FASTEST = 0.05


def find_counted(run: Run) -> Finding | None:
    """Compare the times of files of one target each, by permutation of targets over files."""
    case = counted_case(run)
    files, time_s = case.files, case.time_s
    moved = files["bytes_read"] + files["bytes_written"]
    target = np.array([_only_target(run, run.files[number]) for number in files["file"].tolist()])
    known = (target >= 0) & (moved > 0) & (time_s > 0)
    targets, of, count = np.unique(target[known], return_inverse=True, return_counts=True)
    if len(targets) < LEAST_TARGETS:
        raise NotApplicable(
            f"the log shows files on {len(targets)} targets alone, and {LEAST_TARGETS} are needed: "
            "record a run with a file for each task on Lustre, with Darshan's module LUSTRE"
        )
    value, size = np.log(time_s[known]), np.frexp(moved[known].astype(float))[1]
    for each in np.unique(size):  # files of about the same size are compared
        value[size == each] -= np.median(value[size == each])
    load = np.bincount(of, moved[known])
    value -= 2 * np.maximum(np.log(load / np.median(load)), 0)[of]
    score = np.bincount(of, value) / np.sqrt(count)
    worst = int(np.argmax(score))
    rng = np.random.default_rng(0)
    chance = [float((np.bincount(rng.permutation(of), value) / np.sqrt(count)).max()) for _ in range(_DRAWS)]
    p = (1 + sum(found >= score[worst] for found in chance)) / (1 + _DRAWS)
    medians = np.array([np.median(value[of == number]) for number in range(len(targets))])
    factor, next_worst = float(np.exp(medians[worst])), float(np.max(np.delete(medians, worst)))
    if p > LEVEL or count[worst] < LEAST_FILES or factor < LEAST_FACTOR:
        return None
    if np.log(factor) < _OUTLIER * next_worst:
        return None
    number = int(targets[worst])
    chosen = known & (target == number)
    lost_s = np.where(chosen, time_s * (1 - 1 / factor), 0.0)
    # Elsewhere a file takes at least as long as the fastest ones of its size do.
    others = known & ~chosen
    least_s = moved * np.quantile(time_s[others] / moved[others], _FASTEST)
    room_s = np.where(chosen, np.maximum(time_s - least_s, 0.0), 0.0)
    low_s, likely_s, high_s = (case.gain_s(np.minimum(part * lost_s, room_s)) for part in _PARTS)
    checks = (
        Check("not-by-chance", True, f"permutation of targets among {known.sum():,} files: p = {p:.2g}"),
        Check(
            "as-many-bytes",
            True,
            f"{count[worst]:,} files of about the same size lie on it, with "
            f"{load[worst] / np.median(load):.2f} times as many bytes as on the other targets (median)",
        ),
    )
    return counted_finding(
        case,
        "slow-target",
        f"files on target {number} take {number_text(factor)} times as long as those on the other "
        f"{len(targets) - 1} targets",
        checks,
        {"target": number, "slowdown": factor, "p": p, "targets": len(targets), "files": int(count[worst])},
        (low_s, likely_s, high_s),
        chosen,
        most_s=case.gain_s(room_s),
    )


def _only_target(run: Run, path: str) -> int:
    """Return the target of a file that lies on one; -1: it has several, or they are not known."""
    striping = run.info.striping_of(path)
    if striping is None or striping.stripe_count != 1 or len(striping.components) != 1:
        return -1
    targets = striping.components[0].targets
    return int(targets[0]) if len(targets) == 1 else -1
