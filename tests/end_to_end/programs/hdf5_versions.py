"""Uses two HDF5 libraries with the same functions in different versions, then loads one again and again.

hdf5_versions.py GLOBAL_LIBRARY LIBRARY, in an empty folder. Prints the numbers by which both name their open
file, and how often an HDF5 that is not in use any more was still there.
"""

import _ctypes
import ctypes
import sys
from pathlib import Path

hid = ctypes.c_int64


def load(path: str, mode: int = ctypes.RTLD_LOCAL) -> ctypes.CDLL:
    library = ctypes.CDLL(path, mode)
    library.create.restype = hid
    return library


def loaded(name: str) -> int:
    return name in Path("/proc/self/maps").read_text()


first, second = load(sys.argv[1], ctypes.RTLD_GLOBAL), load(sys.argv[2])
files = first.create(b"first.h5"), second.create(b"second.h5")
print(*files)
assert first.fill(hid(files[0]), b"x", 100) == 0
assert second.fill(hid(files[1]), b"x", 200) == 0
assert first.finish(hid(files[0])) == 0
assert second.finish(hid(files[1])) == 0
_ctypes.dlclose(first._handle)
still_there = 0
for _ in range(20):
    again = load(sys.argv[1])
    file = again.create(b"again.h5")
    assert again.fill(hid(file), b"x", 300) == 0
    assert again.finish(hid(file)) == 0
    _ctypes.dlclose(again._handle)
    still_there += loaded("libhdf5_serial")
print(still_there)
