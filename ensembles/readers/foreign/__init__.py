"""Traces of other tools: one file a format, each an `Import` (`importing`); `formats` tells them apart."""
