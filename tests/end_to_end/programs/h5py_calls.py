"""Uses h5py in threads, prints what it read, and leaves a file open at its end. h5py_calls.py FOLDER."""

import sys
import threading
from pathlib import Path

import h5py
import numpy as np

folder = Path(sys.argv[1])
seen = {}


def work(number):
    path = folder / f"{number}.h5"
    with h5py.File(path, "w") as file:
        plain = file.create_dataset("plain", data=np.arange(1000, dtype="i4"))
        plain.attrs["unit"] = "metre"
        packed = file.create_dataset("group/packed", (100, 100), "f8", chunks=(10, 10), compression="gzip")
        packed[...] = 1.5
        packed[10:20, 5:7] = number
        file["words"] = ["a", "bb", "ccc"]
    with h5py.File(path, "r") as file:
        here = [file["plain"][100:200].sum(), file["plain"][[1, 5, 7]].tolist()]
        here += [file["group/packed"][...].sum(), dict(file["plain"].attrs)]
        here += [file["words"].asstr()[:].tolist()]
        try:
            file["nothing"]
        except KeyError as error:
            here.append(str(error))
    seen[number] = here


threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(*(seen[number] for number in range(4)), sep="\n")
left_open = h5py.File(folder / "left.h5", "w")
left_open["one"] = 1
