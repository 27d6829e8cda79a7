"""DFTracer's traces."""
