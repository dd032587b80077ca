"""Action masks: which actions are allowed, zero where one is not.

They come beside the observation, `{'obs': ..., 'action_mask': ...}`, and go with the logits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from ding.model.encoder import ObsShape

Logits = TypeVar("Logits", Tensor, np.ndarray)

# As good as minus infinity, but zero times its probability is still zero.
NEVER = -1e8


def wraps_obs(obs_shape: ObsShape) -> bool:
    """Whether a dict input is `{'obs': ..., 'action_mask': ...}` and not itself the observation."""
    return not (isinstance(obs_shape, Mapping) and "obs" in obs_shape)


def split_mask(x: Any, wraps_obs: bool) -> tuple[Any, dict[str, Any]]:
    """The observation, and `{'action_mask': ...}` if one came with it."""
    if not (wraps_obs and isinstance(x, dict) and "obs" in x):
        return x, {}
    return x["obs"], {key: x[key] for key in ("action_mask",) if key in x}


def masked(logit: Logits, mask: Any) -> Logits:
    """Logits that never win where the mask is zero; those without a mask as they are."""
    if mask is None:
        return logit
    if isinstance(logit, Tensor):
        allowed = torch.as_tensor(mask, device=logit.device) != 0
        return torch.where(allowed, logit, NEVER)
    return np.where(mask != 0, logit, np.float32(NEVER))
