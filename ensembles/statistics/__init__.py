"""What can be said about an ensemble: pure functions of arrays, each estimate with an interval.

Formulas and their sources are in docs/reference/methods."""
