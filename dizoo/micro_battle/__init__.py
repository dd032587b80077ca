"""Battles of small units: an env of agents with the interface of SMAC, written in NumPy."""
