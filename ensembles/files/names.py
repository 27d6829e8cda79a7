"""Names of the files in a run directory."""

SPOOL_SUFFIX = ".spool"
JOB_FILE_SUFFIX = ".ensio"

RECORDS = (SPOOL_SUFFIX, JOB_FILE_SUFFIX)
"""Suffixes of the files that the recorder writes."""

TRACE_FILE = "trace.h5"
"""The trace file, which readers make of the recorder's files."""
