"""A child reads from a file that its parent opened by a relative name. h5py_fork.py, in an empty folder."""

import os

import h5py
import numpy as np

with h5py.File("a.h5", "w") as file:
    file["x"] = np.arange(50, dtype="i8")
file = h5py.File("a.h5", "r")
data = file["x"]
os.chdir("/")
child = os.fork()
if child == 0:
    os._exit(0 if data[:10].sum() == 45 else 1)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
