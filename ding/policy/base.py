"""Policy: the base of all algorithms, with modes, config, model, device and acting state.

An algorithm overrides `_init_*`, `_forward_*` and `_get_train_sample`; the rest is here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any, ClassVar

import numpy as np
import torch
from easydict import EasyDict
from torch import Tensor, nn

from ding.config.schema import build, deep_merge_dicts, default_config_of, to_easydict
from ding.model import create_model, parameters_of
from ding.policy.acting_state import ActingParts, ActingState
from ding.policy.config import PolicyConfig, check_buffer
from ding.policy.modes import CollectMode, CommandMode, EvalMode, LearnMode, single_steps
from ding.policy.needs import Needs
from ding.policy.normaliser import Normalisers, Statistics
from ding.policy.replay_columns import learnable
from ding.policy.user_rows import has_agents, with_discount, with_plain_numbers
from ding.torch_utils.lr_schedule import LrSchedule
from ding.utils.batch import Batch, Rows, columns_of, tree_map
from ding.utils.data.collate_fn import as_tensor
from ding.utils.errors import ConfigError
from ding.utils.memory import keep_freed_memory
from ding.utils.registry import MODEL_REGISTRY
from ding.utils.seed import new_generator

FIELDS = ("learn", "collect", "eval", "command")


class Policy:
    """Base of all algorithms; they declare a `config_class`, or a `config` dict of defaults."""

    config_class: ClassVar[type] = PolicyConfig
    config: ClassVar[dict[str, Any]] = {}
    action_kinds: ClassVar[tuple[str, ...] | None] = None
    """Kinds of action space that it can act in; None leaves that to the user."""
    keeps_to_masks: ClassVar[bool | None] = None
    """Whether it takes only actions that an `action_mask` allows; None leaves that to the user."""
    takes_other_rewards: ClassVar[bool | None] = None
    """Whether rewards of its samples may be replaced; None: if they are single steps."""
    process_rows: ClassVar[bool] = False
    """True: `_process_transition` wants one env at a time instead of stacked arrays."""

    def __init__(
        self,
        cfg: Mapping[str, Any],
        model: nn.Module | None = None,
        enable_field: Iterable[str] | None = None,
    ) -> None:
        self._cfg: EasyDict = to_easydict(deep_merge_dicts(self.default_config(), cfg))
        self.cfg: Any = build(self.config_class, self._cfg)
        self._on_policy: bool = self._cfg.on_policy
        self._cuda: bool = self._cfg.cuda
        self._device = self._pick_device()
        self._rng = new_generator()
        self._model = self._create_model(model).to(self._device)
        self._normalisers = Normalisers(self.cfg)
        self.acting_parts = ActingParts(model=self._model, **self._normalisers.parts)
        """All that acting needs: published, saved and loaded as one; algorithms add theirs."""
        self.learn_state: dict[str, Any] = {}
        """Parts that learning needs besides: optimizers, target networks, counters."""
        self._init_acting()
        asked = FIELDS if enable_field is None else tuple(enable_field)
        for field in asked:
            if field not in FIELDS:
                raise ValueError(f"enable_field has '{field}'; valid: {', '.join(FIELDS)}")
        # Learning first: its optimizers move the weights to where acting then finds them.
        self.fields = tuple(field for field in FIELDS if field in asked)
        for field in self.fields:
            getattr(self, f"_init_{field}")()
        self._lr_schedule = self._create_lr_schedule()
        if "learn" in self.fields:
            keep_freed_memory()

    @classmethod
    def default_config(cls) -> EasyDict:
        if cls is Policy:
            raise RuntimeError("Policy itself has no config; ask one of its subclasses")
        return default_config_of(cls)

    @classmethod
    def model_signature(cls, policy_cfg: Mapping[str, Any]) -> set[str] | None:
        """Valid keys of `policy.model`, or None if any may be (a model of the user's own)."""
        name = cls._model_name(policy_cfg)
        if name is None:
            return None
        return set(parameters_of(MODEL_REGISTRY.get(name)))

    @classmethod
    def expert_columns(cls, policy_cfg: Mapping[str, Any], steps: Batch) -> Batch:
        """Columns that it needs of an expert's steps and that only its own acting would give."""
        return {}

    @staticmethod
    def check_config(cfg: Any) -> None:
        """Refuse combinations that make no sense; called with the whole compiled config."""
        check_buffer(cfg)

    def _pick_device(self) -> torch.device:
        if self._cuda and not torch.cuda.is_available():
            raise ConfigError("policy.cuda = True, but there is no CUDA device; set it to False")
        return torch.device("cuda" if self._cuda else "cpu")

    # --- model ---------------------------------------------------------------------------------

    @classmethod
    def _model_name(cls, policy_cfg: Mapping[str, Any]) -> str | None:
        """Registered name of the model that fits these settings."""
        return None

    @classmethod
    def _model_defaults(cls, policy_cfg: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments of the model that the algorithm knows better than the model does."""
        return {}

    def default_model(self) -> tuple[str, list[str]]:
        """Name of the model to build from `policy.model`, and modules to import first."""
        name = self._model_name(self._cfg)
        if name is None:
            raise NotImplementedError(f"{type(self).__name__} has no default model; pass one")
        return name, []

    def _create_model(self, model: nn.Module | None) -> nn.Module:
        if model is None:
            settings = dict(self._cfg.model)
            if "type" not in settings:
                name, imports = self.default_model()
                defaults = self._model_defaults(self._cfg)
                settings = {**defaults, **settings, "type": name, "import_names": imports}
            model = create_model(settings)
        if not isinstance(model, nn.Module):
            hint = f"; make one: {model.__name__}(...)" if isinstance(model, type) else ""
            raise ConfigError(
                f"model = {model!r}: must be a torch.nn.Module, not {type(model).__name__}{hint}"
            )
        return model

    def _create_lr_schedule(self) -> LrSchedule | None:
        """For all optimizers in `learn_state`; the learner applies it before every update."""
        scheduler = self.cfg.learn.lr_scheduler
        if scheduler is None or "learn" not in self.fields:
            return None
        return LrSchedule.of(self.learn_state.values(), scheduler, type(self).__name__)

    # --- modes ---------------------------------------------------------------------------------

    @property
    def learn_mode(self) -> LearnMode:
        return LearnMode(
            self._forward_learn,
            self._reset_learn,
            self.__repr__,
            self._monitor_vars_learn,
            self._get_attribute,
            self._set_attribute,
            self._state_dict_learn,
            self._load_state_dict_learn,
        )

    @property
    def collect_mode(self) -> CollectMode:
        return CollectMode(
            self._normalisers.around(self._forward_collect),
            self._process_transition,
            self._get_train_sample,
            self._reset_collect,
            self._get_attribute,
            self._set_attribute,
            self._state_dict_collect,
            self._load_state_dict_collect,
        )

    @property
    def eval_mode(self) -> EvalMode:
        return EvalMode(
            self._normalisers.around(self._forward_eval),
            self._reset_eval,
            self._get_attribute,
            self._set_attribute,
            self._state_dict_eval,
            self._load_state_dict_eval,
        )

    @property
    def command_mode(self) -> CommandMode:
        return CommandMode(
            self._get_setting_learn, self._get_setting_collect, self._get_setting_eval
        )

    def _get_attribute(self, name: str) -> Any:
        if hasattr(self, f"_get_{name}"):
            return getattr(self, f"_get_{name}")()
        if hasattr(self, f"_{name}"):
            return getattr(self, f"_{name}")
        raise NotImplementedError(f"{type(self).__name__} has no attribute '{name}'")

    def _set_attribute(self, name: str, value: Any) -> None:
        if hasattr(self, f"_set_{name}"):
            getattr(self, f"_set_{name}")(value)
        else:
            setattr(self, f"_{name}", value)

    def _get_batch_size(self) -> int:
        return self._cfg.learn.batch_size

    def _get_priority(self) -> bool:
        return self._cfg.get("priority", False)

    def _get_n_sample(self) -> int | None:
        return self._cfg.collect.get("n_sample")

    def _get_n_episode(self) -> int | None:
        return self._cfg.collect.get("n_episode")

    def _get_unroll_len(self) -> int:
        return self._cfg.collect.get("unroll_len") or 1

    def _get_nstep(self) -> int:
        return 1 if self._on_policy else self._cfg.get("nstep", 1)

    def _get_traj_len_inf(self) -> bool:
        return self._cfg.get("traj_len_inf", False)

    def _get_needs(self) -> Needs:
        """What collecting for this policy takes."""
        steps = getattr(self._get_train_sample, "single_steps", False)
        nstep, linked = self._get_nstep(), self._cfg.other.replay_buffer.get("links", False)
        return Needs(
            n_sample=self._get_n_sample(),
            n_episode=self._get_n_episode(),
            unroll_len=self._get_unroll_len(),
            # Replay sums the rewards of single steps on drawing.
            nstep=1 if steps else nstep,
            on_policy=self._on_policy,
            traj_len_inf=self._get_traj_len_inf(),
            takes_all_envs=getattr(self._get_train_sample, "takes_all_envs", False),
            process_rows=self.process_rows,
            links_steps=steps and (nstep > 1 or linked),
            statistics_observer=self._normalisers.observe if self._normalisers.parts else None,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}:\n{self._model!r}"

    # --- to override ---------------------------------------------------------------------------

    def _init_acting(self) -> None:
        """Add what acting needs besides the model to `acting_parts`; most need nothing."""

    def _init_learn(self) -> None:
        raise NotImplementedError

    def _init_collect(self) -> None:
        raise NotImplementedError

    def _init_eval(self) -> None:
        raise NotImplementedError

    def _init_command(self) -> None:
        """Nothing to prepare unless exploration changes with the progress of training."""

    def _forward_learn(self, data: Sequence[Any]) -> dict[str, Any] | list[dict[str, Any]]:
        raise NotImplementedError

    def _forward_collect(self, data: Mapping[int, Any], **kwargs: Any) -> Mapping[int, Any]:
        raise NotImplementedError

    def _forward_eval(self, data: Mapping[int, Any]) -> Mapping[int, Any]:
        raise NotImplementedError

    def _process_transition(
        self, obs: Any, policy_output: dict[str, Any], timestep: Any
    ) -> dict[str, Any]:
        """Pick the columns of a step; the arguments hold all envs, stacked."""
        return {
            "obs": obs,
            "next_obs": timestep.obs,
            "action": policy_output["action"],
            "reward": timestep.reward,
            "done": timestep.done,
        }

    @single_steps
    def _get_train_sample(self, transitions: Sequence[Any]) -> Sequence[Any]:
        """Samples to learn from; by default the steps as they are."""
        steps = columns_of(transitions)
        kept = {name: column for name, column in steps.items() if name != "end"}
        if self._cfg.learn.get("ignore_done", False):
            kept["truncated"] = steps["done"]
        return Rows(kept)

    def _reset_learn(self, data_id: list[int] | None = None) -> None:
        """Only recurrent policies have something to forget; so of the next two."""

    def _reset_collect(self, data_id: list[int] | None = None) -> None: ...

    def _reset_eval(self, data_id: list[int] | None = None) -> None: ...

    def _monitor_vars_learn(self) -> list[str]:
        return ["cur_lr", "total_loss"]

    def _get_setting_learn(self, command_info: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return {}

    def _get_setting_collect(self, command_info: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return {}

    def _get_setting_eval(self, command_info: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return {}

    # --- the acting border ---------------------------------------------------------------------

    def acting_state(self, version: int = 0) -> ActingState:
        """Everything that acting needs, as it is now."""
        return self.acting_parts.published(version)

    def load_acting_state(self, state: ActingState) -> None:
        """Act from now on as the policy that gave this state."""
        self.acting_parts.load(state)

    def _get_acting_state(self) -> ActingState:
        return self.acting_state()

    def _get_twin(self) -> Policy:
        """Another policy of this kind and of these weights, which only acts."""
        return type(self)(self._cfg, deepcopy(self._model), ("collect", "eval"))

    def _get_statistics(self) -> Statistics:
        """Moments that collecting has gathered since the last call."""
        return self._normalisers.take_gathered()

    def _set_statistics(self, statistics: Statistics) -> None:
        self._normalisers.merge(statistics)

    def _get_memory(self) -> dict[str, Any]:
        """State of the running episodes that acting remembers; saved with them."""
        return self._normalisers.memory()

    def _set_memory(self, memory: Mapping[str, Any]) -> None:
        self._normalisers.remember(memory)

    # --- state ---------------------------------------------------------------------------------

    def _state_dict_learn(self) -> dict[str, Any]:
        learned = {name: part.state_dict() for name, part in self.learn_state.items()}
        return {**self.acting_parts.state_dict(), **learned}

    def _load_state_dict_learn(self, state: dict[str, Any]) -> None:
        self.acting_parts.load_checkpoint(state)
        for name, part in self.learn_state.items():
            if name in state:
                part.load_state_dict(state[name])

    def _state_dict_collect(self) -> dict[str, Any]:
        return self.acting_parts.state_dict()

    def _load_state_dict_collect(self, state: dict[str, Any]) -> None:
        self.acting_parts.load_checkpoint(state)

    def _state_dict_eval(self) -> dict[str, Any]:
        return self.acting_parts.state_dict()

    def _load_state_dict_eval(self, state: dict[str, Any]) -> None:
        self.acting_parts.load_checkpoint(state)

    # --- for algorithms ------------------------------------------------------------------------

    def _columns(self, data: Sequence[Any]) -> Batch:
        """Samples as columns, one number per row as (B,)."""
        whole = self._takes_whole_action
        return with_plain_numbers(columns_of(data), whole_action=whole, obs_shape=self._obs_shape)

    @property
    def _obs_shape(self) -> Any:
        """Of one observation, as far as the config says it."""
        return self._cfg.get("model", {}).get("obs_shape")

    @property
    def _takes_whole_action(self) -> bool:
        """Whether an action is one whole number."""
        return self.action_kinds == ("discrete",)

    def _batch(self, data: Sequence[Any]) -> Batch:
        """Samples as a batch of tensors on the device, with `weight` if the config asks for it."""
        columns = self._columns(data)
        if "replay_unique_id" in columns:
            columns = learnable(columns, weighted=self._cfg.get("priority_IS_weight", False))
        if self._normalisers.parts:
            columns = self._normalisers.columns(columns)
        if "discount" not in columns and "reward" in columns and "done" in columns:
            columns = self._with_discount(columns)
        if self._device.type == "cpu":
            return tree_map(as_tensor, columns)
        return tree_map(lambda leaf: _to_gpu(as_tensor(leaf), self._device), columns)

    def _with_discount(self, columns: Batch) -> Batch:
        """Add `discount` to what users bring; a buffer's draws have it."""
        agents = has_agents(columns.get("obs"), self._obs_shape)
        return with_discount(columns, self.cfg, agents)

    @property
    def rng(self) -> np.random.Generator:
        """Draws what collecting leaves to chance."""
        return self._rng


def _to_gpu(value: Any, device: torch.device) -> Any:
    if not isinstance(value, Tensor):
        return value
    return value.pin_memory().to(device, non_blocking=True)
