"""`model_wrap`: the same module, another behaviour. Only `target` owns a copy of the weights.

Wrappers that keep something between calls are here, those that only sample in `sample_wrapper`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor

from ding.rl_utils.exploration import create_noise_generator
from ding.torch_utils.target import TargetUpdate
from ding.utils.batch import tree_map
from ding.utils.errors import nearest
from ding.utils.registry import Registry


class IModelWrapper:
    """Calls the model inside; attributes that it does not have itself are the model's."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:
        # Before __init__ ran (copying, unpickling) there is no model to ask.
        if name == "_model" or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(name)
        return getattr(self._model, name)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._model.forward(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    def reset(self, data_id: Iterable[int] | None = None, **kwargs: Any) -> None:
        """Forget what is kept for these envs, or for all; reaches every wrapper inside."""
        self._reset(data_id, **kwargs)
        if isinstance(self._model, IModelWrapper):
            self._model.reset(data_id, **kwargs)
        elif hasattr(self._model, "reset"):
            self._model.reset(data_id=data_id)

    def _reset(self, data_id: Iterable[int] | None, **kwargs: Any) -> None:
        pass

    def info(self, attr_name: str | None = None) -> str:
        """The nesting, outermost first; with a name, up to the layer that defines it."""
        if attr_name is not None and (attr_name in vars(self) or hasattr(type(self), attr_name)):
            return f"{type(self).__name__}.{attr_name}"
        inner = self._model
        if isinstance(inner, IModelWrapper):
            return f"{type(self).__name__} -> {inner.info(attr_name)}"
        name = getattr(inner, "__name__", None) or type(inner).__name__
        return f"{type(self).__name__} -> {name}" + (f".{attr_name}" if attr_name else "")


class BaseModelWrapper(IModelWrapper):
    """The innermost wrapper: nothing but the model."""


class HiddenStateWrapper(IModelWrapper):
    """One recurrent state per env: put in as `prev_state`, taken out of `next_state`."""

    def __init__(
        self,
        model: Any,
        state_num: int,
        save_prev_state: bool = False,
        init_fn: Callable[[], Any] = lambda: None,
    ) -> None:
        super().__init__(model)
        self._save_prev_state = save_prev_state
        self._init_fn = init_fn
        self._state: dict[int, Any] = {i: init_fn() for i in range(state_num)}

    def forward(
        self, data: Mapping[str, Any], data_id: Iterable[int] | None = None, **kwargs: Any
    ) -> Any:
        ids = list(self._state) if data_id is None else [int(i) for i in data_id]
        previous = [self._state[i] for i in ids]
        output = dict(self._model.forward({**data, "prev_state": previous}, **kwargs))
        next_state = output.pop("next_state", None)
        if next_state is not None:
            self._state.update(zip(ids, next_state, strict=True))
        if self._save_prev_state:
            output["prev_state"] = previous
        return output

    def _reset(self, data_id: Iterable[int] | None, **kwargs: Any) -> None:
        ids = list(self._state) if data_id is None else [int(i) for i in data_id]
        states = kwargs.get("state") or [self._init_fn() for _ in ids]
        self._state.update(zip(ids, states, strict=True))


class ActionNoiseWrapper(IModelWrapper):
    """Noise on continuous actions, kept inside `action_range`."""

    def __init__(
        self,
        model: Any,
        noise_type: str = "gauss",
        noise_kwargs: Mapping[str, Any] | None = None,
        noise_range: Mapping[str, float] | None = None,
        action_range: Mapping[str, float] | None = None,
    ) -> None:
        super().__init__(model)
        self._noise = create_noise_generator(noise_type, dict(noise_kwargs or {}))
        self._noise_range = noise_range
        self._action_range = {"min": -1.0, "max": 1.0} if action_range is None else action_range

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        output = dict(self._model.forward(*args, **kwargs))
        key = "action" if "action" in output else "action_args"
        output[key] = self._noisy(output[key])
        return output

    def _noisy(self, action: Any) -> Any:
        if isinstance(action, Mapping):
            return {**action, "action_args": self._noisy(action["action_args"])}
        noise = self._noise(action.shape, action.device)
        if self._noise_range is not None:
            noise = noise.clamp(self._noise_range["min"], self._noise_range["max"])
        return (action + noise).clamp(self._action_range["min"], self._action_range["max"])

    def _reset(self, data_id: Iterable[int] | None, **kwargs: Any) -> None:
        self._noise.reset()


class TargetNetworkWrapper(IModelWrapper):
    """A frozen copy: 'assign' copies every `freq` updates, 'momentum' moves it by `theta`."""

    def __init__(
        self,
        model: Any,
        update_type: str = "assign",
        update_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(deepcopy(model))
        names = {"assign": "freq", "momentum": "theta"}
        if update_type not in names:
            raise ValueError(f"unknown update_type '{update_type}'{nearest(update_type, names)}")
        update_kwargs = dict(update_kwargs or {})
        if set(update_kwargs) != {names[update_type]}:
            raise ValueError(
                f"update_type '{update_type}' needs update_kwargs {{'{names[update_type]}': ...}}, "
                f"got {update_kwargs}"
            )
        self._assigns, self._rule = update_type == "assign", TargetUpdate(**update_kwargs)
        for parameter in self._model.parameters():
            parameter.requires_grad_(False)

    def update(self, state_dict: Mapping[str, Tensor], direct: bool = False) -> None:
        """Follow the learning model; `direct` copies now and starts counting anew."""
        if direct:
            self._rule.count = 0
        elif not self._rule.due():
            return
        if direct or self._assigns:
            self._model.load_state_dict(state_dict, strict=True)
        else:
            named = list(self._model.named_parameters())
            self._rule.move([own for _, own in named], [state_dict[name] for name, _ in named])

    def _reset(self, data_id: Iterable[int] | None, **kwargs: Any) -> None:
        if "target_update_count" in kwargs:
            self._rule.count = int(kwargs["target_update_count"])


class TeacherNetworkWrapper(IModelWrapper):
    """A model that is asked, never trained."""

    def __init__(self, model: Any, teacher_cfg: Mapping[str, Any] | None = None) -> None:
        super().__init__(model)
        self.teacher_cfg = teacher_cfg

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        with torch.no_grad():
            return self._model.forward(*args, **kwargs)


class TransformerInputWrapper(IModelWrapper):
    """Shows the model the last `seq_len` observations of each env as (T, B, ...)."""

    def __init__(self, model: Any, seq_len: int, init_fn: Callable[[], Any] | None = None) -> None:
        super().__init__(model)
        self.seq_len = seq_len
        self._init_fn = init_fn
        self.obs_memory: Tensor | None = None
        self.memory_length: Tensor | None = None

    def forward(
        self,
        input_obs: Tensor,
        only_last_logit: bool = True,
        data_id: Iterable[int] | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        rows = torch.arange(len(input_obs)) if data_id is None else torch.tensor(list(data_id))
        memory, lengths = self._grown(int(rows.max()) + 1, input_obs)
        full = rows[lengths[rows] == self.seq_len]
        memory[:-1, full] = memory[1:, full].clone()
        lengths[rows] = (lengths[rows] + 1).clamp(max=self.seq_len)
        memory[lengths[rows] - 1, rows] = input_obs
        output = dict(self._model.forward(memory[:, rows], **kwargs))
        output["input_seq"] = memory[:, rows]
        if only_last_logit:
            column = torch.arange(len(rows))
            output["logit"] = output["logit"][lengths[rows] - 1, column]
        return output

    def _grown(self, n_env: int, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Memory (T, N, ...) and number of observations (N,) with room for `n_env` envs."""
        known = 0 if self.obs_memory is None else self.obs_memory.shape[1]
        if known < n_env:
            empty = obs.new_zeros((self.seq_len, n_env - known, *obs.shape[1:]))
            none = torch.zeros(n_env - known, dtype=torch.int64)
            if self._init_fn is not None:
                empty[:] = self._init_fn()
            if self.obs_memory is not None and self.memory_length is not None:
                empty = torch.cat([self.obs_memory, empty], dim=1)
                none = torch.cat([self.memory_length, none])
            self.obs_memory, self.memory_length = empty, none
        assert self.obs_memory is not None and self.memory_length is not None
        return self.obs_memory, self.memory_length

    def _reset(self, data_id: Iterable[int] | None, **kwargs: Any) -> None:
        if data_id is None or self.obs_memory is None or self.memory_length is None:
            self.obs_memory = self.memory_length = None
            return
        rows = [i for i in data_id if i < len(self.memory_length)]
        self.obs_memory[:, rows] = 0 if self._init_fn is None else self._init_fn()
        self.memory_length[rows] = 0


class TransformerSegmentWrapper(IModelWrapper):
    """Runs a sequence longer than the model's in segments of `seq_len` and joins the logits."""

    def __init__(self, model: Any, seq_len: int) -> None:
        super().__init__(model)
        self.seq_len = seq_len

    def forward(self, obs: Tensor, **kwargs: Any) -> dict[str, Any]:
        outputs = [dict(self._model.forward(part, **kwargs)) for part in obs.split(self.seq_len)]
        return {**outputs[-1], "logit": torch.cat([output["logit"] for output in outputs])}


class TransformerMemoryWrapper(IModelWrapper):
    """Keeps its own memory of a model that others use as well."""

    def __init__(self, model: Any, batch_size: int) -> None:
        super().__init__(model)
        self.batch_size = batch_size
        self.memory: Any = None

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        self._model.reset_memory(batch_size=self.batch_size, state=self.memory)
        output = self._model.forward(*args, **kwargs)
        self.memory = tree_map(lambda leaf: leaf.detach(), output["memory"])
        return output

    def _reset(self, data_id: Iterable[int] | None, **kwargs: Any) -> None:
        if data_id is None:
            self.memory = None
        elif self.memory is not None:
            # (layers, time, batch, features)
            self.memory[:, :, list(data_id)] = 0


_SAMPLE = "ding.model.sample_wrapper:"
_OWN = "ding.model.wrapper:"
WRAPPERS = Registry(
    "model wrapper",
    {
        "base": f"{_OWN}BaseModelWrapper",
        "hidden_state": f"{_OWN}HiddenStateWrapper",
        "action_noise": f"{_OWN}ActionNoiseWrapper",
        "target": f"{_OWN}TargetNetworkWrapper",
        "teacher": f"{_OWN}TeacherNetworkWrapper",
        "transformer_input": f"{_OWN}TransformerInputWrapper",
        "transformer_segment": f"{_OWN}TransformerSegmentWrapper",
        "transformer_memory": f"{_OWN}TransformerMemoryWrapper",
        "argmax_sample": f"{_SAMPLE}ArgmaxSampleWrapper",
        "multinomial_sample": f"{_SAMPLE}MultinomialSampleWrapper",
        "eps_greedy_sample": f"{_SAMPLE}EpsGreedySampleWrapper",
        "eps_greedy_multinomial_sample": f"{_SAMPLE}EpsGreedyMultinomialSampleWrapper",
        "deterministic_sample": f"{_SAMPLE}DeterministicSampleWrapper",
        "reparam_sample": f"{_SAMPLE}ReparamSampleWrapper",
        "hybrid_argmax_sample": f"{_SAMPLE}HybridArgmaxSampleWrapper",
        "hybrid_eps_greedy_sample": f"{_SAMPLE}HybridEpsGreedySampleWrapper",
        "hybrid_eps_greedy_multinomial_sample": f"{_SAMPLE}HybridEpsGreedyMultinomialSampleWrapper",
        "hybrid_reparam_multinomial_sample": f"{_SAMPLE}HybridReparamMultinomialSampleWrapper",
        "hybrid_deterministic_argmax_sample": f"{_SAMPLE}HybridDeterministicArgmaxSampleWrapper",
        "combination_argmax_sample": f"{_SAMPLE}CombinationArgmaxSampleWrapper",
        "combination_multinomial_sample": f"{_SAMPLE}CombinationMultinomialSampleWrapper",
    },
)


def model_wrap(model: Any, wrapper_name: str, **kwargs: Any) -> Any:
    """The model behind the wrapper of this name; wrappers nest."""
    if wrapper_name not in WRAPPERS:
        raise TypeError(
            f"unknown model wrapper '{wrapper_name}'{nearest(wrapper_name, WRAPPERS.query())}"
        )
    if not isinstance(model, IModelWrapper):
        model = BaseModelWrapper(model)
        if wrapper_name == "base":
            return model
    return WRAPPERS.get(wrapper_name)(model, **kwargs)


def register_wrapper(name: str, wrapper_type: type) -> None:
    """Make a wrapper of one's own known to `model_wrap`."""
    if not (isinstance(wrapper_type, type) and issubclass(wrapper_type, IModelWrapper)):
        raise TypeError(
            f"wrapper '{name}' must be a subclass of IModelWrapper, got {wrapper_type!r}"
        )
    WRAPPERS.register(name)(wrapper_type)
