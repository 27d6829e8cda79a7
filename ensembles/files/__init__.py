"""Files that are read and written with care: bounded, atomic, with the right permissions."""
