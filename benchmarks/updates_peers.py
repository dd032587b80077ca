"""Peers' sides of `updates`, run in the interpreter that has them. Prints one JSON line."""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks import work
from benchmarks.updates_work import (
    CALL,
    CLIP_NORM,
    JOBS,
    N_ATOM,
    N_COSINE,
    N_QUANTILE,
    V_MAX,
    V_MIN,
    Columns,
    is_on_policy,
    measured,
    steps_of,
)
from benchmarks.work import Work


class Sb3:
    """Stable-Baselines3, and its contrib package for QR-DQN."""

    packages = ("stable-baselines3", "sb3-contrib")

    def __init__(self, name: str) -> None:
        self._job = job = JOBS[name]
        env_util: Any = import_module("stable_baselines3.common.env_util")
        env = env_util.make_vec_env(job.env_id, n_envs=job.n_env, seed=0)
        module: Any = import_module("sb3_contrib" if name == "qrdqn" else "stable_baselines3")
        options = sb3_options(name, job)
        make = getattr(module, name.upper())
        self._model = make("MlpPolicy", env, seed=0, device="cpu", gamma=work.GAMMA, **options)
        self._model._setup_learn(10**6, None)  # gives it its logger
        self._n_update, self._target = 0, sb3_target(self._model.policy)
        steps = steps_of(job)
        self._rollout = sb3_rollout(self._model, job, steps) if is_on_policy(job) else {}
        if not self._rollout:
            sb3_fill(self._model.replay_buffer, steps)

    def call(self) -> None:
        if not self._rollout:
            self._model.train(gradient_steps=CALL, batch_size=self._job.batch_size)
            self._copy_target_if_due()
            return
        buffer = self._model.rollout_buffer
        for name, array in self._rollout.items():  # using it changes its layout
            setattr(buffer, name, array)
        buffer.generator_ready = False
        zeros = np.zeros(self._job.n_env, bool)
        with torch.no_grad():
            obs = torch.as_tensor(self._rollout["observations"][-1])
            buffer.compute_returns_and_advantage(self._model.policy.predict_values(obs), zeros)
        self._model.train()

    def _copy_target_if_due(self) -> None:
        """Q-learning does this while it collects, once for so many updates."""
        self._n_update += CALL
        if self._target is not None and self._n_update % work.TARGET_FREQ < CALL:
            utils: Any = import_module("stable_baselines3.common.utils")
            utils.polyak_update(*(network.parameters() for network in self._target), 1.0)

    def optimizers(self) -> Iterable[Any]:
        model = self._model
        holders = [getattr(model, name, None) for name in ("actor", "critic")]
        found = [holder.optimizer for holder in holders if hasattr(holder, "optimizer")]
        alpha = getattr(model, "ent_coef_optimizer", None)
        return [*found, *([alpha] if alpha is not None else [])] or [model.policy.optimizer]


def sb3_target(policy: Any) -> tuple[Any, Any] | None:
    """Q network and target, where `train` leaves the copying to others."""
    for name in ("q_net", "quantile_net"):
        if hasattr(policy, name):
            return getattr(policy, name), getattr(policy, f"{name}_target")
    return None


def sb3_options(name: str, job: Work) -> dict[str, Any]:
    hidden, net = list(job.hidden), dict(net_arch=list(job.hidden))
    if is_on_policy(job):
        policy = dict(net_arch=dict(pi=hidden, vf=hidden), activation_fn=nn.Tanh)
        own: dict[str, Any] = (
            dict(n_epochs=job.epochs, batch_size=job.batch_size)
            if name == "ppo"
            else dict(use_rms_prop=False)
        )
        return own | dict(
            learning_rate=job.learning_rate,
            n_steps=job.rollout // job.n_env,
            gae_lambda=work.GAE_LAMBDA,
            ent_coef=work.ENTROPY_WEIGHT,
            policy_kwargs=policy,
        )
    options: dict[str, Any] = dict(
        learning_rate=job.learning_rate,
        buffer_size=work.BUFFER_SIZE,
        batch_size=job.batch_size,
        policy_kwargs=net,
    )
    if name == "dqn":
        return options | dict(max_grad_norm=work.DQN_CLIP_NORM)
    if name == "qrdqn":
        return options | dict(policy_kwargs=dict(**net, n_quantiles=N_QUANTILE))
    return options | dict(tau=work.TARGET_THETA)


def sb3_fill(buffer: Any, steps: Columns) -> None:
    buffer.observations[:, 0], buffer.next_observations[:, 0] = steps["obs"], steps["next_obs"]
    buffer.actions[:, 0] = steps["action"].reshape(len(steps["obs"]), -1)
    buffer.rewards[:, 0], buffer.dones[:, 0] = steps["reward"], steps["terminated"]
    buffer.full = True


