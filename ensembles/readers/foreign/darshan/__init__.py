"""Darshan logs, read by Darshan's own library."""
