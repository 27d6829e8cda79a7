"""Access to the installed recorder: install paths, run directories, annotations, ``ensio-otf2``."""
