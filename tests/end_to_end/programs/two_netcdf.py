"""Uses netCDF4's library and another one side by side. two_netcdf.py LIBRARY, in an empty folder.

Prints the numbers by which both name their open files.
"""

import ctypes
import sys

import netCDF4
import numpy as np

library = ctypes.CDLL(sys.argv[1])
ours = netCDF4.Dataset("ours.nc", "w", format="NETCDF3_CLASSIC")
theirs = library.create(b"theirs.nc")
print(ours._grpid, theirs)
ours.createDimension("x", 100)
ours.createVariable("x", "f8", ("x",))[:] = np.zeros(100)
assert library.fill(theirs, b"x", 1000) == 0
ours.createVariable("y", "f8", ("x",))[:10] = np.zeros(10)
assert library.fill(theirs, b"y", 1000) == 0
assert library.finish(theirs) == 0
ours.close()
