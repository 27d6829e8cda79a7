"""The model of a parallel file system: its settings, runs in virtual time, and real programs under it."""
