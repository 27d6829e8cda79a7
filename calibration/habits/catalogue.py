"""The habits that are planted in real programs."""

from __future__ import annotations

from calibration.habits.habit import Habit

ONE_FAMILY = ("openmpi",)
PRELOADED = ("preloaded",)


ONE_TASK = (
    Habit(
        "sync-per-write",
        "fsync after each 64 KiB",
        "posix_habits",
        "write {data} every=1",
        "write {data} end=1",
    ),
    Habit(
        "sync-per-write",
        "fdatasync after every second 256 KiB",
        "posix_habits",
        "write {data} size=262144 count=96 every=2 data=1",
        "write {data} size=262144 count=96 end=1",
    ),
    Habit(
        "sync-per-write",
        "fsync after every 30th write of 16 KiB",
        "posix_habits",
        "write {data} size=16384 count=600 every=30",
        "write {data} size=16384 count=600 end=1",
    ),
    Habit(
        "sync-per-write",
        "fsync after each line of a log",
        "python_habits.py",
        "write {data} count=100 every=1",
        "write {data} count=100",
    ),
    Habit(
        "sync-per-write",
        "a transaction for each row",
        "python_habits.py",
        "database {data} each=1 count=60",
        "database {data} count=60",
    ),
    Habit(
        "sync-per-write",
        "fio --fsync=1",
        "fio",
        "--name=x --directory={data} --rw=write --bs=64k --size=4m --ioengine=psync --thread --fsync=1",
        "--name=x --directory={data} --rw=write --bs=64k --size=4m --ioengine=psync --thread --end_fsync=1",
    ),
    *(
        Habit(
            "o-sync",
            f"writes of 64 KiB with O_{flag.upper()}",
            "posix_habits",
            f"write {{data}} flags={flag} count=128",
            f"write {{data}} {'' if flag == 'direct' else 'end=1'} count=128",
        )
        for flag in ("sync", "dsync", "direct")
    ),
    *(
        Habit(
            "o-sync",
            f"dd oflag={flag}",
            "dd",
            f"if=/dev/zero of={{data}}/out bs=32k count=128 oflag={flag}",
            "if=/dev/zero of={data}/out bs=32k count=128",
        )
        for flag in ("sync", "dsync", "direct")
    ),
    Habit(
        "o-sync",
        "fio --sync=1",
        "fio",
        "--name=x --directory={data} --rw=write --bs=64k --size=4m --ioengine=psync --thread --sync=1",
        "--name=x --directory={data} --rw=write --bs=64k --size=4m --ioengine=psync --thread",
    ),
    Habit(
        "small-requests",
        "writes of 1 KiB",
        "posix_habits",
        "write {data} size=1024 count=131072",
        "write {data} size=1048576 count=128",
    ),
    Habit(
        "small-requests",
        "writes of 128 bytes",
        "posix_habits",
        "write {memory} size=128 count=262144",
        "write {memory} size=1048576 count=32",
    ),
    Habit(
        "small-requests",
        "reads of 512 bytes",
        "posix_habits",
        "read {memory} size=512 pieces=262144",
        "read {memory} size=1048576 pieces=128",
        before="write {memory} size=1048576 count=128",
    ),
    Habit(
        "small-requests",
        "dd bs=1k",
        "dd",
        "if=/dev/zero of={data}/out bs=1k count=65536",
        "if=/dev/zero of={data}/out bs=1M count=64",
    ),
    Habit(
        "small-requests",
        "unbuffered writes of 1 KiB",
        "python_habits.py",
        "write {memory} buffering=0 count=60000",
        "write {memory} buffering=1048576 count=60000",
    ),
    Habit(
        "small-requests",
        "writes of 4 KiB to a parallel file system",
        "posix_habits",
        "write {model} size=4096 count=512",
        "write {model} size=1048576 count=2",
    ),
    *(
        Habit(
            "stdio-buffer",
            f"{op} {record} bytes through a buffer of {room or 4096}",
            "posix_habits",
            f"stream {{{place}}} record={record} count={(32 << 20) // record} buffer={room} {options}",
            f"stream {{{place}}} record={record} count={(32 << 20) // record} buffer=1048576 {options}",
            before=f"write {{{place}}} size=1048576 count=32" if options else "",
        )
        for op, record, room, place, options in (
            ("write", 1024, 4096, "data", ""),
            ("write", 4096, 0, "memory", ""),
            ("read", 1024, 4096, "memory", "read=1"),
        )
    ),
    Habit(
        "stdio-buffer",
        "stream with the default buffer on a parallel file system",
        "posix_habits",
        "stream {model} record=256 count=8192",
        "stream {model} record=256 count=8192 buffer=1048576",
    ),
    Habit(
        "seek-heavy",
        "4 KiB in random order, cold",
        "posix_habits",
        "read {slow} size=4096 pieces=2048 random=1",
        "read {slow} size=4096 pieces=2048",
        before="write {slow} size=1048576 count=8 end=1",
        cold=True,
    ),
    Habit(
        "seek-heavy",
        "fio --rw=randread, cold",
        "fio",
        "--name=x --filename={data}/data --rw=randread --bs=4k --size=16m --ioengine=psync --thread",
        "--name=x --filename={data}/data --rw=read --bs=4k --size=16m --ioengine=psync --thread",
        before="--name=x --filename={data}/data --rw=write --bs=1m --size=16m --ioengine=psync --thread "
        "--end_fsync=1",
        cold=True,
    ),
    Habit(
        "metadata-storm",
        "a file opened 20,000 times",
        "posix_habits",
        "open {data} again=1 count=20000 every=5000 size=1048576",
        "open {data} count=20000 every=5000 size=1048576",
    ),
    Habit(
        "metadata-storm",
        "open for each record on a parallel file system",
        "posix_habits",
        "open {model} again=1 count=60 size=131072",
        "open {model} count=60 size=131072",
    ),
    Habit(
        "metadata-storm",
        "stat before each read",
        "posix_habits",
        "stat {data} again=1 count=50000 every=4",
        "stat {data} count=50000 every=4",
    ),
    Habit(
        "metadata-storm",
        "a log opened for each line",
        "python_habits.py",
        "append {data} again=1 count=3000",
        "append {data} count=3000",
    ),
    Habit(
        "metadata-storm",
        "a file looked for again and again",
        "python_habits.py",
        "look {data} count=10000",
        "look {data} count=1",
    ),
    Habit(
        "hdf5-refill",
        "fill values at allocation",
        "hdf5_habits.py",
        "dataset {data} filled=1 rows=1024",
        "dataset {data} rows=1024",
    ),
    Habit(
        "hdf5-refill",
        "chunks that the cache does not hold",
        "hdf5_habits.py",
        "chunks {data} cache=1048576",
        "chunks {data}",
    ),
    Habit(
        "hdf5-metadata",
        "a group for each result",
        "hdf5_habits.py",
        "objects {data} many=1 count=400",
        "objects {data} count=400",
    ),
    Habit(
        "hdf5-metadata",
        "a group for each result, on a parallel file system",
        "hdf5_habits.py",
        "objects {model} many=1 count=60",
        "objects {model} count=60",
    ),
    Habit(
        "not-io",
        "computation between small files",
        "posix_habits",
        "compute {data} count=4",
        "compute {data} count=4",
    ),
)

