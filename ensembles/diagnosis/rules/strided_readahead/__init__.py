"""Strided reads that the read-ahead of a file system serves ever more slowly."""
