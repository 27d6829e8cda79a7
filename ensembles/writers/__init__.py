"""One file a format: what is written, and how."""
