"""Readers: a folder for each format of our own, and one for each format of other tools."""
