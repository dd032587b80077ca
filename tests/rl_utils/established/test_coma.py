import numpy as np
import pytest
import torch

from ding.rl_utils import coma_data, coma_error


def data(t=3, b=2, g=2, a=3, weight=None):
    generator = torch.Generator().manual_seed(0)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    action = torch.randint(a, (t, b, g), generator=generator)
    return coma_data(
        normal(t, b, g, a), action, normal(t, b, g, a), normal(t, b, g, a), normal(t, b), weight
    )


def reference(d, gamma, lambda_):
    logit, action, q, target_q, reward = (x.numpy() for x in d[:5])
    pi = np.exp(logit) / np.exp(logit).sum(-1, keepdims=True)
    weight = np.ones(action.shape) if d.weight is None else d.weight.numpy()
    policy, value, entropy = [], [], []
    for t, b, g in np.ndindex(action.shape):
        i, w, p = action[t, b, g], weight[t, b, g], pi[t, b, g]
        advantage = q[t, b, g, i] - (p * q[t, b, g]).sum()
        policy.append(-np.log(p[i]) * advantage * w)
        entropy.append(-(p * np.log(p)).sum() * w)
    steps = len(action) - 1
    for b, g in np.ndindex(action.shape[1:]):
        taken = [target_q[t, b, g, action[t, b, g]] for t in range(steps + 1)]
        later = taken[-1]
        for t in reversed(range(steps)):
            later = reward[t, b] + gamma * ((1 - lambda_) * taken[t + 1] + lambda_ * later)
            value.append((q[t, b, g, action[t, b, g]] - later) ** 2 * weight[t, b, g])
    return [np.mean(part) for part in (policy, value, entropy)]


@pytest.mark.parametrize("weighted", [False, True])
def test_against_a_reference(weighted):
    weight = torch.rand(3, 2, 2).double() if weighted else None
    given = data(weight=weight)
    loss = coma_error(given, 0.9, 0.8)
    assert [part.item() for part in loss] == pytest.approx(reference(given, 0.9, 0.8))


def test_gradients_reach_policy_and_q_values_only_through_their_own_losses():
    given = data()
    logit, q = given.logit.requires_grad_(), given.q_value.requires_grad_()
    target = given.target_q_value.requires_grad_()
    loss = coma_error(given, 0.9, 0.8)
    found = torch.autograd.grad(loss.policy_loss, [q, target], allow_unused=True, retain_graph=True)
    assert found == (None, None)
    assert torch.autograd.grad(loss.q_value_loss, [target], allow_unused=True) == (None,)

    def losses(logit, q):
        found = coma_error(given._replace(logit=logit, q_value=q), 0.9, 0.8)
        return found.q_value_loss, found.entropy_loss

    assert torch.autograd.gradcheck(losses, (logit, q))
