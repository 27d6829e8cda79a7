"""pytest puts this folder on the path of imports: its modules serve the tests of all folders below."""
