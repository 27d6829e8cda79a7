"""How answers are shown: their words, a text for terminals, and HTML for reports and notebooks."""
