"""The command ``ensio``: one file a subcommand."""
