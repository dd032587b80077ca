"""Names of the first releases on the parts of today: the established tutorial runs as printed.

`import nervex` (or `app_zoo`) makes the modules of the tutorial importable: `nervex.armor`,
`nervex.policy.common_policy`, `app_zoo.classic_control.cartpole.envs` and so on.
"""

from __future__ import annotations

import sys
from collections import deque, namedtuple
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any, ClassVar

import torch
from easydict import EasyDict
from torch import nn

from ding import envs, policy, rl_utils, torch_utils
from ding.config import deep_merge_dicts
from ding.config.tree import MISSING, lookup, plain_dict, put
from ding.entry import cli
from ding.entry import serial_pipeline as train
from ding.model import DQN, model_wrap
from ding.model.encoder import IMAGE_SIZES
from ding.rl_utils.adder import get_nstep_return_data, get_train_sample
from ding.utils.batch import ByEnv, stacked_of, tree_map
from ding.utils.data import default_collate
from ding.utils.errors import ConfigError
from ding.utils.registry import POLICY_REGISTRY
from ding.worker import NaiveReplayBuffer
from dizoo.classic_control.cartpole import envs as cartpole


class FCDiscreteNet(DQN):
    """Q network for vectors: `{'obs': (B, N)}`, or that tensor alone, to `{'logit': (B, A)}`."""

    sizes: tuple[int, ...] = (128, 256, 256)

    def __init__(
        self,
        obs_dim: int | Sequence[int],
        action_dim: int,
        hidden_dim_list: Sequence[int] = (),
        dueling: bool = False,
    ) -> None:
        super().__init__(obs_dim, action_dim, hidden_dim_list or self.sizes, dueling=dueling)

    def forward(self, x: Any, **head_options: Any) -> dict[str, Any]:
        return super().forward(x["obs"] if isinstance(x, Mapping) else x, **head_options)


class ConvDiscreteNet(FCDiscreteNet):
    """The same for images (C, H, W)."""

    sizes = tuple(IMAGE_SIZES)


class Armor:
    """A model at run time: plugins say how it samples actions, and it may have a target network."""

    def __init__(self, model: nn.Module) -> None:
        self._models: dict[str, Any] = {"main": model_wrap(model, wrapper_name="base")}
        self._with_grad = {"main": True, "target": True}

    def add_model(self, name: str, update_type: str, update_kwargs: dict[str, Any]) -> None:
        options: Any = dict(update_type=update_type, update_kwargs=update_kwargs)
        self._models[name] = model_wrap(self._models["main"], wrapper_name=name, **options)

    def add_plugin(self, name: str, plugin: str, **options: Any) -> None:
        """`grad` switches gradients on or off; any other is the name of a model wrapper."""
        if plugin == "grad":
            self._with_grad[name] = options["enable_grad"]
        else:
            self._models[name] = model_wrap(self._models[name], wrapper_name=plugin, **options)

    def forward(self, data: Any, **options: Any) -> dict[str, Any]:
        return self._forward("main", data, options)

    def target_forward(self, data: Any, **options: Any) -> dict[str, Any]:
        return self._forward("target", data, options)

    def _forward(self, name: str, data: Any, options: dict[str, Any]) -> dict[str, Any]:
        given = data if isinstance(data, Mapping) else {"obs": data}
        with torch.set_grad_enabled(self._with_grad[name]):
            output: dict[str, Any] = self._models[name].forward(given, **options)
        return output

    def mode(self, train: bool) -> None:
        self._models["main"].train(train)

    def target_mode(self, train: bool) -> None:
        self._models["target"].train(train)

    def reset(self, **options: Any) -> None:
        self._models["main"].reset(**options)

    def target_reset(self, **options: Any) -> None:
        self._models["target"].reset(**options)

    def target_update(self, state_dict: dict[str, Any], direct: bool = False) -> None:
        self._models["target"].update(state_dict, direct)

    def state_dict(self) -> dict[str, Any]:
        return {"model": self._models["main"].state_dict()}


