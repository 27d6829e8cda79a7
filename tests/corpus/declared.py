"""The runs of the corpus, one row each: where it is, what it stands for, and what is asked of it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Declared:
    """A run of the corpus.

    Attributes
    ----------
    name : str
        By which commands are given it; in ``runs/`` its archive is ``NAME.tar.xz``.
    stands_for : str
        One line: what makes it worth keeping.
    op : str
        The operation whose ensemble is asked for in detail; "": none.
    tags : frozenset of str
        What it is (``real``, ``simulated``, ``synthetic``, ``imported``, ``table``), and which further
        commands are run on it (keys of `commands.BY_TAG`).
    asked : tuple of str
        Further command lines, without the run.
    source : str
        Where it is if not in ``runs/``: ``darshan:PATH`` in the package darshan, ``tests:PATH`` in tests/,
        ``data:PATH`` in the folder of real data, ``table:NAME`` a table there.
    """

    name: str
    stands_for: str
    op: str = ""
    tags: frozenset[str] = frozenset()
    asked: tuple[str, ...] = ()
    source: str = ""


def _runs(kind: str, *rows: tuple[str, str, str, str] | Declared) -> tuple[Declared, ...]:
    """Rows of name, operation, further tags, and what they stand for."""
    made = []
    for row in rows:
        if isinstance(row, Declared):
            made.append(row)
        else:
            name, op, tags, stands_for = row
            made.append(Declared(name, stands_for, op, frozenset([kind, *tags.split()])))
    return tuple(made)


def _more(name: str, op: str, tags: str, stands_for: str, source: str = "", *asked: str) -> Declared:
    return Declared(name, stands_for, op, frozenset(tags.split()), asked, source)


REAL = _runs(
    "real",
    (
        "replay-ior-8",
        "write",
        "whole backtest export report",
        "5 phases of 8 writes: the forty calls of README's demonstration",
    ),
    ("replay-ior-64", "write", "whole structure", "64 tasks, 5 phases of one write and one read"),
    ("replay-ior-2x10", "write", "whole", "2 tasks, 10 phases: the least that has an imbalance"),
    ("replay-ior-calls", "write", "whole structure", "4 tasks that move a block in 8 calls"),
    ("replay-ior-stdio", "write", "", "the same pattern through STDIO"),
    ("replay-madbench", "read", "structure", "8 matrices written, updated, read: phases of several kinds"),
    ("replay-gcrm", "write", "", "16 tasks with large records, and small metadata from task 0"),
    ("replay-btio", "write", "layers", "collective MPI-IO with POSIX calls inside: nested layers"),
    ("replay-hacc", "write", "layers", "MPI-IO on two files, the particles in nine pieces each"),
    ("replay-benchio", "write", "layers", "HDF5 over MPI-IO over POSIX: three nested layers"),
    ("replay-olam", "read", "", "tasks that read whole input files, then few writes"),
    ("replay-profile", "write", "report", "recorded in mode profile: a summary and no event"),
    ("replay-tail", "write", "", "recorded in mode tail: a summary, and events of the slowest calls"),
    ("replay-spools", "write", "collect", "spools without a job file, of version 3 of the format"),
    ("replay-repeated-1", "write", "", "one of three repetitions of the same replay"),
    ("overlap-ompio", "write", "layers", "non-blocking MPI-IO that overlaps with computing, on OMPIO"),
    ("overlap-romio321", "write", "layers", "the same program on ROMIO"),
    ("overlap-aio", "write", "", "POSIX asynchronous I/O, four requests in flight"),
    ("flights-ompio", "write", "flights export", "non-blocking MPI-IO with posts, flights and waits"),
    ("flights-aio", "write", "flights report", "POSIX asynchronous I/O with posts, flights and waits"),
    ("one-call", "write", "", "a program without MPI that makes one call"),
    ("forty-calls", "write", "backtest", "a program without MPI that makes forty calls, and has no phase"),
    ("no-call", "write", "", "a program that makes no call at all"),
    ("failing", "read", "", "calls that fail among calls that do not"),
    ("killed", "write", "", "a process of four threads that ended by SIGKILL"),
    ("regions", "write", "structure report", "phases and regions that the program named, one without an end"),
    ("dropped", "write", "", "events dropped over the budget; the summary has all calls"),
    ("tar", "read", "", "tar, preloaded: many small files"),
    ("dd", "write", "", "dd of 200 blocks with an fsync at the end"),
    ("sqlite", "write", "", "a database: journal, locks, small reads and writes"),
    ("shell", "read", "", "a pipeline of a shell: several processes, none of MPI"),
    ("fio", "read", "", "fio, 2 jobs of random reads and writes on two files"),
    ("h5py", "write", "layers", "h5py, preloaded: HDF5 over POSIX without MPI"),
)

SIMULATED = _runs(
    "simulated",
    ("sim-healthy-1", "write", "whole backtest", "IOR of 32 tasks on a healthy file system"),
    ("sim-slow-1", "write", "whole", "the same with a slow target: 5 times slower"),
    _more(
        "sim-ior-1024",
        "write",
        "simulated horizons",
        "1,024 tasks with a long tail: N up to 102,400 is asked",
    ),
    ("sim-ior-calls", "write", "structure", "64 tasks, each block in 4 calls"),
    (
        "sim-madbench-faulty",
        "read",
        "whole structure report",
        "README's MADbench with the fault in read-ahead, 8 tasks",
    ),
    ("sim-madbench-patched", "read", "", "MADbench without the fault"),
    ("sim-gcrm", "write", "", "GCRM, 64 tasks: many small metadata writes of task 0"),
    ("sim-profile", "write", "", "simulated with --mode profile"),
    ("scenario-strided-readahead", "read", "", "planted: strided-readahead"),
    ("scenario-straggler-task", "write", "", "planted: straggler-task"),
    ("scenario-straggler-node", "write", "", "planted: straggler-node"),
    ("scenario-cache-cliff", "write", "", "planted: cache-cliff"),
    ("scenario-metadata-storm", "", "", "planted: metadata-storm; hardly any data"),
    ("scenario-sync-per-write", "write", "", "planted: sync-per-write"),
    ("scenario-collective-coordination", "write", "", "planted: collective-coordination"),
    ("scenario-imbalance", "write", "", "planted: imbalance"),
    ("scenario-healthy-input", "read", "", "nothing planted: own input files"),
)

SYNTHETIC = _runs(
    "synthetic",
    ("clock-1us", "write", "", "a clock of 1 us"),
    ("clock-10ns", "write", "", "ticks of 10.017 ns: one mode of 900 ns"),
    ("clock-4ms", "write", "", "a coarse clock of 4 ms: one mode of 30 ms"),
    ("clock-1970", "read", "", "Darshan: a clock of 1 us as doubles of seconds since 1970, one mode of 3 us"),
    ("far-outliers", "write", "backtest", "1,000 calls of 1 ms, and two of 1.0 and 1.3 s"),
    ("clustered-slow", "write", "whole backtest", "slow calls that gather in few of 20 phases"),
    ("two-hills", "write", "", "two hills three decades apart"),
    ("plateau", "write", "", "uniform durations: there is no mode"),
    ("small-sample", "write", "whole", "5 phases of 8 calls, one mode of 200 ms"),
    ("harmonics", "write", "", "modes at T, T/2 and T/4"),
    ("autocorrelated", "write", "", "32 ordinals under a load that varies slowly: no trend"),
    ("worsening", "write", "structure", "each phase a tenth slower than the one before: a trend"),
    ("sizes", "write", "filters", "three sizes: modes per call and per MiB differ"),
    ("all-equal", "write", "", "all durations equal"),
)

IMPORTED = _runs(
    "imported",
    ("strace", "read", "", "a log of strace -ttt -T -f"),
    ("otf2-of-replay", "write", "", "replay-ior-2x10 as OTF2 archive"),
    ("replay-collected", "write", "", "replay-ior-calls as trace.h5"),
    _more(
        "otf2-of-others",
        "write",
        "imported",
        "an OTF2 archive by another writer",
        "tests:end_to_end/archives/others",
    ),
    _more(
        "otf2-ours", "write", "imported", "an older OTF2 archive of ensio", "tests:end_to_end/archives/ours"
    ),
    _more(
        "dftracer-1.0.5",
        "read",
        "imported",
        "DFTracer 1.0.5",
        "tests:unit/readers/foreign/traces/dftracer-1.0.5.pfw",
    ),
    _more(
        "dftracer-4.3.0",
        "read",
        "imported",
        "DFTracer 4.3.0",
        "tests:unit/readers/foreign/traces/dftracer-4.3.0.pfw",
    ),
    _more(
        "dxt",
        "read",
        "imported",
        "Darshan with DXT, a serial program",
        "darshan:examples/example_logs/dxt.darshan",
    ),
    _more(
        "dxt-ior",
        "write",
        "imported layers",
        "Darshan with DXT of IOR through HDF5",
        "darshan:examples/example_logs/ior_hdf5_example.darshan",
    ),
    _more(
        "counters",
        "write",
        "imported report",
        "Darshan, counters only: 2,048 files on Lustre with a slow target",
        "darshan:examples/example_logs/sample-badost.darshan",
    ),
    _more(
        "counters-no-posix",
        "",
        "imported",
        "Darshan, counters only, without the module POSIX",
        "darshan:examples/example_logs/noposix.darshan",
    ),
)

_VPIC = "--op write --layer posix --size 524288"

TABLES = (
    _more(
        "vpic",
        "",
        "table large",
        "VPIC, 192 ranks on GPFS (DXT): slow calls in 2 of 16 phases",
        "data:raw/vpic_hdf5_summit_gpfs_192.darshan",
        f"modes {_VPIC}",
        f"tail {_VPIC} --tasks 1920",
        f"tail {_VPIC} --tasks 1920 --backtest",
    ),
    _more(
        "cm1-dftracer",
        "write",
        "table large",
        "CM1, 8 of 48 processes (DFTracer): a clock of 1 us",
        "data:raw/cm1_dftracer",
        "modes --call fopen",
        "modes --op write --size 4800",
        "tail --op write --tasks 48",
    ),
    _more(
        "cm1-recorder",
        "read",
        "table large",
        "CM1, 1,280 ranks (Recorder): a coarse clock",
        "table:cm1_recorder",
        "modes --op read --size 16MiB",
        "tail --op open --tasks 1280",
    ),
    _more(
        "dlio",
        "read",
        "table large",
        "a deep-learning reader, 8 processes: small reads",
        "table:dlio_hdf5_8_dftracer",
        "modes --op read --size 512",
        "tail --op read --tasks 64",
    ),
    _more(
        "bufwr-1",
        "write",
        "table large",
        "IOR's own times, buffered writes of 256 KiB",
        "table:local_bufwr256k_6runs:1",
    ),
    _more(
        "dirwr-1",
        "write",
        "table large",
        "IOR's own times, direct writes of 64 KiB",
        "table:local_dirwr64k_6runs:1",
    ),
)

HELPERS = (
    *(f"replay-repeated-{number}" for number in (2, 3)),
    *(f"sim-{kind}-{number}" for kind in ("healthy", "slow") for number in (2, 3, 4)),
)
"""Held runs that only comparisons take."""

HELPER_TABLES = {f"bufwr-{number}": f"table:local_bufwr256k_6runs:{number}" for number in range(2, 7)}
"""The same among the tables."""

RUNS = (*REAL, *SIMULATED, *SYNTHETIC, *IMPORTED, *TABLES)


@dataclass(frozen=True)
class Several:
    """Command lines about several runs at once, or about none: frozen under a name as those of a run are."""

    name: str
    stands_for: str
    lines: tuple[str, ...]
    tags: frozenset[str] = field(default=frozenset())


_HEALTHY_3 = "sim-healthy-1 sim-healthy-2 sim-healthy-3"
_SLOW_3 = "sim-slow-1 sim-slow-2 sim-slow-3"
_HEALTHY = f"{_HEALTHY_3} sim-healthy-4"
_SLOW = f"{_SLOW_3} sim-slow-4"
_REPEATED = "replay-repeated-1 replay-repeated-2 replay-repeated-3"

SEVERAL = (
    Several(
        "comparisons",
        "runs against themselves, repetitions and slower ones: 1, 3 and 4 per group",
        (
            "compare replay-ior-8 replay-ior-8 --json",
            "compare sim-healthy-1 sim-slow-1 --op write --json",
            "compare sim-healthy-1 sim-slow-1 --op write --fail-on difference --json",
            f"compare {_HEALTHY} --with sim-slow-1 --op write --json",
            f"compare {_HEALTHY_3} --with {_SLOW_3} --op write --json",
            f"compare {_HEALTHY} --with {_SLOW} --op write --fail-on difference --json",
            f"compare {_SLOW} --with {_HEALTHY} --op write --fail-on difference --json",
            "compare sim-healthy-1 sim-healthy-2 --with sim-healthy-3 sim-healthy-4 --json",
            f"compare {_REPEATED} --op write --json",
            "compare replay-repeated-1 replay-repeated-2 replay-repeated-3 --with replay-ior-8 --json",
            "compare sim-madbench-faulty sim-madbench-patched --op read --json",
            "compare replay-profile replay-ior-8 --json",
            "compare tar dd --json",
        ),
    ),
    Several(
        "comparisons-of-tables",
        "6 runs of the same experiment: three against three",
        (
            "compare bufwr-1 bufwr-2 bufwr-3 --with bufwr-4 bufwr-5 bufwr-6 --json",
            "compare bufwr-1 dirwr-1 --json",
        ),
        frozenset({"table"}),
    ),
    Several(
        "refusals",
        "wrong usage and questions that have no answer: exit code and sentence",
        (
            "info nowhere",
            "info replay-ior-8 replay-ior-64",
            "modes replay-ior-8 --op writ",
            "modes replay-ior-8 --op read --layer stdio",
            "modes replay-ior-8 --limit 16GB/s",
            "modes replay-ior-8 --limit 0 --tasks 4",
            "tail replay-ior-8 --tasks 0",
            "tail replay-ior-8 --level 1.5",
            "tail replay-ior-8 --call nosuchcall",
            "split replay-ior-8 --calls 0",
            "split replay-ior-8 --calls 1,x",
            "phases replay-ior-8 --by gaps",
            "phases replay-ior-8 --by named",
            "ordinals replay-ior-8 --op read,write",
            "rate replay-ior-8 --op open",
            "rate replay-ior-8 --size 1..x",
            "events replay-profile",
            "events replay-ior-8 --format parquet",
            "export replay-profile --to csv made.csv",
            "export replay-ior-8 --to otf2 made --op write",
            "compare replay-ior-8",
            "diagnose replay-ior-8/job.ensio.missing",
            "collect one-call/nothing",
            "replay nosuchpattern",
            "simulate ior --fs nosuchmodel",
            "simulate ior --fs healthy --fault nosuchfault=1",
            "scenarios run --scenario nosuch -o made",
            "rate replay-ior-8 --file *nothing*",
            "modes replay-ior-8 --file *nothing* --json",
            "phases replay-ior-8 --phase 999",
            "files replay-ior-8 --rank 99",
            "ranks replay-ior-8 --time 1000..",
            "sites replay-ior-8 --size 7",
            "ordinals replay-ior-8 --call fsync",
            "events replay-ior-8 --where ordinal=99",
            "tail replay-ior-8 --op write --size 7 --tasks 4",
            "split replay-ior-8 --layer hdf5",
            "events replay-ior-8 --op open --size 1MiB",
            "modes regions --where region=comput",
            "files replay-profile",
            "ranks replay-profile --op write",
            "events replay-ior-8 --slowest 0",
            "info replay-ior-8 --jsn",
            "events replay-ior-8 --format parqet",
            "info strace/tar.strace --frobnicate",
            "frobnicate",
        ),
    ),
    Several(
        "without-a-run",
        "what commands say that need no run: models and scenarios",
        (
            "scenarios list --json",
            "simulate ior --tasks 4 --fs franklin --seed 7 -o made-ior --json",
            "simulate madbench --set sizes=laptop --tasks 4 --fs healthy --seed 7 -o made-madbench --json",
            "scenarios run --seed 3 --scenario straggler-task --tasks 16 -o made-scenarios --json",
        ),
    ),
)
