"""``trace.h5``: a whole run in one HDF5 file."""
