"""Access patterns: which loops of calls a program makes, and how it goes through its files."""
