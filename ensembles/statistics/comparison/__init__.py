"""Groups of runs: the same, different, or not to be told, and what moved."""
