"""Reach a point of a lattice, moving along all axes at once."""
