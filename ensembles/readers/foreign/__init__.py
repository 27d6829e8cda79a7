"""Traces of other tools: a folder for each format, whose reader gives a `ForeignTrace`."""
