"""Fictitious self-play on poker."""
