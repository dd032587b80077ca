import numpy as np
import torch

from ding.rl_utils import compute_q_retraces


def trajectory(steps=5, width=2, actions=3):
    rng = np.random.default_rng(0)
    q, value = (
        rng.standard_normal((steps + 1, width, actions)),
        rng.standard_normal((steps + 1, width)),
    )
    reward, action = rng.standard_normal((steps, width)), rng.integers(actions, size=(steps, width))
    alive = (rng.random((steps, width)) > 0.3).astype(float)
    return q, value[..., None], reward, action, alive, 2 * rng.random((steps, width, actions))


def reference(q, value, reward, action, alive, ratio, gamma):
    out = value.copy()
    for t in reversed(range(len(reward))):
        for b in range(reward.shape[1]):
            ahead = value[t + 1, b, 0]
            if t + 1 < len(reward):
                a = action[t + 1, b]
                trace = min(1.0, ratio[t + 1, b, a])
                ahead += trace * (out[t + 1, b, 0] - q[t + 1, b, a])
            out[t, b, 0] = reward[t, b] + gamma * alive[t, b] * ahead
    return out


def test_against_a_reference():
    given = trajectory()
    found = compute_q_retraces(*(torch.tensor(x) for x in given), gamma=0.8)
    np.testing.assert_allclose(found, reference(*given, 0.8))


def test_on_policy_without_a_critic_is_the_return():
    reward, one = torch.ones(3, 1), torch.ones(3, 1, 1)
    zero, action = torch.zeros(4, 1, 1), torch.zeros(3, 1, dtype=torch.long)
    returns = compute_q_retraces(zero, zero, reward, action, torch.ones(3, 1), one, 0.5)
    assert returns.flatten().tolist() == [1.75, 1.5, 1.0, 0.0]


def test_gradients():
    q, value, reward, action, alive, ratio = (torch.tensor(x) for x in trajectory())

    def retraces(q, value, reward, ratio):
        return compute_q_retraces(q, value, reward, action, alive, ratio)

    inputs = [x.requires_grad_() for x in (q, value, reward, ratio)]
    assert torch.autograd.gradcheck(retraces, inputs)
