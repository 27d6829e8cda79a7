"""Safe reading and writing of files: bounded, atomic, with the right permissions."""
