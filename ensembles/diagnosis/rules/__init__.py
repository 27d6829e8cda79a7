"""The rules of the diagnosis: a folder for each cause of slow I/O."""
