"""Decision-intelligence engine: a reinforcement-learning framework on PyTorch."""

__version__ = "0.1.0"
__all__ = ["__version__"]
