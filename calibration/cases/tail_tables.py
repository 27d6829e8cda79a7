"""Ensembles of real runs, of one call, layer and size each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ensembles.statistics.extremes.exchangeability import CallAttributes

FEWEST_CALLS = 2000
TABLES = (
    "vpic_hdf5_summit_gpfs_192",
    "cm1_48_dftracer",
    "cm1_recorder",
    "dlio_hdf5_8_dftracer",
    "local_bufwr256k_6runs",
    "local_dirwr64k_6runs",
)


def folder() -> Path:
    """Where the tables are: in what the environment variable ENSIO_DATA names, else beside the repository."""
    root = Path(__file__).resolve().parents[2]
    return Path(os.environ.get("ENSIO_DATA") or root.parent / "shared" / "data") / "tables"


def ensembles_of(name: str) -> Iterator[tuple[str, CallAttributes]]:
    """The ensembles of a table that have at least 2,000 calls; their phases are the n-th calls of all ranks
    (of each repetition, where there are several).
    """
    with np.load(folder() / f"{name}.npz", allow_pickle=False) as columns:
        table = dict(columns)
    kinds, kind, count = np.unique(
        np.column_stack([table[column].astype(np.int64) for column in ("op", "layer", "length")]),
        axis=0,
        return_inverse=True,
        return_counts=True,
    )
    for place in np.flatnonzero(count >= FEWEST_CALLS):
        mine = kind.reshape(-1) == place
        op, layer, length = kinds[place]
        what = f"{name}: {table['op_names'][op]}, {table['layer_names'][layer]}"
        if length > 0:
            what += f", {length:,} bytes"
        rank = table["rank"][mine].astype(np.int64)
        run = table["run"][mine] if "run" in table else np.zeros(len(rank), np.int64)
        start = table["start"][mine]
        yield (
            what,
            CallAttributes(
                durations_s=table["end"][mine] - start,
                phase=phases_of(run, rank, start),
                rank=rank,
                start_ns=np.rint((start - start.min()) * 1e9).astype(np.int64),
            ),
        )


def phases_of(run: np.ndarray, rank: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Phase of each call: the n-th calls of all ranks in a repetition are one."""
    order = np.lexsort([start, rank, run])
    fresh = np.flatnonzero((np.diff(rank[order]) != 0) | (np.diff(run[order]) != 0)) + 1
    length = np.diff(np.concatenate([[0], fresh, [len(order)]]))
    ordinal = np.arange(len(order)) - np.repeat(np.concatenate([[0], fresh]), length)
    phase = np.empty(len(order), np.int64)
    phase[order] = run[order] * (ordinal.max() + 1) + ordinal
    return np.unique(phase, return_inverse=True)[1].reshape(-1)
