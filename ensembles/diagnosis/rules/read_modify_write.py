"""Rule ``read-modify-write``: MPI-IO reads what lies between the pieces of a write, and writes it again."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.counted.sieving import ADVICE, COLLECTIVE_ADVICE, WHOLE_ADVICE, find_counted
from ensembles.diagnosis.evidence_rule import FILE_USES, EvidenceRule
from ensembles.diagnosis.file_uses import SIEVED, FileUses, share_of_rows
from ensembles.diagnosis.finding import Check
from ensembles.diagnosis.hdf5_work import other_data_calls
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.rule import NotApplicable
from ensembles.model.units import bytes_text, number_text

LEAST_READS = 4
_MEMORY_BYTES_PER_NS = 1.0


def _find(case: Case, uses: FileUses) -> Remedy | None:
    layers = np.array([call.layer for call in case.run.calls])
    ops = np.array([call.op for call in case.run.calls])
    table = uses.table.columns()
    layer, op = layers[table["call"]], ops[table["call"]]
    asks = (layer == "mpiio") & (op == "write")
    if not asks.any():
        return None
    inside = (layer == "posix") & (op == "write")
    if not inside.any():
        raise NotApplicable(
            "writes of MPI-IO were recorded without the POSIX calls inside: record the layer posix too"
        )
    sieved = table["kind"] == SIEVED
    count = int(table["n"][sieved].sum())
    if count < LEAST_READS:
        return None
    files = np.unique(table["file"][sieved])
    mine = np.isin(table["file"], files)
    asked, written = (float(table["bytes"][mine & chosen].sum()) for chosen in (asks, inside))
    again = max(1 - asked / written, 0.0) if written else 0.0
    read = float(table["bytes"][sieved].sum())
    reads = share_of_rows(case, table, sieved) * case.rows["time_ns"]
    writes = share_of_rows(case, table, mine & inside) * case.rows["time_ns"] * again
    # What the call itself takes beyond copying is mostly the waiting for the lock of the range.
    calls = share_of_rows(case, table, mine & asks)
    own = calls * np.maximum(case.rows["time_ns"] - case.rows["bytes"] / _MEMORY_BYTES_PER_NS, 0)
    waits = own * (case.layer == "mpiio")
    collective = np.char.endswith([call.name for call in case.run.calls] or [""], "_all")[table["call"]]
    asked_at_once = float(table["bytes"][mine & asks & collective].sum())
    names = tuple(case.run.files[number] for number in files.tolist())
    checks = (
        Check(
            "same-range",
            True,
            f"{count:,} reads inside MPI_File_write calls are followed by a write of the same range",
        ),
        Check(
            "nobody-asked",
            read > 0,
            f"MPI-IO was asked to write {bytes_text(round(asked))}; the storage got "
            f"{bytes_text(round(written))} and had to give {bytes_text(round(read))}",
        ),
    )
    evidence = {"reads": count, "read_bytes": read, "asked_bytes": asked, "written_bytes": written}
    title = (
        f"writes with holes read {bytes_text(round(read))} and write "
        f"{number_text(written / max(asked, 1))} times"
    )
    title += " the bytes that MPI-IO was asked for (data sieving)"
    advice = COLLECTIVE_ADVICE if 2 * asked_at_once > asked else ADVICE
    if written <= asked:
        advice = WHOLE_ADVICE
        title = f"writes read {bytes_text(round(read))} although they have no holes (data sieving)"
    rows = (reads + writes + calls) > 0
    return Remedy(
        rows,
        reads + writes + 0.5 * waits,
        title,
        checks,
        evidence,
        reads,
        reads + writes + waits,
        names,
        not_inside=other_data_calls(case, table["call"][mine & asks], "mpiio", "MPI_File_"),
        advice=advice,
    )


rule = EvidenceRule("read-modify-write", _find, FILE_USES, counted=find_counted)
