"""The slowest of N calls: by the layer of assumptions that the data allow, and how often that held."""
