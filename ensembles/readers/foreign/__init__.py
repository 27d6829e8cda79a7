"""Traces of other tools: one folder per format, whose reader returns a `ForeignTrace`."""
