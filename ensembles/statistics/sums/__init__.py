"""Sums of successive calls, and what splitting calls would gain."""
