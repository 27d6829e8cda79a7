"""The names of the files in a run directory."""

SPOOL_SUFFIX = ".spool"
JOB_FILE_SUFFIX = ".ensio"

RECORDS = (SPOOL_SUFFIX, JOB_FILE_SUFFIX)
"""How the names of files end that hold what was recorded."""

TRACE_FILE = "trace.h5"
"""The file that readers make of them."""
