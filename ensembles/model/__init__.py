"""Events, regions and metadata of a run as plain data; units, filters and errors."""

__version__ = "1.0.0rc1"
