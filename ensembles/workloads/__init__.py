"""Workloads: I/O patterns as data, their simulation, and recorded runs as plans."""
