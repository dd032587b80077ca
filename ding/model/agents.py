"""Values of agents: one network that all share, one step at a time or unrolled, and their mixture.

Letters in shapes: T time, B batch, A agents, K numbers that an agent sees, M actions, S numbers of
what an agent remembers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ding.model.action_mask import masked
from ding.model.encoder import Encoder, ObsShape, encoder_for, shape_of, size_of
from ding.model.head import discrete_head_for
from ding.model.mixers import Mixer
from ding.rl_utils.td import at_action
from ding.torch_utils.network import Activation, TwinMLP, activation_of
from ding.torch_utils.recurrent import Recurrent, get_lstm
from ding.utils.errors import ConfigError, DingError
from ding.utils.registry import MIXER_REGISTRY

Values = Callable[[Any, Tensor | None], tuple[Tensor, Tensor | None]]
Team = Callable[[Tensor, Tensor, Any], Tensor]


class AgentQ(nn.Module):
    """Encoder, recurrent layer and head of Q, with the same weights for every agent."""

    def __init__(
        self,
        obs_shape: ObsShape,
        n_action: int,
        hidden_size_list: Sequence[int],
        lstm_type: str | None = "gru",
        activation: Activation = "relu",
        dueling: bool = False,
    ) -> None:
        super().__init__()
        self.encoder: Encoder = encoder_for(obs_shape, hidden_size_list, activation)
        size = self.encoder.output_size
        self.rnn: Recurrent | None = None
        if lstm_type is not None:
            self.rnn = get_lstm(lstm_type, size, size)
        self.head = discrete_head_for((n_action,), size, dueling, layer_num=0, in_size=size)
        self.memory_size = 0 if self.rnn is None else size * len(self.rnn.keys)

    def forward(self, agent_state: Tensor, memory: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """(T, B, A, K) and (B, A, S) to values (T, B, A, M) and the memory after the last step."""
        x, memory = self.features(agent_state, memory)
        return self.head(x)["logit"], memory

    def features(self, agent_state: Tensor, memory: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """The same without the head: (T, B, A, H)."""
        x = self.encoder(agent_state)
        if self.rnn is not None:
            n_step, *rows, size = x.shape
            flat, state = self.rnn(x.reshape(n_step, -1, size), self._state_of(memory), False)
            x, memory = flat.view(n_step, *rows, size), self._memory_of(state, rows)
        return x, memory

    def _state_of(self, memory: Tensor | None) -> dict[str, Tensor] | None:
        if memory is None or self.rnn is None:
            return None
        parts = memory.reshape(-1, memory.shape[-1]).chunk(len(self.rnn.keys), dim=-1)
        return {k: part.unsqueeze(0) for k, part in zip(self.rnn.keys, parts, strict=True)}

    def _memory_of(self, state: Mapping[str, Tensor], rows: Sequence[int]) -> Tensor:
        return torch.cat([part[0] for part in state.values()], dim=-1).view(*rows, -1)


class SeparateAgentQ(nn.Module):
    """The same with weights of its own for every agent, all agents in one batched product."""

    def __init__(
        self,
        agent_num: int,
        obs_shape: ObsShape,
        n_action: int,
        hidden_size_list: Sequence[int],
        lstm_type: str | None = "gru",
        activation: Activation = "relu",
    ) -> None:
        super().__init__()
        if lstm_type not in ("gru", None):
            raise ConfigError(
                f"policy.model.lstm_type = '{lstm_type}': agents with weights of their own "
                "(share_weights = False) have 'gru' or None"
            )
        size = int(hidden_size_list[-1])
        inputs = size_of(obs_shape, "obs_shape")
        self.encoder = TwinMLP([inputs, *hidden_size_list], activation, n_member=agent_num)
        self.activation = activation_of(activation)
        self.memory_size = 0 if lstm_type is None else size
        if self.memory_size:
            self.gates_of_input = TwinMLP([size, 3 * size], n_member=agent_num)
            self.gates_of_memory = TwinMLP([size, 3 * size], n_member=agent_num)
        self.head = TwinMLP([size, n_action], n_member=agent_num)

    def forward(self, agent_state: Tensor, memory: Tensor | None) -> tuple[Tensor, Tensor | None]:
        n_step, batch, agent_num = agent_state.shape[:3]
        flat = agent_state.reshape(n_step * batch, agent_num, -1).transpose(0, 1)
        x = self.activation(self.encoder.each(flat))  # (A, T B, H)
        if self.memory_size:
            x, memory = self._remembered(x.view(agent_num, n_step, batch, -1), memory)
        q = self.head.each(x).view(agent_num, n_step, batch, -1)
        return q.permute(1, 2, 0, 3), memory

    def _remembered(self, x: Tensor, memory: Tensor | None) -> tuple[Tensor, Tensor]:
        """A gated recurrent unit, as in `nn.GRU`: (A, T, B, H) to (A, T B, H) and (B, A, H)."""
        agent_num, n_step, batch, size = x.shape
        h = x.new_zeros(agent_num, batch, size) if memory is None else memory.transpose(0, 1)
        inputs = self.gates_of_input.each(x.flatten(1, 2)).view(agent_num, n_step, batch, -1)
        steps = []
        for gates in inputs.unbind(1):
            of_input, of_memory = gates.chunk(3, -1), self.gates_of_memory.each(h).chunk(3, -1)
            reset = (of_input[0] + of_memory[0]).sigmoid()
            keep = (of_input[1] + of_memory[1]).sigmoid()
            new = (of_input[2] + reset * of_memory[2]).tanh()
            h = (1 - keep) * new + keep * h
            steps.append(h)
        return torch.stack(steps, dim=1).flatten(1, 2), h.transpose(0, 1)


class QMix(nn.Module):
    """Agents whose values a mixer makes one of, https://arxiv.org/abs/1803.11485.

    `mixer`: True is QMIX, False the sum (VDN), None keeps the values of agents apart, and a name is
    that of a registered mixer. `lstm_type` None: agents remember nothing.
    """

    inputs: ClassVar[tuple[str, ...]] = ("agent_state",)
    """Parts of an observation that agents act by."""

    def __init__(  # noqa: PLR0913 (established constructor)
        self,
        agent_num: int,
        obs_shape: ObsShape,
        global_obs_shape: ObsShape | None,
        action_shape: int | Sequence[int],
        hidden_size_list: Sequence[int],
        mixer: bool | str | None = True,
        lstm_type: str | None = "gru",
        activation: Activation = "relu",
        dueling: bool = False,
        mixing_embed_dim: int | None = None,
        share_weights: bool = True,
    ) -> None:
        """`mixing_embed_dim`: width of the mixer, by default the last of `hidden_size_list`."""
        super().__init__()
        self.agent_num = agent_num
        n_action = shape_of(action_shape, "action_shape")[0]
        sizes = (obs_shape, n_action, hidden_size_list, lstm_type, activation)
        self.agents: AgentQ | SeparateAgentQ
        if share_weights:
            self.agents = AgentQ(*sizes, dueling)
        elif dueling:
            raise ConfigError(
                "policy.model.dueling = True: agents with weights of their own (share_weights = "
                "False) have no dueling heads; leave one of them out"
            )
        else:
            self.agents = SeparateAgentQ(agent_num, *sizes)
        self.mixer: Mixer | None = None
        if mixer is not None:
            name = mixer if isinstance(mixer, str) else "qmix" if mixer else "vdn"
            embed = int(mixing_embed_dim or hidden_size_list[-1])
            mixer_cls = MIXER_REGISTRY.get(name)
            more = {"n_action": n_action} if mixer_cls.needs_actions else {}
            self.mixer = mixer_cls(agent_num, global_obs_shape, embed, **more)
        if self.mixer is not None and self.mixer.needs_state:
            check_flat(global_obs_shape)

    @property
    def memory_size(self) -> int:
        """Numbers that each agent remembers."""
        return self.agents.memory_size

    def values(self, obs: Any, memory: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Observations (T, B, ...) to values (T, B, A, M) and the memory (B, A, S) after them."""
        return self.agents(state_of(obs), memory)

    def team(self, q: Tensor, action: Tensor, obs: Any) -> Tensor:
        """Values (..., A, M) and actions (..., A) to the value of the team (...).

        Without a mixer they are the values (..., A) of the actions. Dead agents add nothing.
        """
        taken = of_living(at_action(q, action), obs)
        if self.mixer is None:
            return taken
        state = global_state_of(obs) if self.mixer.needs_state else None
        if not self.mixer.needs_actions:
            return self.mixer(taken, state)
        best = of_living(masked(q, mask_of(obs)).amax(dim=-1), obs)
        return self.mixer(taken, state, best=best, action=of_living(action, obs))

    def forward(self, data: Mapping[str, Any], single_step: bool = True) -> dict[str, Any]:
        """{'obs', 'prev_state', 'action'?} to {'total_q', 'logit', 'next_state', 'action_mask'}.

        Without actions the best ones that are allowed count. `prev_state` is a tensor (B, A, S) or
        B lists of A entries, (S,) or None; `next_state` comes in the same form. Unless it is a
        `single_step`, all but states have T first.
        """
        return self._output(data, single_step, self.values, self.team)

    def _output(
        self, data: Mapping[str, Any], single_step: bool, values: Values, team: Team
    ) -> dict[str, Any]:
        obs = data["obs"] if not single_step else _one_step(data["obs"])
        given = data.get("prev_state")
        memory = _joined(given, self.memory_size, state_of(obs))
        logit, memory = values(obs, memory)
        mask = mask_of(obs)
        logit = masked(logit, mask)
        action = data.get("action")
        if action is None:
            action = logit.argmax(dim=-1)
        elif single_step:
            action = action.unsqueeze(0)
        output = {"total_q": team(logit, action, obs), "logit": logit}
        if mask is not None:
            output["action_mask"] = mask
        if single_step:
            output = {key: value[0] for key, value in output.items()}
        is_list = isinstance(given, (list, tuple)) and memory is not None
        return {**output, "next_state": _split(memory) if is_list else memory}


