"""Diagnosis: causes of slow I/O, found by rules."""
