"""Simulation of patterns in virtual time on a model of a file system (docs/reference/simulation.md)."""

from ensembles.workloads.simulation.models import Model, read_model
from ensembles.workloads.simulation.simulate import SimulationResult, simulate

__all__ = ["Model", "SimulationResult", "read_model", "simulate"]
