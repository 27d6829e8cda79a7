"""Traces of Recorder: a folder with a table of call signatures and a grammar of calls for each rank."""
