"""Decision-intelligence engine: a reinforcement-learning framework on PyTorch."""

__version__ = "0.1.0"
__all__ = ["__version__", "enable_hpc_rl"]

enable_hpc_rl = True
"""Let compiled kernels compute returns and losses where they give the same numbers; set at will."""
