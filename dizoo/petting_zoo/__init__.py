"""Envs of PettingZoo and MPE."""
