"""Uses h5py's HDF5 and another one side by side. two_hdf5.py LIBRARY OTHER_LIBRARY, in an empty folder.

LIBRARY is linked to OTHER_LIBRARY, which is called directly too. Prints the numbers by which both name their
open files.
"""

import ctypes
import sys

import h5py
import numpy as np

library, other = ctypes.CDLL(sys.argv[1]), ctypes.CDLL(sys.argv[2])
library.create.restype = other.H5Fcreate.restype = ctypes.c_int64
hid = ctypes.c_int64

ours = h5py.File("ours.h5", "w")
theirs = library.create(b"theirs.h5")
print(ours.id.id, theirs)
ours["x"] = np.zeros(100, "i8")
assert library.fill(hid(theirs), b"x", 1000) == 0
ours["y"] = np.zeros(10, "i8")
assert library.fill(hid(theirs), b"y", 2000) == 0
direct = other.H5Fcreate(b"direct.h5", 2, hid(0), hid(0))
assert direct > 0
assert other.H5Fclose(hid(direct)) == 0
assert library.finish(hid(theirs)) == 0
ours.close()
