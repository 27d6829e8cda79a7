"""The slowest of N calls, by the assumptions that the data allow (docs/reference/methods/tail.md)."""
