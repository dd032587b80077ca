"""The gradient steps of soft actor-critic with their gradients written out.

They are those of `SACPolicy` for its usual model on a CPU, where autograd's records of so many
small operations take an eighth of the time.

Letters in shapes: B batch, A dimensions of the action.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ding.model.actor_critic import QAC
from ding.model.encoder import as_float
from ding.model.head import LOG_SIGMA_MAX, LOG_SIGMA_MIN, ReparameterizationHead
from ding.policy.critics import squared_td_loss
from ding.torch_utils import Adam
from ding.torch_utils.by_hand import Gradients, Perceptron, affine_of, hidden_of, stack_of
from ding.torch_utils.distribution import tanh_gaussian_sample
from ding.utils.batch import Batch

Result = tuple[Tensor, dict[str, Tensor]]


class SACByHand:
    """`critic_step` and `actor_step`, each a batch -> (loss, metrics) as of a `GradientStep`."""

    def __init__(
        self,
        actor: GaussianActor,
        critics: Perceptron,
        target_critics: Perceptron,
        *,
        critic_optimizer: Adam,
        actor_optimizer: Adam,
    ) -> None:
        self._actor, self._critics, self._target_critics = actor, critics, target_critics
        self._critic_optimizer, self._actor_optimizer = critic_optimizer, actor_optimizer

    @torch.no_grad()
    def critic_step(self, batch: Batch) -> Result:
        next_obs = as_float(batch["next_obs"])
        next_action, log_prob, _ = self._actor.forward(next_obs, batch["next_noise"])
        next_q = self._target_critics.forward(_both(next_obs, next_action))[-1].squeeze(-1)
        next_value = next_q.amin(dim=0) - batch["alpha"] * log_prob
        target = batch["reward"] + batch["discount"] * next_value
        seen = self._critics.forward(_both(as_float(batch["obs"]), batch["action"]))
        q, weight = seen[-1].squeeze(-1), batch.get("weight")  # (2, B)
        loss, metrics = squared_td_loss(q, target, weight)
        slope = (q - target) * (2.0 / len(target))
        self._critics.backward(seen, (slope if weight is None else slope * weight).unsqueeze(-1))
        self._critic_optimizer.step_written()
        return loss, metrics

    @torch.no_grad()
    def actor_step(self, batch: Batch) -> Result:
        obs, alpha = as_float(batch["obs"]), batch["alpha"]
        action, log_prob, seen_by_actor = self._actor.forward(obs, batch["noise"])
        seen = self._critics.forward(_both(obs, action))
        q, lower = seen[-1].squeeze(-1).min(dim=0)
        n, n_action = action.shape
        slope = torch.zeros_like(seen[-1]).scatter_(0, lower.view(1, n, 1), -1.0 / n)
        by_action = self._critics.input_gradient(seen, slope).sum(dim=0)[:, -n_action:]
        self._actor.backward(seen_by_actor, by_action, by_log_prob=alpha / n)
        self._actor_optimizer.step_written()
        return (alpha * log_prob - q).mean(), {"entropy": -log_prob.mean()}


class GaussianActor:
    """tanh of a Gaussian whose mean and log sigma are linear in common features."""

    def __init__(self, features: Perceptron, head: ReparameterizationHead, into: Gradients) -> None:
        self._features = features
        self._mu, self._log_sigma = affine_of(head.mu, into), affine_of(head.log_sigma_layer, into)

    def forward(self, obs: Tensor, noise: Tensor) -> tuple[Tensor, Tensor, Any]:
        """Actions (B, A), log-probabilities (B,), and what `backward` wants to see again."""
        seen = self._features.forward(obs)
        free = self._log_sigma.forward(seen[-1])
        sigma = F.hardtanh(free, LOG_SIGMA_MIN, LOG_SIGMA_MAX).exp()
        action, log_prob = tanh_gaussian_sample(self._mu.forward(seen[-1]), sigma, noise)
        return action, log_prob, (seen, free, sigma * noise, action)

    def backward(self, seen_before: Any, by_action: Tensor, *, by_log_prob: Tensor) -> None:
        """From the gradients by the actions (B, A) and by each log-probability, which is one."""
        seen, free, shift, action = seen_before
        # With u = mu + shift: d action / du = 1 - action^2, and d log_prob / du = 2 action.
        by_mu = torch.addcmul(by_action - by_action * action * action, by_log_prob, action, value=2)
        # shift is sigma times noise, so its derivative by log sigma; log_prob has a - log sigma.
        by_log_sigma = by_mu * shift - by_log_prob
        by_free = torch.ops.aten.hardtanh_backward(by_log_sigma, free, LOG_SIGMA_MIN, LOG_SIGMA_MAX)
        self._mu.backward(seen[-1], by_mu)
        self._log_sigma.backward(seen[-1], by_free)
        by_features = self._mu.input_gradient(by_mu).add_(self._log_sigma.input_gradient(by_free))
        self._features.backward(seen, by_features)


def _both(obs: Tensor, action: Tensor) -> Tensor:
    """Inputs of the two critics, which are the same."""
    x = torch.cat([obs, action], dim=-1)
    return x.expand(2, *x.shape)


def sac_by_hand(model: nn.Module, target: nn.Module, critic: Adam, actor: Adam) -> SACByHand | None:
    """`SACByHand` of this model and its target, or None if that is not what it is written for."""
    if type(model) is not QAC or type(target) is not QAC or model.critic_encoder is not None:
        return None
    parts = [*model.modules(), *target.modules()]
    if any(part._forward_hooks or part._forward_pre_hooks for part in parts):
        return None
    head, into = model.actor_head, {**critic.gradient_of, **actor.gradient_of}
    if type(head) is not ReparameterizationHead or not all(p.is_cpu for p in model.parameters()):
        return None
    if into.keys() != set(model.parameters()):  # Somebody has frozen a part.
        return None
    features = hidden_of(head.main, into)
    critics, targets = stack_of(model.critic_head, into), stack_of(target.critic_head, None)
    if features is None or critics is None or targets is None or head.bound_type is not None:
        return None
    return SACByHand(
        GaussianActor(features, head, into),
        critics,
        targets,
        critic_optimizer=critic,
        actor_optimizer=actor,
    )
