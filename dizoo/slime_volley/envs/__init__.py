"""Slime volley: its rules, its bot and its env."""

from dizoo.slime_volley.envs.slime_volley_env import SlimeVolleyEnv

__all__ = ["SlimeVolleyEnv"]
