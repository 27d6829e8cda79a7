"""OTF2 archives of ensio, Score-P and other tools."""