def sb3_rollout(model: Any, job: Work, steps: Columns) -> Columns:
    """The arrays of its rollout buffer, (steps, envs, ...) each, as collecting fills them."""
    by_time = {name: _by_time(column, job) for name, column in steps.items()}
    starts = np.zeros_like(by_time["reward"])
    starts[1:] = by_time["terminated"][:-1]
    with torch.no_grad():
        obs, action = (torch.as_tensor(steps[name]) for name in ("obs", "action"))
        value, log_prob, _ = model.policy.evaluate_actions(obs, action)
    model.rollout_buffer.full = True
    return {
        "observations": by_time["obs"],
        "actions": by_time["action"].reshape(*starts.shape, -1),
        "rewards": by_time["reward"],
        "episode_starts": starts,
        "values": _by_time(value.numpy().ravel(), job),
        "log_probs": _by_time(log_prob.numpy(), job),
        "advantages": np.zeros_like(starts),
    }


def _by_time(column: np.ndarray, job: Work) -> np.ndarray:
    by_env = column.reshape(job.n_env, -1, *column.shape[1:])
    return np.ascontiguousarray(by_env.swapaxes(0, 1))


class Tianshou:
    packages = ("tianshou",)

    def __init__(self, name: str) -> None:
        self._job = job = JOBS[name]
        self._algorithm = tianshou_algorithm(name, job)
        self._algorithm.policy.is_within_training_step = True  # as its trainer says
        fill = tianshou_rollout if is_on_policy(job) else tianshou_buffer
        self._buffer = fill(job, steps_of(job))

    def call(self) -> None:
        job, buffer = self._job, self._buffer
        if is_on_policy(job):
            self._algorithm.update(buffer=buffer, batch_size=job.batch_size, repeat=job.epochs)
            return
        for _ in range(CALL):
            self._algorithm.update(buffer=buffer, sample_size=job.batch_size)

    def optimizers(self) -> Iterable[Any]:
        found = [optimizer._optim for optimizer in self._algorithm._optimizers]
        alpha = getattr(self._algorithm, "alpha", None)
        return [*found, *([alpha._optim] if alpha is not None else [])]


def tianshou_buffer(job: Work, steps: Columns) -> Any:
    data: Any = import_module("tianshou.data")
    done = steps["terminated"]
    return data.ReplayBuffer.from_data(
        obs=steps["obs"],
        act=steps["action"],
        rew=steps["reward"],
        terminated=done,
        truncated=np.zeros_like(done),
        done=done,
        obs_next=steps["next_obs"],
    )


