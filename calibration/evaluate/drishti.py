"""What Drishti (drishti-io on PyPI) says of a Darshan log, as an answer to score."""

from __future__ import annotations

import csv
import subprocess
import tempfile
from pathlib import Path
from typing import Any

_SMALL = ("small-requests", "stdio-buffer", "serialised-metadata")
CAUSES = {
    "S01": ("stdio-buffer",),
    "P05": _SMALL,
    "P06": _SMALL,
    "P08": ("misaligned-requests",),
    "P09": ("redundant-reads",),
    "P11": ("seek-heavy",),
    "P13": ("seek-heavy",),
    "P15": _SMALL,
    "P16": _SMALL,
    "P17": ("metadata-storm", "serialised-metadata"),
    "P18": ("imbalance", "straggler-task", "straggler-node"),
    "P19": ("straggler-task", "straggler-node"),
    "P21": ("imbalance",),
    "P22": ("imbalance",),
    "M02": ("aggregation-mismatch",),
    "M03": ("aggregation-mismatch",),
    "M09": ("aggregation-mismatch",),
}
"""The causes that the advice of Drishti's triggers is about; the other triggers describe a run."""


def answer_of(log: Path) -> dict[str, Any]:
    """Return the answer of Drishti about a log."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["drishti", log, "--csv", "--export_dir", folder]
        subprocess.run(words, check=True, capture_output=True)
        (table,) = Path(folder).glob("**/*.csv")
        (raised,) = csv.DictReader(table.read_text().splitlines())
    found = [cause for trigger, causes in CAUSES.items() if raised[trigger] == "True" for cause in causes]
    return {"findings": [{"id": cause} for cause in dict.fromkeys(found)]}
