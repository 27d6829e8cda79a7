"""Rule ``small-requests``: many small transfers, each with its fixed cost."""

from __future__ import annotations

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.counted.small_requests import find_counted
from ensembles.diagnosis.file_uses import FileUses
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.rule_with_summary import RuleWithSummary
from ensembles.diagnosis.small_calls import between_others, join_calls
from ensembles.diagnosis.summed.small_requests import find_summed

ADVICE = (
    "join small transfers in a buffer of 1 MiB or more, or use collective I/O (romio_cb_write=enable; "
    "HDF5: chunk cache, H5Pset_sieve_buf_size; NetCDF: larger chunks)"
)


def _find(case: Case, uses: FileUses) -> Remedy | None:
    return join_calls(case, "small-requests", "small requests", ADVICE, between_others(case, uses))


rule = RuleWithSummary(
    "small-requests",
    _find,
    "the calls of each phase and task",
    counted=lambda run: find_counted(run, ADVICE),
    summed=lambda run: find_summed(run, ADVICE),
    of_each_call=True,
)
