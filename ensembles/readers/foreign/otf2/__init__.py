"""OTF2 archives: our own, and those of Score-P."""
