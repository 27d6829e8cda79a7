"""DFTracer traces."""
