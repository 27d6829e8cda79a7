"""Rule ``hdf5-refill``: HDF5 writes fill values that are overwritten, or moves chunks again and again."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import FILE_USES, EvidenceRule
from ensembles.diagnosis.file_uses import METADATA, READ_TO_WRITE, FileUses, share_of_rows
from ensembles.diagnosis.finding import Check
from ensembles.diagnosis.hdf5_work import (
    bytes_again_text,
    bytes_of_files,
    other_data_calls,
    parts_of_work,
    refill_advice,
)
from ensembles.diagnosis.limits import LARGE_BYTES, LEAST_RATIO
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.rules.hdf5_metadata import rule as metadata
from ensembles.model.units import bytes_text

CALLS = "the calls of the program (H5Dwrite, H5Dread)"


def _find(case: Case, uses: FileUses) -> Remedy | None:
    metadata.find(case, uses)  # refuses runs without the layers
    table = uses.table.columns()
    width = len(case.run.files)
    posix, of_data = (
        case.layers[table["call"]] == "posix",
        np.char.startswith(case.names, "H5D")[table["call"]],
    )
    weight, work = np.zeros(len(posix)), np.zeros(len(posix))
    found, said = np.zeros(width, bool), []
    evidence: dict[str, float] = {}
    back = table["kind"] == READ_TO_WRITE
    for op in ("write", "read"):
        of_op = case.ops[table["call"]] == op
        data, disk = of_data & of_op, posix & of_op & ~back
        if op == "read":
            disk &= table["kind"] != METADATA  # its structures are read again as its cache of them is small
        asked, moved, needed = bytes_of_files(table, data, disk, width)
        mine = (asked > 0) & (moved >= LEAST_RATIO * needed) & (moved >= LARGE_BYTES)
        if mine.any():
            excess = np.divide(needed, moved, out=np.ones(width), where=moved > 0)
            weight = np.where(disk & mine[table["file"]], 1 - excess[table["file"]], weight)
            work = np.where(data & mine[table["file"]], 1 - excess[table["file"]], work)
            total, enough = int(moved[mine].sum()), int(needed[mine].sum())
            program = int(asked[mine].sum())
            evidence |= {f"{op}_bytes": total, f"{op}_needed_bytes": enough, f"{op}_asked_bytes": program}
            said.append(bytes_again_text(op, total, enough, program))
            found |= mine
    files_back = np.bincount(table["file"][back], table["bytes"][back], width)
    mine = files_back >= LARGE_BYTES
    if mine.any():
        weight = np.where(back & mine[table["file"]], 1.0, weight)
        # A chunk that is read back was complete before, or will be: it is worked on again.
        writes = of_data & (case.ops[table["call"]] == "write") & mine[table["file"]]
        asked = np.bincount(table["file"][writes], table["bytes"][writes], width)
        work = np.where(writes, (files_back / np.maximum(files_back + asked, 1))[table["file"]], work)
        evidence["read_back_bytes"] = float(files_back[mine].sum())
        said.append(f"{bytes_text(int(files_back[mine].sum()))} read back inside H5Dwrite")
        found |= mine
    if not said:
        return None
    chosen = weight > 0
    saved = share_of_rows(case, table, chosen, weight) * case.rows["time_ns"]
    again = share_of_rows(case, table, work > 0, work) * case.rows["time_ns"]
    least = likely = 0.0
    if work.any():
        own_ns = float(table["time_ns"][work > 0].sum())
        evidence["hdf5_time_s"] = own_ns * 1e-9
        least, likely = parts_of_work(own_ns, float(table["bytes"][chosen].sum()))
    cost = np.bincount(table["file"], table["time_ns"] * weight, width)
    return Remedy(
        share_of_rows(case, table, chosen | (work > 0)) > 0,
        saved + likely * again,
        f"HDF5 moves bytes several times: {'; '.join(said)}",
        (
            Check("more-than-the-file", True, "; ".join(said)),
            Check("not-the-program", True, f"{CALLS} and the extent of the file add up to less"),
        ),
        evidence,
        # The first write of a page takes longer than the next one.
        0.1 * saved + least * again,
        1.5 * saved + np.where(again > 0, case.rows["time_ns"] - saved, 0.0),
        case.paths(cost * found),
        not_inside=other_data_calls(case, table["call"][work > 0]),
        advice=refill_advice(case, "write_bytes" in evidence, "read_back_bytes" in evidence),
    )


rule = EvidenceRule("hdf5-refill", _find, FILE_USES)
