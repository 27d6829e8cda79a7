"""Events, regions and metadata of a run as plain data, with units, filters and errors."""
