"""What the events say about the program: its phases, ordinals and rates."""
