"""Writers: one folder per ensio format, and one for formats of other programs."""
