"""Workloads: I/O patterns as data, their simulation, and synthetic runs."""
