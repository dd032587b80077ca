"""SMAC: battles of StarCraft II, for those who have the game."""
