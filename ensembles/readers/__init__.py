"""One file a format: what is read, and how."""
