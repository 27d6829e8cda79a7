"""Writers: a folder for each format of our own, and one for formats that other programs read."""