TASKS = (
    Habit(
        "sync-per-write",
        "4 tasks: fsync after each write",
        "mpi_habits",
        "steps {data} steps=4 count=8 every=1",
        "steps {data} steps=4 count=8",
        4,
    ),
    Habit(
        "imbalance",
        "one of 4 tasks writes six times as much",
        "mpi_habits",
        "steps {memory} steps=6 count=8 size=1048576 heavy=2 times=6 sync=0",
        "steps {memory} steps=6 count=18 size=1048576 sync=0",
        4,
    ),
    Habit(
        "straggler-task",
        "one of 4 tasks writes to a throttled disk",
        "mpi_habits",
        "steps {data} steps=8 count=4 size=262144 slow=2 elsewhere={slow}",
        "steps {data} steps=8 count=4 size=262144",
        4,
    ),
    Habit(
        "straggler-task",
        "one of 4 tasks writes to a slow file system",
        "mpi_habits",
        "steps {data} steps=8 count=2 size=524288 slow=1 elsewhere={model} sync=0",
        "steps {data} steps=8 count=2 size=524288 sync=0",
        4,
        ways=PRELOADED,
    ),
    Habit(
        "metadata-storm",
        "4 tasks open one file 5,000 times",
        "mpi_habits",
        "open {data} again=1 count=5000 every=2500 size=1048576",
        "open {data} count=5000 every=2500 size=1048576",
        4,
    ),
    Habit(
        "metadata-storm",
        "4 tasks open one file for each record, on a parallel file system",
        "mpi_habits",
        "open {model} again=1 count=40 size=131072",
        "open {model} count=40 size=131072",
        4,
        ways=PRELOADED,
    ),
    Habit(
        "metadata-storm",
        "4 tasks open all files of a folder",
        "mpi_habits",
        "folder {model} all=1 files=100 size=4096",
        "folder {model} files=100 size=4096",
        4,
        ways=PRELOADED,
    ),
    Habit(
        "redundant-reads",
        "4 tasks read the whole file past the cache",
        "mpi_habits",
        "read {slow} all=1 pieces=8 size=131072 direct=1",
        "read {slow} pieces=8 size=131072 direct=1",
        4,
    ),
    Habit(
        "redundant-reads",
        "4 tasks read the whole file, from memory",
        "mpi_habits",
        "read {memory} all=1 pieces=32 size=1048576",
        "read {memory} pieces=32 size=1048576",
        4,
        ways=PRELOADED,
    ),
    Habit(
        "serialised-metadata",
        "task 0 of 5 writes 64-byte records one by one",
        "mpi_habits",
        "header {memory} records=20000 bulk=65536",
        "header {memory} records=20000 together=1 bulk=65536",
        5,
        flavours=ONE_FAMILY,
    ),
    Habit(
        "small-requests",
        "BT-IO: 2 tasks write 1 KiB each to a shared file",
        "mpi_habits",
        "blocks {data} how=simple count=8192",
        "blocks {data} how=full count=8192",
        2,
    ),
    Habit(
        "small-requests",
        "2 tasks write their parts of a shared file in pieces of 1 KiB",
        "mpi_habits",
        "blocks {data} how=pieces count=8192",
        "blocks {data} how=parts count=8192",
        2,
        ways=PRELOADED,
    ),
    Habit(
        "small-requests",
        "BT-IO: 2 tasks write 1 KiB each, on a parallel file system",
        "mpi_habits",
        "blocks {model} how=simple count=128",
        "blocks {model} how=parts count=128",
        2,
        ways=PRELOADED,
    ),
    Habit(
        "read-modify-write",
        "4 tasks write with holes through ROMIO",
        "mpi_habits",
        "blocks {data} how=holes count=8192",
        "blocks {data} how=parts count=8192",
        4,
        flavours=("mpich",),
    ),
    Habit(
        "collective-coordination",
        "2 tasks write 4 KiB in each collective call",
        "mpi_habits",
        "collective {data} size=4096 count=4096",
        "collective {data} size=1048576 count=16",
        2,
    ),
)

CANNOT_TELL = (
    Habit(
        "interference",
        "a neighbour fills the queue of the disk",
        "posix_habits",
        "write {slow} size=65536 count=32 every=4",
        "write {slow} size=65536 count=32 every=4",
        neighbour=True,
        ways=PRELOADED,
    ),
)

WITH_IOR = (
    Habit(
        "sync-per-write",
        "IOR -Y",
        "ior",
        "-a POSIX -w -F -t 64k -b 4m -Y -o {data}/ior",
        "-a POSIX -w -F -t 64k -b 4m -e -o {data}/ior",
        2,
        flavours=("mpich",),
    ),
    Habit(
        "small-requests",
        "IOR -t 1k",
        "ior",
        "-a POSIX -w -F -t 1k -b 32m -o {data}/ior",
        "-a POSIX -w -F -t 1m -b 32m -o {data}/ior",
        2,
        flavours=("mpich",),
    ),
)

HABITS = (*ONE_TASK, *TASKS, *CANNOT_TELL, *WITH_IOR)
