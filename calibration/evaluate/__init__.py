"""Evaluation of the diagnosis on drawn simulated runs, whose causes are measured."""
