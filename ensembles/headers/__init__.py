"""The C headers that recorder and reader share, as resources: links to ``libtrace/include/ensio``."""
