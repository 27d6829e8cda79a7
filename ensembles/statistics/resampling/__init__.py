"""Bootstrap methods, and the dependence between calls."""