class Adder:
    """Trajectories to training samples of `unroll_len` steps."""

    def __init__(self, use_cuda: bool, unroll_len: int) -> None:
        self._unroll_len = unroll_len

    def get_traj(self, data: deque[Any], traj_len: float | str, return_num: int = 0) -> list[Any]:
        """Take `traj_len` steps (or 'inf': all) from a cache, where the last `return_num` stay."""
        count = int(min(float(traj_len), len(data)))
        traj = [data.popleft() for _ in range(count)]
        return traj + [data[i] for i in range(min(return_num, len(data)))]

    def get_nstep_return_data(self, data: list[Any], nstep: int, traj_len: Any) -> list[Any]:
        return get_nstep_return_data(data, nstep)

    def get_train_sample(self, data: list[Any]) -> list[Any]:
        return get_train_sample(data, self._unroll_len)


class BufferManager:
    """Replay buffer: `BufferManager({'meta_maxlen': 10})`."""

    def __init__(self, cfg: Mapping[str, Any]) -> None:
        unknown = set(cfg) - {"meta_maxlen"}
        if unknown:
            raise ConfigError(
                f"BufferManager takes 'meta_maxlen', its size, and not {sorted(unknown)}; "
                "ding.worker has buffers with more settings"
            )
        self._buffer = NaiveReplayBuffer({"replay_buffer_size": cfg.get("meta_maxlen", 10000)})

    def push_data(self, data: Any) -> None:
        self._buffer.push(data)

    def sample(self, batch_size: int, cur_learner_iter: int = 0) -> Any:
        return self._buffer.sample(batch_size, cur_learner_iter)

    def count(self) -> int:
        return self._buffer.count()


def _manager(kind: Any, env_fn: Callable[..., Any], env_cfg: Sequence[Any], env_num: int) -> Any:
    if len(env_cfg) != env_num:
        raise ConfigError(f"env_num = {env_num}, but there are {len(env_cfg)} configs in env_cfg")
    return kind([partial(env_fn, cfg) for cfg in env_cfg], {})


BaseEnvManager = partial(_manager, envs.BaseEnvManager)
SubprocessEnvManager = partial(_manager, envs.AsyncSubprocessEnvManager)
SyncSubprocessEnvManager = partial(_manager, envs.SyncSubprocessEnvManager)

EnvInfo = namedtuple("EnvInfo", ["agent_num", "obs_space", "act_space"])
ElementInfo = namedtuple("ElementInfo", ["shape"])


class CartPoleEnv(cartpole.CartPoleEnv):
    """CartPole that says how large its observations and actions are."""

    def info(self) -> EnvInfo:
        observation, action = self.observation_space, self.action_space
        return EnvInfo(1, ElementInfo(observation.shape[0]), ElementInfo(int(action.n)))


class CommonPolicy(policy.Policy):
    """Base of policies that act by `forward(data_id, {'obs': ...})` and learn from a dict."""

    config: ClassVar[dict[str, Any]] = dict(
        on_policy=False,
        learn=dict(algo=dict(nstep=1, discount_factor=0.97, target_update_freq=100)),
        collect=dict(n_sample=8, traj_len="inf", unroll_len=1, algo=dict(nstep=1)),
        command=dict(eps=dict(type="exp", start=0.95, end=0.1, decay=10000)),
    )

    def _create_model_from_cfg(self, cfg: Any, model_type: type | None = None) -> nn.Module:
        raise NotImplementedError

    def _create_model(self, model: nn.Module | None) -> nn.Module:
        if model is not None:
            return model
        own = {k: v for k, v in self._cfg.model.items() if k not in ("obs_shape", "action_shape")}
        return self._create_model_from_cfg(EasyDict({**self._cfg, "model": own}))

    @property
    def _use_cuda(self) -> bool:
        return self._cuda

    def _get_nstep(self) -> int:
        nstep: int = self._cfg.collect.algo.nstep
        return nstep

    @property
    def learn_mode(self) -> policy.LearnMode:
        return super().learn_mode._replace(forward=self._learn_from_rows)

    def _learn_from_rows(self, data: Any) -> dict[str, Any]:
        batch = {"weight": None, **default_collate(data)}
        return self._forward_learn(batch)  # type: ignore[arg-type,return-value]

    @property
    def collect_mode(self) -> policy.CollectMode:
        return super().collect_mode._replace(
            forward=partial(self._act, self._forward_collect),
            get_train_sample=lambda steps: self._get_train_sample(deque(steps)),
        )

    @property
    def eval_mode(self) -> policy.EvalMode:
        return super().eval_mode._replace(forward=partial(self._act, self._forward_eval))

    def _act(self, forward: Any, data: Mapping[int, Any], **settings: Any) -> Mapping[int, Any]:
        for name, value in settings.items():
            setattr(self, f"_{name}", value)
        env_id, obs = stacked_of(data)
        output = forward(env_id.tolist(), {"obs": tree_map(torch.as_tensor, obs)})
        return ByEnv(env_id, {key: value.detach().numpy() for key, value in output.items()})


