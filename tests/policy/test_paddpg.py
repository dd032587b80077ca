"""PADDPG: what it does otherwise than DDPG (test_ddpg.py tests the rest of it)."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ding.utils.batch import ByEnv, Rows, stacked_of
from ding.utils.errors import ConfigError
from policy.continuous import batch_of, learn_critic_first, policy_of, shaken_target


@pytest.mark.parametrize("masked", [False, True])
@torch.no_grad()
def test_losses_by_hand(masked: bool) -> None:
    policy = policy_of("paddpg", learn=dict(noise=True))
    target_model, batch = shaken_target(policy), policy._batch(Rows(batch_of("paddpg")))
    policy._add_noise(batch)
    after = target_model(batch["next_obs"], mode="compute_actor")
    args = (after["action_args"] + batch["next_noise"]).clamp(-1, 1)
    never = torch.zeros(16, 3)
    if masked:
        never[torch.arange(16), after["logit"].argmax(dim=1)] = -torch.inf
    types = torch.eye(3)[(after["logit"] + never).argmax(dim=1)]
    next_q = target_model.critic_head(torch.cat([batch["next_obs"], args, types], dim=1))[:, 0]
    taken = torch.eye(3)[batch["action"]["action_type"]]
    x = torch.cat([batch["obs"], batch["action"]["action_args"], taken], dim=1)
    error = policy._model.critic_head(x)[:, 0] - (batch["reward"] + batch["discount"] * next_q)
    now = policy._model(batch["obs"], mode="compute_actor")
    types = (now["logit"] + never).softmax(dim=1)
    x = torch.cat([batch["obs"], now["action_args"], types], dim=1)
    wanted = -float(policy._model.critic_head(x).mean())
    if masked:
        mask = (never == 0).to(torch.int8)
        batch |= {key: {"obs": batch[key], "action_mask": mask} for key in ("obs", "next_obs")}
    assert float(policy._critic_loss(batch)[0]) == pytest.approx(float((error**2).mean()), rel=1e-5)
    assert float(policy._actor_loss(batch)[0]) == pytest.approx(wanted, abs=1e-6)


def test_finds_the_best_type_and_argument() -> None:
    """A bandit: type 1 pays most, if the second argument is -0.5."""
    policy, batch = policy_of("paddpg"), batch_of("paddpg", n=256)
    rng = np.random.default_rng(0)
    kind, args = rng.integers(0, 3, 256), rng.uniform(-1, 1, (256, 2)).astype(np.float32)
    batch["action"] = {"action_type": kind, "action_args": args}
    batch["reward"] = np.where(kind == 1, 1 - 2 * np.abs(args[:, 1] + 0.5), 0).astype(np.float32)
    batch["discount"][:] = batch["obs"][:] = 0
    learn_critic_first(policy, batch)
    data = ByEnv(np.arange(256), batch["obs"])
    action = stacked_of(policy.eval_mode.forward(data))[1]["action"]
    assert (action["action_type"] == 1).mean() > 0.95
    assert action["action_args"][:, 1].mean() == pytest.approx(-0.5, abs=0.2)


def test_acting() -> None:
    policy, batch = policy_of("paddpg"), batch_of("paddpg", n=64)
    data = ByEnv(np.arange(64), batch["obs"])
    with torch.no_grad():
        output = policy._model(torch.as_tensor(batch["obs"]), mode="compute_actor")
    action = stacked_of(policy.eval_mode.forward(data))[1]["action"]
    assert np.array_equal(action["action_type"], output["logit"].argmax(dim=1).numpy())
    assert np.allclose(action["action_args"], output["action_args"].numpy(), atol=1e-6)
    explored = stacked_of(policy.collect_mode.forward(data, eps=1.0))[1]["action"]
    assert len(set(explored["action_type"].tolist())) == 3
    assert policy.command_mode.get_setting_collect({"envstep": 0})["eps"] == pytest.approx(0.95)


def test_settings_must_make_sense() -> None:
    with pytest.raises(ConfigError, match="'ddpg'"):
        policy_of("paddpg", action_space="continuous")
    with pytest.raises(ConfigError, match=r"eps\.start"):
        policy_of("paddpg", other=dict(eps=dict(start=2.0)))
