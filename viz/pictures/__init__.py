"""The pictures of `ensembles.viz`, one in each file, and their parts."""
