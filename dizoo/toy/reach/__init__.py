"""Reach: a point that is to be steered to a place in the plane."""
