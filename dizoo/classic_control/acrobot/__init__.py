"""Swing two links up to a line."""
