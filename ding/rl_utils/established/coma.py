"""Façade of counterfactual multi-agent policy gradients, https://arxiv.org/abs/1705.08926."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ding.rl_utils.established.td import generalized_lambda_returns, squared_error
from ding.rl_utils.td import at_action
from ding.torch_utils.distribution import categorical_log_prob_entropy


class coma_data(NamedTuple):  # noqa: N801 (established name)
    """T time, B batch, G agents, A actions: logits and Q-values (T, B, G, A), `reward` (T, B).

    `action` and `weight` are (T, B, G); `weight` None means ones.
    """

    logit: Tensor
    action: Tensor
    q_value: Tensor
    target_q_value: Tensor
    reward: Tensor
    weight: Tensor | None


class coma_loss(NamedTuple):  # noqa: N801 (established name)
    policy_loss: Tensor
    q_value_loss: Tensor
    entropy_loss: Tensor


def coma_error(data: coma_data, gamma: float, lambda_: float) -> coma_loss:
    """Losses of policy and Q-values, and the mean entropy (to be maximised).

    The advantage of an agent's action is against its own policy, the others' actions given. The
    last step only serves as bootstrap of the lambda returns.
    """
    logit, action, q_value, target_q_value, reward, weight = data
    weight = torch.ones_like(reward).unsqueeze(-1) if weight is None else weight
    q = at_action(q_value, action)
    with torch.no_grad():
        shared = reward[:-1].unsqueeze(-1).expand_as(action[:-1])
        target = at_action(target_q_value, action)
        return_ = generalized_lambda_returns(target, shared, gamma, lambda_)
        advantage = q - (torch.softmax(logit, dim=-1) * q_value).sum(dim=-1)
    q_value_loss = (squared_error(q[:-1], return_) * weight[:-1]).mean()
    log_prob, entropy = categorical_log_prob_entropy(logit, action)
    policy_loss = -(log_prob * advantage * weight).mean()
    return coma_loss(policy_loss, q_value_loss, (entropy * weight).mean())
