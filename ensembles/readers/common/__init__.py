"""Parts shared by the readers of all formats."""