def register_policy(name: str, cls: type[policy.Policy]) -> None:
    """Make a policy known by a name, also in the place of one that is built in."""
    POLICY_REGISTRY.register(name, force=True)(cls)


def q_nstep_td_error(*args: Any, **kwargs: Any) -> torch.Tensor:
    """The loss alone."""
    loss: torch.Tensor = rl_utils.q_nstep_td_error(*args, **kwargs)[0]
    return loss


_PLACES = {
    "env.env_type": "create.env.type",
    "env.import_names": "create.env.import_names",
    "env.env_manager_type": "create.env_manager.type",
    "env.actor_env_num": "env.collector_env_num",
    "policy.policy_type": "create.policy.type",
    "policy.import_names": "create.policy.import_names",
    "policy.use_cuda": "policy.cuda",
    "policy.learn.train_step": "policy.learn.update_per_collect",
    "replay_buffer.meta_maxlen": "policy.other.replay_buffer.replay_buffer_size",
    "actor.n_sample": "policy.collect.n_sample",
    "evaluator.n_episode": "env.n_evaluator_episode",
    "evaluator.eval_freq": "policy.eval.evaluator.eval_freq",
    "evaluator.stop_val": "env.stop_value",
}
_BUILT_IN_PLACES = {
    "policy.model.obs_dim": "policy.model.obs_shape",
    "policy.model.action_dim": "policy.model.action_shape",
    "policy.model.hidden_dim_list": "policy.model.encoder_hidden_size_list",
    "policy.learn.algo.nstep": "policy.nstep",
    "policy.learn.algo.discount_factor": "policy.discount_factor",
    "policy.learn.algo.target_update_freq": "policy.learn.target_update_freq",
    "policy.collect.algo.nstep": "policy.nstep",
    "policy.collect.traj_len": None,
    "policy.command.eps": "policy.other.eps",
}
"""The same for policies that are no `CommonPolicy`; None: what follows from other settings now."""
_FORMER_TYPES = {"aynsc_subprocess": "async_subprocess"}


def configs_of(config: Mapping[str, Any], policy_fn: Any = None) -> list[dict[str, Any]]:
    """main_config and create_config of a single config of the first releases."""
    main = plain_dict(config)
    kind = lookup(main, "policy.policy_type")
    if policy_fn is not None:
        kind = "own" if kind is MISSING else kind
        register_policy(kind, policy_fn)
        put(main, "policy.policy_type", kind)
    if kind is MISSING:
        raise ConfigError("the config names no policy: set policy.policy_type, like 'dqn'")
    is_common = issubclass(POLICY_REGISTRY.get(kind), CommonPolicy)
    places = _PLACES if is_common else {**_PLACES, **_BUILT_IN_PLACES}
    moved: dict[str, Any] = {"create": {"env_manager": {"type": "base"}}}
    for old, new in places.items():
        value = lookup(main, old)
        if value is not MISSING:
            parent, _, key = old.rpartition(".")
            lookup(main, parent).pop(key)
            if new is not None:
                put(moved, new, value)
    create = moved.pop("create")
    for part in create.values():
        part["import_names"] = list(map(_today, part.get("import_names", [])))
    manager = create["env_manager"]
    manager["type"] = _FORMER_TYPES.get(manager["type"], manager["type"])
    return [deep_merge_dicts(_without_empty(main), moved), create]


