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

from calibration.evaluate.drishti import triggers
from calibration.evaluate.score import Judged, report
from calibration.evaluate.truth import make_seeded
from calibration.page import ROOT, say, version, write_page

PAGE = ROOT / "docs" / "reference" / "calibration" / "diagnosis.md"


def judge(seed: int, folder: Path, number: int) -> Judged:
    """Make a run of the evaluation and diagnose it."""
    import ensembles as en
    from ensembles.diagnosis.diagnose import DiagnosisPass
    from ensembles.diagnosis.evidence_rule import SUMMARY, case_of

    path = folder / f"run{number:04}"
    truth = make_seeded(seed, number, path)
    began = time.process_time()
    run = en.open(str(path))
    examination = DiagnosisPass(run)
    group = run.summarize(examination.requests)
    found = examination.evaluate(group)
    spent = time.process_time() - began
    answer = found.to_json()
    fired = triggers(case_of(run, group[SUMMARY]))
    shutil.rmtree(path, ignore_errors=True)
    return Judged(
        truth,
        answer["findings"],
        [entry["id"] for entry in answer["not_examined"]],
        fired,
        answer["unexplained_s"],
        spent,
    )


def main() -> None:
    """Make the runs, diagnose them, and print the tables."""
    parser = argparse.ArgumentParser(prog="./dev evaluate", description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1, help="seed of the set of runs (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=120, help="number of runs (default: %(default)s)")
    parser.add_argument(
        "--processes", type=int, default=2, help="processes that make them (default: %(default)s)"
    )
    parser.add_argument(
        "--keep", metavar="DIR", help="keep the answers of the runs in DIR (default: remove them)"
    )
    parser.add_argument("--write", action="store_true", help=f"write the tables to {PAGE.relative_to(ROOT)}")
    args = parser.parse_args()
    commit, began = version(), time.process_time()
    with tempfile.TemporaryDirectory(prefix="ensio-evaluate-") as scratch:
        folder = Path(args.keep or scratch)
        folder.mkdir(parents=True, exist_ok=True)
        with ProcessPoolExecutor(args.processes) as pool:
            judged = list(pool.map(partial(judge, args.seed, folder), range(args.runs), chunksize=4))
    say(f"{args.runs} runs of seed {args.seed}: {sum(not run.costs for run in judged)} are healthy.")
    report(judged)
    if args.write:
        write_page(
            PAGE, "evaluate", f"./dev evaluate --seed {args.seed} --runs {args.runs} --write", commit, began
        )


if __name__ == "__main__":
    main()
