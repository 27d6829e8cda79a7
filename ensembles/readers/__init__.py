"""Readers: one folder per ensio format, and one per format of other tools."""
