"""Tic-tac-toe and Connect Four."""
