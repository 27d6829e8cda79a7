"""The questions about a run: each is a function that returns one immutable answer, which every face shows."""
