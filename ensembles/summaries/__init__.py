"""Mergeable summaries; `ensembles.passes.summary` defines their protocol."""
