"""Slime volley: a ball over a fence, played by two."""
