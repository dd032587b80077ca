"""Kuhn and Leduc poker."""
