"""Rule ``strided-readahead``: strided reads that become slower after the third."""
