"""Measure the reading of job files of many processes in mode profile.

A job of two ranks is run, and the record of the second rank is repeated. The file contains all that a reader
does per process, and one summary of the job for any number of ranks.
"""

from __future__ import annotations

import argparse
import tempfile
import zlib
from pathlib import Path

from bench import in_process, record_ranks
from tabulate import tabulate

from ensembles.model.c_layout import JOB, JOB_PROCESS, SPOOL

STEPS = {
    "open": "ensembles.open(run)",
    "open, summary": "ensembles.open(run).summary",
    "ensio info": "sys.stdout = open(os.devnull, 'w'); ensembles.cli.main.main(['info', run])",
}
IMPORTS = (
    "numpy, ensembles.run.open, ensembles.cli.info, ensembles.cli.main, ensembles.answers.info, "
    "ensembles.summaries.from_cells, h5py"
)


def multiplied(job: bytes, processes: int) -> bytes:
    """Return a job file in which the last record is repeated with other ranks and names."""
    head = JOB.unpack(job)
    first = JOB_PROCESS.unpack(job, head.records).bytes
    record = bytearray(job[head.records + first : head.bytes])
    members = JOB_PROCESS.dtype.fields
    spool_at = members["spool"][1]
    rank_at, tasks_at, pid_at = (spool_at + SPOOL.dtype.fields[name][1] for name in ("rank", "tasks", "pid"))
    name = bytes(record[JOB_PROCESS.size : JOB_PROCESS.size + JOB_PROCESS.unpack(record).name_bytes])
    checked_from = members["name_bytes"][1]
    texts_from = len(record) - JOB_PROCESS.unpack(record).coded_bytes
    records = [job[head.records : head.records + first]]
    for rank in range(1, processes):
        for place, value in ((rank_at, rank), (tasks_at, processes), (pid_at, 1000 + rank)):
            record[place : place + 4] = value.to_bytes(4, "little")
        own = f"node{rank // 64:03}-{rank:05}".encode().ljust(len(name), b"x")[: len(name)]
        record[JOB_PROCESS.size : JOB_PROCESS.size + len(name)] = own
        checksum = zlib.crc32(record[checked_from:texts_from])  # texts have a sum apart
        record[members["checksum"][1] : checked_from] = checksum.to_bytes(4, "little")
        records.append(bytes(record))
    body = b"".join(records)
    changed = head._replace(processes=processes, bytes=head.records + len(body))
    packed, summed = JOB.pack(**changed._asdict()), JOB.field_offset("checksum")
    checksum = zlib.crc32(packed[:summed]).to_bytes(4, "little")
    head_bytes = packed[:summed] + checksum + packed[summed + 4 :]
    return head_bytes + job[JOB.size : head.records] + body + job[head.bytes :]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Measure the reading of job files of mode profile.")
    parser.add_argument("--processes", type=int, nargs="+", default=[64, 1024, 10_240])
    parser.add_argument(
        "--calls", type=int, default=10_000, help="calls of each process (default: %(default)s)"
    )
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="ensio-many-") as name:
        job = (record_ranks(Path(name), 2, args.calls, "profile")[0] / "job.ensio").read_bytes()
        for processes in args.processes:
            path = Path(name) / f"{processes}.ensio"
            path.write_bytes(multiplied(job, processes))
            mib = path.stat().st_size / 2**20
            spent = [in_process(step, IMPORTS, 3, run=str(path)) for step in STEPS.values()]
            times = [(each.processor_s, each.peak_mib) for each in spent]
            rows.append((f"{processes:,}", f"{mib:.1f}", *(f"{s:.2f} s, {peak:.0f}" for s, peak in times)))
    head = ("processes", "MiB", *(f"{step}: CPU time, peak MiB" for step in STEPS))
    print(tabulate(rows, head, disable_numparse=True))


if __name__ == "__main__":
    main()
