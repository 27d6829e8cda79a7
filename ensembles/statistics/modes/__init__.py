"""The modes of log duration: how many, where, how heavy and how wide, and whether they are harmonics."""
