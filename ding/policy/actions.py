"""Kinds of actions: drawing them, the best one, and how likely one is.

A network's 'logit' looks different for each kind; all that an algorithm asks of it is here, in
NumPy for acting and in torch for learning. Letters in shapes: N envs, B batch, A actions (or
dimensions of the action).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ding.model.action_mask import masked
from ding.policy import acting
from ding.policy.acting import sample_categorical, sample_gaussian
from ding.rl_utils.ppo import log_prob_entropy
from ding.torch_utils.distribution import (
    categorical_log_prob_entropy,
    gaussian_entropy,
    gaussian_log_prob,
)
from ding.utils.errors import ConfigError

Rng = np.random.Generator


class ActionKind(NamedTuple):
    sample: Callable[[Any, Rng], Any]
    """Logits to actions, drawn at random."""
    best: Callable[[Any], Any]
    """Logits to the likeliest actions."""
    log_prob: Callable[[Any, Any], np.ndarray]
    """Logits and actions to log-probabilities (N,), in NumPy."""
    log_prob_entropy: Callable[[Any, Any], tuple[Tensor, Tensor]]
    """Logits and actions to log-probabilities and entropies, (B,) each, in torch."""


# --- discrete: logit (N, A), action (N,) ---------------------------------------------------------


def _best_discrete(logit: np.ndarray) -> np.ndarray:
    return logit.argmax(axis=-1)


# --- several discrete actions: a tuple of logits (N, A_i), action (N, heads) ---------------------


def _heads(logit: Any) -> Sequence[Any]:
    return logit if isinstance(logit, (tuple, list)) else (logit,)


def _sample_multi(logit: Any, rng: Rng) -> np.ndarray:
    return np.stack([sample_categorical(head, rng) for head in _heads(logit)], axis=-1)


def _best_multi(logit: Any) -> Any:
    best = [head.argmax(axis=-1) for head in _heads(logit)]
    return torch.stack(best, dim=-1) if isinstance(best[0], Tensor) else np.stack(best, axis=-1)


def _log_prob_multi(logit: Any, action: np.ndarray) -> np.ndarray:
    pairs = zip(_heads(logit), np.moveaxis(action, -1, 0), strict=True)
    parts = [acting.categorical_log_prob(head, taken) for head, taken in pairs]
    return np.sum(parts, axis=0)


def _log_prob_entropy_multi(logit: Any, action: Tensor) -> tuple[Tensor, Tensor]:
    return log_prob_entropy(_heads(logit), action)


# --- continuous: logit {'mu', 'sigma'} of (N, A), action (N, A) ----------------------------------


def _sample_continuous(logit: Any, rng: Rng) -> np.ndarray:
    return sample_gaussian(logit["mu"], logit["sigma"], rng)


def _best_continuous(logit: Any) -> np.ndarray:
    return logit["mu"]


def _log_prob_continuous(logit: Any, action: np.ndarray) -> np.ndarray:
    return acting.gaussian_log_prob(logit["mu"], logit["sigma"], action)


def _log_prob_entropy_continuous(logit: Any, action: Tensor) -> tuple[Tensor, Tensor]:
    mu, sigma = logit["mu"], logit["sigma"]
    return gaussian_log_prob(mu, sigma, action), gaussian_entropy(sigma)


# --- hybrid: {'action_type': discrete, 'action_args': continuous}, logit and action alike --------


def _sample_hybrid(logit: Any, rng: Rng) -> dict[str, np.ndarray]:
    return {
        "action_type": sample_categorical(logit["action_type"], rng),
        "action_args": _sample_continuous(logit["action_args"], rng),
    }


def _best_hybrid(logit: Any) -> dict[str, np.ndarray]:
    return {
        "action_type": _best_discrete(logit["action_type"]),
        "action_args": logit["action_args"]["mu"],
    }


def _log_prob_hybrid(logit: Any, action: Any) -> np.ndarray:
    of_type = acting.categorical_log_prob(logit["action_type"], action["action_type"])
    return of_type + _log_prob_continuous(logit["action_args"], action["action_args"])


def _log_prob_entropy_hybrid(logit: Any, action: Any) -> tuple[Tensor, Tensor]:
    """Type and arguments are drawn independently, so log-probabilities and entropies add up."""
    of_type = categorical_log_prob_entropy(logit["action_type"], action["action_type"])
    of_args = _log_prob_entropy_continuous(logit["action_args"], action["action_args"])
    return of_type[0] + of_args[0], of_type[1] + of_args[1]


ACTION_KINDS = {
    "discrete": ActionKind(
        sample_categorical,
        _best_discrete,
        acting.categorical_log_prob,
        categorical_log_prob_entropy,
    ),
    "multi_discrete": ActionKind(
        _sample_multi, _best_multi, _log_prob_multi, _log_prob_entropy_multi
    ),
    "continuous": ActionKind(
        _sample_continuous,
        _best_continuous,
        _log_prob_continuous,
        _log_prob_entropy_continuous,
    ),
    "hybrid": ActionKind(_sample_hybrid, _best_hybrid, _log_prob_hybrid, _log_prob_entropy_hybrid),
}


def action_kind(action_space: str, action_shape: Any) -> ActionKind:
    """Kind that the config means: 'discrete' is several actions where the shape lists several."""
    several = isinstance(action_shape, Sequence) and len(action_shape) > 1
    if action_space == "discrete" and several:
        return ACTION_KINDS["multi_discrete"]
    return ACTION_KINDS[action_space]


def masked_logits(output: dict[str, Any]) -> Any:
    """Logits of a network's output, kept low where its 'action_mask' allows no action.

    Works for arrays and tensors; of a hybrid action the type is masked.
    """
    logit, mask = output["logit"], output.get("action_mask")
    if isinstance(logit, list):
        logit = tuple(logit)
    if mask is None:
        return logit
    if isinstance(logit, dict) and "action_type" in logit:
        return {**logit, "action_type": masked(logit["action_type"], mask)}
    if isinstance(logit, (dict, tuple)):
        raise ConfigError(
            "the env gives an action_mask, which is for one discrete action or the type of a "
            "hybrid one; leave it out of the observation"
        )
    return masked(logit, mask)


def hybrid_action(
    output: dict[str, Any], *, eps: float, sigma: float, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Explore, in both parts of the action, with a network's values of types and arguments."""
    return acting.hybrid_epsilon_greedy(
        masked_logits(output),
        output["action_args"],
        eps=eps,
        sigma=sigma,
        rng=rng,
        allowed=output.get("action_mask"),
    )


def best_hybrid_action(output: dict[str, Any]) -> dict[str, np.ndarray]:
    kind = masked_logits(output).argmax(axis=-1)
    return {"action_type": kind, "action_args": output["action_args"]}
