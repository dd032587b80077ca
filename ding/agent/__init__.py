"""Deployed policies: an `Agent` acts in an env's own units, wherever it was loaded from."""

from ding.agent.agent import Agent
from ding.agent.load import load

__all__ = ["Agent", "load"]
