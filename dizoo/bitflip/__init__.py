"""Bit flipping: the task of the HER paper."""
