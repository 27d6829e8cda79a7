"""The text that strace writes."""
