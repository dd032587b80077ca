"""Swing a pendulum up and hold it there."""
