"""DAgger: the learner acts, the expert says what it would have done, all of it is learned from.

Ross et al. 2011, https://arxiv.org/abs/1011.0686
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from ding.data.demonstrations import Demonstrations, joined
from ding.entry.bc import Passes, cloning_policy, fitting
from ding.entry.demo import plain_transition, run_of
from ding.entry.demo_data import origin_of
from ding.entry.trained import load_weights, prepared
from ding.pipeline.run import ConfigLike, Run
from ding.policy import Policy
from ding.utils.batch import ByEnv, length, stack, stacked_of, take
from ding.utils.errors import ConfigError
from ding.utils.limits import limits_of
from ding.worker import EpisodeCollector

Expert = Policy | str | Path | Callable[[Any], Any]
Act = Callable[[np.ndarray, Any], Any]
"""Env ids and stacked observations to stacked actions."""


@dataclass(frozen=True)
class DaggerResult:
    policy: Policy
    stop: bool
    expert_labels: int
    """Observations that the expert was asked about."""
    demonstrations: Demonstrations
    """All that was learned from, with the expert's actions."""


def serial_pipeline_dagger(  # noqa: PLR0913 (everything the algorithm depends on)
    input_cfg: ConfigLike,
    expert: Expert,
    seed: int | None = None,
    *,
    n_round: int = 10,
    n_episode: int = 8,
    beta: float = 0.5,
    epochs_per_round: int = 4,
    model: nn.Module | None = None,
    max_iter: float = 1e6,
) -> DaggerResult:
    """Rounds of collecting, labelling and learning from everything so far.

    `expert`: a policy, the directory of its run, or a function from observation to action. In round
    i the expert acts with probability `beta ** i`, so alone in the first one.
    """
    if n_round < 1 or n_episode < 1 or epochs_per_round < 1 or not 0 <= beta <= 1:
        raise ConfigError(
            f"n_round = {n_round}, n_episode = {n_episode}, epochs_per_round = {epochs_per_round}: "
            f"at least 1 each; beta = {beta}: between 0 and 1"
        )
    with Run(input_cfg, seed, model=model, limits=limits_of(max_iter)) as run:
        policy = cloning_policy(run)
        act = _acting(expert, run.seed)
        run.begin()
        labelled = _Labelling(run, act)
        gathered: list[Demonstrations] = []
        for i in range(n_round):
            if run.finished:
                break
            gathered.append(labelled.collect(n_episode, beta**i))
            known = fitting(run, joined(gathered))
            policy.early_stop.clear()
            passes = Passes(run, known)
            if i == 0:
                passes.normalise()
            passes.run_all(epochs_per_round, run.learner.train_iter)
        run.finish()
    return DaggerResult(run.policy, run.stop, labelled.n_label, joined(gathered))


class _Labelling:
    """Episodes in the run's collecting envs whose actions are the expert's."""

    def __init__(self, run: Run, act: Act) -> None:
        self._run, self._act = run, act
        self._beta, self.n_label = 1.0, 0
        env = run.collector.env
        self._origin = origin_of(run.cfg, env, run.seed, "labelled by the expert")
        self._mode = run.policy.collect_mode._replace(
            forward=self._forward,
            process_transition=_with_label,
            get_train_sample=lambda steps: steps,
            get_attribute=_no_attribute,
        )
        # As the run's own collector its env steps are those of the run.
        run.collector = self._collector = EpisodeCollector(
            {}, policy=self._mode, env=env, exp_name=run.cfg.exp_name
        )

    def collect(self, n_episode: int, beta: float) -> Demonstrations:
        self._beta = beta
        n_episode = max(n_episode, self._collector.env.env_num)
        return Demonstrations.of_episodes(self._collector.collect(n_episode), self._origin)

    def _forward(self, data: Mapping[int, Any], **settings: Any) -> ByEnv:
        env_id, obs = stacked_of(data)
        labels = self._act(env_id, obs)
        self.n_label += len(env_id)
        _, output = stacked_of(self._run.policy.collect_mode.forward(data))
        action = np.asarray(output["action"])
        label = np.asarray(labels, dtype=action.dtype).reshape(action.shape)
        asked = self._run.policy.rng.random(len(env_id)) < self._beta
        executed = np.where(asked.reshape(-1, *[1] * (action.ndim - 1)), label, action)
        return ByEnv(env_id, {"action": executed, "label": label})


def _with_label(obs: Any, output: Any, timestep: Any) -> dict[str, Any]:
    return {**plain_transition(obs, output, timestep), "action": output["label"]}


def _no_attribute(name: str) -> Any:
    raise NotImplementedError(name)


def _acting(expert: Expert, seed: int) -> Act:
    if isinstance(expert, (str, Path)):
        expert = _loaded(Path(expert), seed)
    if isinstance(expert, Policy):
        return _policy_acting(expert)
    function = expert

    def act(env_id: np.ndarray, obs: Any) -> Any:
        return stack([function(take(obs, i)) for i in range(length(obs))])

    return act


def _policy_acting(policy: Policy) -> Act:
    mode = policy.eval_mode

    def act(env_id: np.ndarray, obs: Any) -> Any:
        return stacked_of(mode.forward(ByEnv(env_id, obs)))[1]["action"]

    return act


def _loaded(run: Path, seed: int) -> Policy:
    input_cfg, checkpoint = run_of(run, None)
    cfg, env, policy = prepared(input_cfg, seed, None, None, evaluating=True, most_envs=1)
    with env:
        load_weights(policy, policy.eval_mode, None, cfg, checkpoint)
    return policy