def _today(module: str) -> str:
    """Its module today: those of `app_zoo` are in `dizoo`."""
    return module.replace("app_zoo.", "dizoo.").replace("nervex.", "ding.")


def _without_empty(tree: dict[str, Any]) -> dict[str, Any]:
    kept = {k: _without_empty(v) if isinstance(v, dict) else v for k, v in tree.items()}
    return {key: value for key, value in kept.items() if value != {}}


def serial_pipeline(
    config: Mapping[str, Any], seed: int = 0, policy_fn: Any = None, **options: Any
) -> policy.Policy:
    """Train by a single config; `policy_fn` is a policy class of your own."""
    return train(configs_of(config, policy_fn), seed, **options)


cartpole_dqn_default_config = EasyDict(
    exp_name="cartpole_dqn",
    env=dict(
        env_manager_type="base",
        import_names=["app_zoo.classic_control.cartpole.envs.cartpole_env"],
        env_type="cartpole",
        actor_env_num=8,
        evaluator_env_num=5,
    ),
    policy=dict(
        use_cuda=False,
        policy_type="dqn",
        on_policy=False,
        model=dict(obs_dim=4, action_dim=2, hidden_dim_list=[128, 128, 64]),
        learn=dict(
            train_step=3,
            batch_size=64,
            learning_rate=0.001,
            algo=dict(target_update_freq=100, discount_factor=0.97, nstep=1),
        ),
        collect=dict(traj_len="inf", unroll_len=1, algo=dict(nstep=1)),
        command=dict(eps=dict(type="exp", start=0.95, end=0.1, decay=10000)),
    ),
    replay_buffer=dict(meta_maxlen=20000),
    actor=dict(n_sample=8),
    evaluator=dict(n_episode=5, eval_freq=200, stop_val=195),
)

_OPTIONS = {
    "--actor_host": "--collector-host",
    "-ah": "--collector-host",
    "--learner_host": "--learner-host",
    "--coordinator_host": "--coordinator-host",
    "-ch": "--coordinator-host",
}


def main(argv: Sequence[str] | None = None) -> int:
    """The command `nervex`: `ding` with the options of the first releases."""
    words = sys.argv[1:] if argv is None else argv
    return cli.main([_OPTIONS.get(word, word) for word in words])


_MODULES: dict[str, dict[str, Any]] = {
    "armor": dict(Armor=Armor),
    "data": dict(BufferManager=BufferManager),
    "entry": dict(serial_pipeline=serial_pipeline),
    "model": dict(FCDiscreteNet=FCDiscreteNet, ConvDiscreteNet=ConvDiscreteNet),
    "policy": dict(create_policy=policy.create_policy, register_policy=register_policy),
    "policy.base_policy": dict(Policy=policy.Policy, register_policy=register_policy),
    "policy.common_policy": dict(CommonPolicy=CommonPolicy),
    "rl_utils": {
        **{name: getattr(rl_utils, name) for name in rl_utils.__all__},
        "Adder": Adder,
        "q_nstep_td_error": q_nstep_td_error,
    },
    "torch_utils": {name: getattr(torch_utils, name) for name in torch_utils.__all__},
    "worker": {},
    "worker.actor": {},
    "worker.actor.env_manager": dict(
        BaseEnvManager=BaseEnvManager,
        SubprocessEnvManager=SubprocessEnvManager,
        SyncSubprocessEnvManager=SyncSubprocessEnvManager,
    ),
}
_ZOO_MODULES: dict[str, dict[str, Any]] = {
    "classic_control": {},
    "classic_control.cartpole": {},
    "classic_control.cartpole.entry": dict(cartpole_dqn_default_config=cartpole_dqn_default_config),
    "classic_control.cartpole.envs": dict(CartPoleEnv=CartPoleEnv),
}


def _add_modules(package: str, modules: Mapping[str, Mapping[str, Any]]) -> None:
    for name, content in modules.items():
        module = ModuleType(f"{package}.{name}")
        module.__dict__.update(content, __package__=module.__name__)
        sys.modules[module.__name__] = module


_add_modules("nervex", _MODULES)
_add_modules("app_zoo", _ZOO_MODULES)
