"""Atari games, with the usual preprocessing. Needs the extra `atari`."""