def tianshou_rollout(job: Work, steps: Columns) -> Any:
    data: Any = import_module("tianshou.data")
    buffer = data.VectorReplayBuffer(job.rollout, job.n_env)
    by_time = {name: _by_time(column, job) for name, column in steps.items()}
    for at in range(job.rollout // job.n_env):
        row = {name: column[at] for name, column in by_time.items()}
        batch = data.Batch(
            obs=row["obs"],
            act=row["action"],
            rew=row["reward"].astype(float),
            terminated=row["terminated"],
            truncated=np.zeros_like(row["terminated"]),
            obs_next=row["next_obs"],
            info=data.Batch(),
        )
        buffer.add(batch, buffer_ids=np.arange(job.n_env))
    return buffer


def tianshou_algorithm(name: str, job: Work) -> Any:
    gymnasium: Any = import_module("gymnasium")
    env = gymnasium.make(job.env_id)
    optim: Any = import_module("tianshou.algorithm.optim")
    adam = optim.AdamOptimizerFactory(lr=job.learning_rate)
    if is_on_policy(job):
        return _tianshou_on_policy(name, job, env, adam)
    discrete = job.env_id == "CartPole-v1"
    return (_tianshou_q if discrete else _tianshou_continuous)(name, job, env, adam)


def _tianshou_q(name: str, job: Work, env: Any, adam: Any) -> Any:
    net: Any = import_module("tianshou.utils.net.common")
    discrete: Any = import_module("tianshou.utils.net.discrete")
    modelfree: Any = import_module(f"tianshou.algorithm.modelfree.{name}")
    shape = dict(state_shape=env.observation_space.shape, hidden_sizes=list(job.hidden))
    n_action, space = int(env.action_space.n), dict(action_space=env.action_space)
    own: dict[str, Any] = {}
    if name == "dqn":
        model = net.Net(**shape, action_shape=n_action)
        policy = modelfree.DiscreteQLearningPolicy(model=model, **space)
        own = dict(is_double=False)
    elif name == "c51":
        model = net.Net(**shape, action_shape=n_action, softmax=True, num_atoms=N_ATOM)
        support = dict(num_atoms=N_ATOM, v_min=V_MIN, v_max=V_MAX)
        policy = modelfree.C51Policy(model=model, **support, **space)
    elif name == "qrdqn":
        model = net.Net(**shape, action_shape=n_action, num_atoms=N_QUANTILE)
        policy = modelfree.QRDQNPolicy(model=model, **space)
        own = dict(num_quantiles=N_QUANTILE)
    else:
        model = discrete.ImplicitQuantileNetwork(
            preprocess_net=net.Net(**shape), action_shape=n_action, num_cosines=N_COSINE
        )
        names = ("sample_size", "online_sample_size", "target_sample_size")
        policy = modelfree.IQNPolicy(model=model, **dict.fromkeys(names, N_QUANTILE), **space)
        own = dict(num_quantiles=N_QUANTILE)
    common = dict(gamma=work.GAMMA, target_update_freq=work.TARGET_FREQ)
    return getattr(modelfree, name.upper())(policy=policy, optim=adam, **common, **own)


def _tianshou_on_policy(name: str, job: Work, env: Any, adam: Any) -> Any:
    algorithm: Any = import_module("tianshou.algorithm")
    reinforce: Any = import_module("tianshou.algorithm.modelfree.reinforce")
    net: Any = import_module("tianshou.utils.net.common")
    discrete: Any = import_module("tianshou.utils.net.discrete")

    def features() -> Any:
        shape = env.observation_space.shape
        return net.Net(state_shape=shape, hidden_sizes=list(job.hidden), activation=nn.Tanh)

    actor = discrete.DiscreteActor(
        preprocess_net=features(), action_shape=int(env.action_space.n), softmax_output=False
    )
    return getattr(algorithm, name.upper())(
        policy=reinforce.DiscreteActorPolicy(actor=actor, action_space=env.action_space),
        critic=discrete.DiscreteCritic(preprocess_net=features()),
        optim=adam,
        gamma=work.GAMMA,
        gae_lambda=work.GAE_LAMBDA,
        ent_coef=work.ENTROPY_WEIGHT,
        max_grad_norm=CLIP_NORM,
    )


def _tianshou_continuous(name: str, job: Work, env: Any, adam: Any) -> Any:
    net: Any = import_module("tianshou.utils.net.common")
    continuous: Any = import_module("tianshou.utils.net.continuous")
    modelfree: Any = import_module(f"tianshou.algorithm.modelfree.{name}")
    shape, size = env.observation_space.shape, dict(hidden_sizes=list(job.hidden))
    action: dict[str, Any] = dict(action_shape=env.action_space.shape)
    features = net.Net(state_shape=shape, **size)

    def critic() -> Any:
        both = net.Net(state_shape=shape, **action, **size, concat=True)
        return continuous.ContinuousCritic(preprocess_net=both)

    own: dict[str, Any] = {} if name == "ddpg" else dict(critic2=critic(), critic2_optim=adam)
    if name == "sac":
        normal = dict(unbounded=True, conditioned_sigma=True)
        actor = continuous.ContinuousActorProbabilistic(preprocess_net=features, **action, **normal)
        policy = modelfree.SACPolicy(actor=actor, action_space=env.action_space)
        own |= dict(alpha=modelfree.AutoAlpha(-1.0, 0.0, adam))
    else:
        ddpg: Any = import_module("tianshou.algorithm.modelfree.ddpg")
        actor = continuous.ContinuousActorDeterministic(preprocess_net=features, **action)
        policy = ddpg.ContinuousDeterministicPolicy(actor=actor, action_space=env.action_space)
    return getattr(modelfree, name.upper())(
        policy=policy,
        policy_optim=adam,
        critic=critic(),
        critic_optim=adam,
        tau=work.TARGET_THETA,
        gamma=work.GAMMA,
        **own,
    )


SIDES: dict[str, Any] = {"sb3": Sb3, "tianshou": Tianshou}


def main() -> None:
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("side", choices=tuple(SIDES))
    parser.add_argument("name", choices=tuple(JOBS))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--turns", action="store_true", help="take turns, see work.Turns")
    args = parser.parse_args()
    torch.set_num_threads(1)
    side = SIDES[args.side](args.name)
    found = measured(side, JOBS[args.name], args.quick, args.turns)
    versions = {p: version(p) for p in (*side.packages, "torch", "numpy")}
    print(json.dumps(found | {"versions": versions}))


if __name__ == "__main__":
    main()
