"""What programs and commands need of the recorder: its places, run directories and annotations."""
