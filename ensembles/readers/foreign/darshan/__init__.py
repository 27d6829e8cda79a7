"""Darshan logs, read with Darshan's library.

`source.read` opens a log. It decodes it in another process (`sandbox_process`), since the library is not safe
against damaged logs.
"""
