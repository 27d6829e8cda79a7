"""Darshan logs, read with Darshan's library."""