def check_flat(global_obs_shape: Any) -> None:
    """Refuse a global state for each agent."""
    shape = shape_of(global_obs_shape, "global_obs_shape")
    if len(shape) == 2:
        raise ConfigError(
            f"policy.model.global_obs_shape = {list(shape)}: a mixer takes one global state "
            "for all agents, (S,); set env.agent_specific_global_state = False"
        )


def state_of(obs: Any) -> Tensor:
    """What each agent sees; an observation may be no more than that."""
    return obs["agent_state"] if isinstance(obs, Mapping) else obs


def alone_of(obs: Any) -> tuple[Tensor, Tensor]:
    """What each agent sees without its allies: left out, and zeroed."""
    names = ("agent_alone_state", "agent_alone_padding_state")
    lacks = [name for name in names if not isinstance(obs, Mapping) or name not in obs]
    if lacks:
        raise DingError(
            f"the observation lacks {' and '.join(map(repr, lacks))}, what agents see without "
            "their allies; set env.obs_alone = True, or use policy 'qmix'"
        )
    return obs[names[0]], obs[names[1]]


def mask_of(obs: Any) -> Any:
    return obs.get("action_mask") if isinstance(obs, Mapping) else None


def alive_of(obs: Any) -> Any:
    return obs.get("alive") if isinstance(obs, Mapping) else None


def global_state_of(obs: Any) -> Tensor:
    if isinstance(obs, Mapping) and "global_state" in obs:
        return obs["global_state"]
    raise DingError(
        "the observation lacks 'global_state', which the value of the team depends on; set "
        "env.agent_obs_only = False, or add values of agents up with policy 'vdn'"
    )


def of_living(x: Tensor, obs: Any) -> Tensor:
    """(..., A) with zeros for dead agents."""
    alive = alive_of(obs)
    return x if alive is None else x * alive


def _one_step(obs: Any) -> Any:
    if isinstance(obs, Mapping):
        return {key: value.unsqueeze(0) for key, value in obs.items()}
    return obs.unsqueeze(0)


def _joined(state: Any, size: int, x: Tensor) -> Tensor | None:
    """(B, A, S), of B lists of A entries where it is not that already."""
    if state is None or not size:
        return None
    if isinstance(state, Tensor):
        return state
    zero = x.new_zeros(size)
    rows = [torch.stack([zero if one is None else one for one in agents]) for agents in state]
    return torch.stack(rows)


def _split(memory: Any) -> list[list[Tensor]]:
    return [list(agents.unbind(0)) for agents in memory.unbind(0)]
