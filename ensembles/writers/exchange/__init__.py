"""Formats of other programs: OTF2, Parquet, Perfetto, text."""
