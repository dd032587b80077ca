"""Established signatures: namedtuples of `done`, `nstep` and `gamma` for the cores of `rl_utils`.

A façade turns its arguments into the columns of the cores (`reward`, `discount`, log-probabilities)
and calls these; the mathematics is there, one paper a file.
"""
