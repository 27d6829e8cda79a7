"""Evaluate the diagnosis on drawn simulated runs, whose causes are measured at the same seed.

Run ``./dev evaluate --seed S``. Runs have neutral names, and neither environment nor notes that tell
what was planted.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from calibration.evaluate.dataset import write_dataset
from calibration.evaluate.score import report
from calibration.evaluate.scorer import Judged
from calibration.evaluate.truth import make_seeded
from calibration.page import ROOT, say, version, write_page

PAGE = ROOT / "docs" / "reference" / "calibration" / "diagnosis.md"


def judge(seed: int, folder: Path, keep: bool, number: int) -> Judged:
    """Make a run of the evaluation and diagnose it."""
    import ensembles as en

    path = folder / f"run{number:04}"
    truth = make_seeded(seed, number, path)
    began = time.process_time()
    answer = en.diagnose(en.open(str(path))).to_json()
    spent = time.process_time() - began
    if not keep:
        shutil.rmtree(path, ignore_errors=True)
    return Judged(truth, answer, spent)


def main() -> None:
    """Make the runs, diagnose them, and print the tables."""
    parser = argparse.ArgumentParser(prog="./dev evaluate", description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1, help="seed of the set of runs (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=120, help="number of runs (default: %(default)s)")
    parser.add_argument(
        "--processes", type=int, default=2, help="processes that make them (default: %(default)s)"
    )
    parser.add_argument(
        "--dataset", type=Path, metavar="DIR", help="new folder for the runs, their truth, answers and scorer"
    )
    parser.add_argument("--write", action="store_true", help=f"write the tables to {PAGE.relative_to(ROOT)}")
    args = parser.parse_args()
    commit, began = version(), time.process_time()
    with tempfile.TemporaryDirectory(
        prefix="ensio-evaluate-", dir=args.dataset and args.dataset.parent
    ) as scratch:
        folder, work = Path(scratch), partial(judge, args.seed, Path(scratch), args.dataset is not None)
        with ProcessPoolExecutor(args.processes) as pool:
            judged = list(pool.map(work, range(args.runs), chunksize=4))
        if args.dataset:
            made = f"./dev evaluate --seed {args.seed} --runs {args.runs} --dataset DIR"
            runs = [(folder / f"run{number:04}", run) for number, run in enumerate(judged)]
            write_dataset(args.dataset, f"`{made}`, at commit {commit}, by simulation", runs)
    say(f"{args.runs} runs of seed {args.seed}: {sum(not run.costs for run in judged)} are healthy.")
    report(judged)
    if args.write:
        write_page(
            PAGE, "evaluate", f"./dev evaluate --seed {args.seed} --runs {args.runs} --write", commit, began
        )


if __name__ == "__main__":
    main()
