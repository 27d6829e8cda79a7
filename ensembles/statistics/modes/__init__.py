"""The modes of log duration: how many, where, how heavy and how wide, and whether they are harmonics.

`modes.fit_modes` is the entry point. `clusters` finds antimodes, `kinds` says what the clusters between them
are, and `locations` estimates their places.
"""
