"""Env workers: processes (or threads) that step envs, and the talk between them and the parent."""
