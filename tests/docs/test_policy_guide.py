"""The guide that writes DQN step by step: a network, a loss, and every method of a policy."""

from __future__ import annotations

import inspect
from copy import deepcopy
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from easydict import EasyDict
from torch import nn

from ding.entry import serial_pipeline
from ding.envs import DingEnvWrapper
from ding.model import model_wrap
from ding.policy import Policy, create_policy, register_policy
from ding.rl_utils import epsilon_greedy, q_nstep_td_data, q_nstep_td_error
from ding.rl_utils.adder import get_nstep_return_data, get_train_sample
from ding.torch_utils import Adam
from ding.utils.data import default_collate, default_decollate
from ding.utils.registry import Registry
from dizoo.classic_control.cartpole.config.cartpole_dqn_config import create_config, main_config
from dizoo.classic_control.cartpole.envs import CartPoleEnv


class FCDQN(nn.Module):
    """A network of the user's own: observations in, a dict with `logit` out."""

    def __init__(self, input_dim: int, action_dim: int, hidden_dim_list: tuple = (64, 64)) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for dim in hidden_dim_list:
            layers += [nn.Linear(input_dim, dim), nn.ReLU()]
            input_dim = dim
        self.main = nn.Sequential(*layers)
        self.pred = nn.Linear(input_dim, action_dim)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"logit": self.pred(self.main(x))}


class GuideDQNPolicy(Policy):
    """DQN with nothing inherited but the frame."""

    config: ClassVar[dict[str, Any]] = dict(
        type="guide_dqn",
        on_policy=False,
        nstep=1,
        discount_factor=0.97,
        learn=dict(
            update_per_collect=3, batch_size=64, learning_rate=0.001, target_update_freq=100
        ),
        collect=dict(n_sample=8, unroll_len=1),
        other=dict(eps=dict(type="exp", start=0.95, end=0.1, decay=10000)),
    )

    def default_model(self) -> tuple[str, list[str]]:
        return "dqn", ["ding.model.dqn"]

    def _init_learn(self) -> None:
        self._optimizer = Adam(self._model.parameters(), lr=self._cfg.learn.learning_rate)
        self._gamma, self._nstep = self._cfg.discount_factor, self._cfg.nstep
        self._target_model = model_wrap(
            self._model,
            wrapper_name="target",
            update_type="assign",
            update_kwargs={"freq": self._cfg.learn.target_update_freq},
        )
        self._learn_model = model_wrap(self._model, wrapper_name="argmax_sample")
        self._learn_model.train()
        self._learn_model.reset()
        self._target_model.reset()

    def _forward_learn(self, data: Any) -> dict[str, Any]:
        batch = default_collate(data)
        reward = batch["reward"]
        if reward.dim() == 1:
            reward = reward.unsqueeze(1)
        assert reward.shape == (len(data), self._nstep)
        q_value = self._learn_model.forward(batch["obs"])["logit"]
        with torch.no_grad():
            target_q_value = self._target_model.forward(batch["next_obs"])["logit"]
            target_q_action = self._learn_model.forward(batch["next_obs"])["action"]
        data_n = q_nstep_td_data(
            q_value,
            target_q_value,
            batch["action"],
            target_q_action,
            reward.permute(1, 0).contiguous(),
            batch["done"],
            batch.get("weight"),
        )
        loss, _ = q_nstep_td_error(data_n, self._gamma, nstep=self._nstep)
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()
        self._target_model.update(self._learn_model.state_dict())
        return {"cur_lr": self._optimizer.defaults["lr"], "total_loss": loss.item()}

    def _init_collect(self) -> None:
        self._unroll_len = self._cfg.collect.unroll_len
        self._collect_model = model_wrap(self._model, wrapper_name="eps_greedy_sample")
        self._collect_model.reset()

    def _forward_collect(self, data: Any, eps: float = 0.0) -> dict[int, Any]:  # type: ignore[override]
        obs = default_collate(list(data.values()))
        with torch.no_grad():
            output = self._collect_model.forward(obs, eps=eps)
        return dict(zip(data, default_decollate(output), strict=True))

    def _get_train_sample(self, data: Any) -> Any:
        data = get_nstep_return_data(data, self._cfg.nstep, gamma=self._cfg.discount_factor)
        return get_train_sample(data, self._unroll_len)

    def _process_transition(self, obs: Any, policy_output: Any, timestep: Any) -> Any:
        transition = {
            "obs": obs,
            "next_obs": timestep.obs,
            "action": policy_output["action"],
            "reward": timestep.reward,
            "done": timestep.done,
        }
        return EasyDict(transition)

    def _init_eval(self) -> None:
        self._eval_model = model_wrap(self._model, wrapper_name="argmax_sample")
        self._eval_model.reset()

    def _forward_eval(self, data: Any) -> dict[int, Any]:
        obs = default_collate(list(data.values()))
        with torch.no_grad():
            output = self._eval_model.forward(obs)
        return dict(zip(data, default_decollate(output), strict=True))

    def _init_command(self) -> None:
        eps_cfg = self._cfg.other.eps
        self.epsilon_greedy = epsilon_greedy(
            eps_cfg.start, eps_cfg.end, eps_cfg.decay, eps_cfg.type
        )

    def _get_setting_collect(self, command_info: Any = None) -> dict[str, Any]:
        return {"eps": self.epsilon_greedy(command_info["envstep"])}


