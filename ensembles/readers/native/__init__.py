"""What the recorder wrote: spools and job files in a run directory."""
