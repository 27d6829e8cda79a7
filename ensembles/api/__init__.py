"""What users of the library meet: a run with its questions as methods."""
