"""Atari games with the preprocessing of Mnih et al. 2015.

Machado et al. 2018, https://arxiv.org/abs/1709.06009, compare the choices made here with others:
random no-ops at the start instead of sticky actions, and an episode per life while training.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ding.envs import DingEnvWrapper


class AtariEnv(DingEnvWrapper):
    """Stacks of 4 grey frames, (4, 84, 84) uint8; a step is 4 frames of the game.

    Lost lives end an episode and rewards are clipped when collecting only.
    """

    config: ClassVar[dict[str, Any]] = {
        **DingEnvWrapper.config,
        "env_id": "ALE/Pong-v5",
        "env_kwargs": {
            "frameskip": 1,  # `max_and_skip` does it
            "repeat_action_probability": 0.0,
            "obs_type": "grayscale",
        },
        "rew_clip": True,
        "env_wrapper": [
            "noop_reset",
            "max_and_skip",
            {"type": "episodic_life", "collect_only": True},
            "fire_reset",
            "warp_frame",
            "frame_stack",
        ],
    }

    @staticmethod
    def create_evaluator_env_cfg(cfg: Mapping[str, Any]) -> list[Any]:
        # What is left out when evaluating may be among the defaults.
        return DingEnvWrapper.create_evaluator_env_cfg({**AtariEnv.config, **cfg})