class RowGuideDQNPolicy(GuideDQNPolicy):
    """The same, but one transition at a time."""

    process_rows = True


register_policy("guide_dqn", GuideDQNPolicy)
register_policy("row_guide_dqn", RowGuideDQNPolicy)


def guide_config(policy: str = "guide_dqn", nstep: int = 1) -> list[dict]:
    main = deepcopy(main_config)
    main["exp_name"] = policy
    main["policy"]["nstep"] = nstep
    return [main, create_config | {"policy": dict(type=policy)}]


def test_own_network_in_the_built_in_policy() -> None:
    env = CartPoleEnv(cfg={})
    model = FCDQN(env.observation_space.shape[0], int(env.action_space.n))
    before = deepcopy(model.state_dict())
    policy = serial_pipeline([main_config, create_config], model=model, max_env_step=200)
    assert policy._model is model
    assert any((before[name] != value).any() for name, value in model.state_dict().items())


@pytest.mark.parametrize("nstep", [1, 3])
def test_policy_written_step_by_step(directory: Path, nstep: int) -> None:
    policy = serial_pipeline(guide_config(nstep=nstep), seed=0, max_env_step=300)
    assert isinstance(policy, GuideDQNPolicy) and policy._cfg.nstep == nstep
    assert (directory / "guide_dqn/ckpt/ckpt_best.pth.tar").is_file()


def test_rows_and_columns_give_the_same_samples() -> None:
    returns = [
        serial_pipeline(guide_config(name), seed=0, max_env_step=200)._model.state_dict()
        for name in ("guide_dqn", "row_guide_dqn")
    ]
    for name, value in returns[0].items():
        torch.testing.assert_close(value, returns[1][name], rtol=0, atol=0)


@pytest.mark.learning
def test_policy_written_step_by_step_learns(directory: Path) -> None:
    config = guide_config()
    config[0]["env"]["stop_value"] = 120
    serial_pipeline(config, seed=0, max_env_step=6000)
    assert '"stop": true' in (directory / "guide_dqn/result.json").read_text()


def test_policy_by_name_and_its_modes() -> None:
    cfg = GuideDQNPolicy.default_config()
    cfg.model = dict(obs_shape=4, action_shape=2)
    policy = create_policy(cfg)
    assert isinstance(policy, GuideDQNPolicy)
    out = policy.eval_mode.forward({3: torch.zeros(4), 5: torch.ones(4)})
    assert list(out) == [3, 5] and out[3]["action"].shape == ()
    mode = policy.learn_mode
    assert isinstance(mode, tuple) and {"forward", "state_dict"} <= set(mode._fields)


def test_loss_of_the_guide() -> None:
    assert q_nstep_td_data._fields == (
        *("q", "next_n_q", "action", "next_n_action", "reward", "done", "weight"),
    )
    assert list(inspect.signature(q_nstep_td_error).parameters)[:3] == ["data", "gamma", "nstep"]
    data = q_nstep_td_data(
        q=torch.tensor([[1.0, 2.0]]),
        next_n_q=torch.tensor([[3.0, 4.0]]),
        action=torch.tensor([1]),
        next_n_action=torch.tensor([0]),
        reward=torch.tensor([[1.0], [2.0]]),
        done=torch.tensor([0.0]),
        weight=None,
    )
    loss, per_sample = q_nstep_td_error(data, gamma=0.5, nstep=2)
    # 1 + 0.5 * 2 + 0.25 * 3 = 2.75 against 2
    assert loss.item() == pytest.approx(0.75**2) and per_sample.tolist() == [0.75**2]


def test_env_setting_passed_to_the_pipeline() -> None:
    """Class and configs of the envs from the caller instead of from the config."""
    cfgs = [{"env_id": "CartPole-v1", "max_episode_steps": 20}] * 2
    config = deepcopy(main_config)
    config["env"] |= dict(evaluator_env_num=2, n_evaluator_episode=2)
    setting = (lambda cfg: DingEnvWrapper(cfg=cfg), cfgs, cfgs)
    policy = serial_pipeline([config, create_config], env_setting=setting, max_env_step=100)
    assert policy.cfg.collect.n_sample == 8


def test_a_class_without_a_source_file_is_listed_too() -> None:
    registry = Registry("toy")
    registry.register("typed_in")(type("TypedIn", (), {"__module__": "nowhere"}))
    assert registry.query_details() == {"typed_in": ("?", 0)}
