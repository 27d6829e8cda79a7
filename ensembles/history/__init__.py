"""The record of runs: what experiments did over weeks, and whether the latest run is another one."""
