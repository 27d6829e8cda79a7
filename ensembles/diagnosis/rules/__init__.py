"""The rules of the diagnosis: a module or a folder for each cause of slow I/O.

`diagnosis.diagnose.RULES` lists them.
"""
