"""Envs that speak dicts by agent (PettingZoo's parallel interface), as envs with an agent axis.

`ding.envs.agents` says what policies see. An env needs `possible_agents`, and by agent
`observation_space` and `action_space`; `reset(seed)` to observations and infos; `step(actions)` to
observations, rewards, terminations, truncations and infos; `state_space` and `state()` if it has a
global state of its own. A mask comes as `infos[agent]["action_mask"]`, or beside 'observation'.
Envs whose agents take turns are played turn by turn, see `ding.envs.turns`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from ding.envs.agents import (
    ACTION_MASK,
    AGENT_RETURN,
    AGENT_STATE,
    ALIVE,
    ALONE_PADDING_STATE,
    ALONE_STATE,
    GLOBAL_STATE,
    AgentsSpace,
    obs_space,
)
from ding.envs.base_env import BaseEnv, BaseEnvTimestep
from ding.envs.packages import refuse_rebuilt
from ding.envs.spaces import ActionMap, action_map
from ding.envs.turns import TurnsAsSteps, takes_turns
from ding.utils.errors import ConfigError, DingError, nearest

REWARDS = ("sum", "mean", "each")


class ParallelAgentsEnv(BaseEnv):
    """`ParallelAgentsEnv(factory, cfg)`; a subclass may make the env in `_new_env` instead.

    An agent that terminates is dead: it is no longer `alive`, sees zeros, may only take action 0,
    which does not reach the env. One that is cut off while others go on counts as dead too.
    """

    config: ClassVar[dict[str, Any]] = {
        # Observe only what each agent sees, as an array (A, K).
        "agent_obs_only": False,
        # Global state by agent, (A, K + S): what it sees, then the global state.
        "agent_specific_global_state": False,
        # Let agents see which one they are (one-hot), so that shared weights can tell them apart.
        "obs_agent_id": False,
        # Let agents see their last action (one-hot, or its numbers); zeros at first.
        "obs_last_action": False,
        # Show agents without their allies, too: 'agent_alone_state' leaves out what they see of
        # them, 'agent_alone_padding_state' has zeros there.
        "obs_alone": False,
        # The numbers that an agent sees of its allies, (begin, end); None: as the env knows.
        "ally_feature_range": None,
        # Reward of the team: 'sum' or 'mean' of the agents' rewards; 'each': every agent its own.
        # The return that is reported is the sum over agents, with 'mean' their mean.
        "reward": "sum",
        # What all rewards are multiplied by.
        "reward_scale": 1.0,
        # Agents with different spaces: fill up observations with zeros, and actions with some that
        # the mask forbids.
        "pad_agents": False,
        # Present bounded float actions in [-1, 1] and scale them; beyond is clipped.
        "act_scale": False,
        # Truncate episodes after so many steps; None leaves that to the env.
        "max_episode_steps": None,
    }

    def __init__(
        self,
        env: Callable[[], Any] | Mapping[str, Any] | None = None,
        cfg: Mapping[str, Any] | None = None,
    ) -> None:
        if isinstance(env, Mapping):  # as for every other env class
            env, cfg = None, env
        super().__init__({**self.config, **(cfg or {})})
        if self._cfg["reward"] not in REWARDS:
            raise ConfigError(
                f"env.reward = '{self._cfg['reward']}'{nearest(self._cfg['reward'], REWARDS)}"
            )
        self._factory = env
        self._env: Any = None
        self._running = self._others_run = False
        self._limit = self._cfg["max_episode_steps"] or sys.maxsize

    def _new_env(self) -> Any:
        if self._factory is None:
            raise DingError(f"{self!r} needs a factory of envs")
        return self._factory()

    def _own_state(self, env: Any) -> Any:
        """Space of the env's own global state, if it has one: else it is what all agents see."""
        return getattr(env, "state_space", None)

    # --- spaces --------------------------------------------------------------------------------

    def _need_env(self) -> None:
        if self._env is None:
            env = self._new_env()
            self._env = TurnsAsSteps(env) if takes_turns(env) else env
            self._set_spaces(self._env)

    def _set_spaces(self, env: Any) -> None:
        self._agents = list(env.possible_agents)
        self._index = {agent: i for i, agent in enumerate(self._agents)}
        seen = [_box_of(env.observation_space(agent), self) for agent in self._agents]
        self._sizes = [int(np.prod(space.shape)) for space in seen]
        self._set_actions([env.action_space(agent) for agent in self._agents])
        if len(set(self._sizes)) > 1 and not self._cfg["pad_agents"]:
            raise self._differ(f"see {self._sizes} numbers")
        count, cfg = len(self._agents), self._cfg
        width = max(self._sizes)
        last = self._n_action or int(np.prod(self._one.presented.shape or (1,)))
        self._id_at = width
        self._last_at = width + count * bool(cfg["obs_agent_id"])
        width = self._width = self._last_at + last * bool(cfg["obs_last_action"])
        own = self._own_state(env)
        self._has_state = own is not None
        size = self._state_size = sum(self._sizes) if own is None else int(np.prod(own.shape))
        by_agent = bool(cfg["agent_specific_global_state"])
        shape = (count, width + size) if by_agent else (size,)
        space = obs_space(count, width, global_shape=shape, n_action=self._n_action)
        if cfg["obs_alone"]:
            space = self._with_alone(env, space)
        self._observation_space = space[AGENT_STATE] if cfg["agent_obs_only"] else space
        n_reward = count if cfg["reward"] == "each" else 1
        self._reward_space = gym.spaces.Box(-np.inf, np.inf, (n_reward,), dtype=np.float32)

    def _ally_features(self, env: Any) -> Any:
        """Range (begin, end) of what is of allies in what an agent sees."""
        return self._cfg["ally_feature_range"]

    def _with_alone(self, env: Any, space: gym.spaces.Dict) -> gym.spaces.Dict:
        """The space with parts that show agents without their allies."""
        if self._cfg["agent_obs_only"]:
            raise ConfigError(
                "env.obs_alone = True adds parts to the observation, which env.agent_obs_only = "
                "True leaves out; set one of them to False"
            )
        allies, size = self._ally_features(env), min(self._sizes)
        if allies is None or len(allies) != 2 or not 0 <= allies[0] <= allies[1] <= size:
            raise ConfigError(
                f"env.obs_alone = True: env.ally_feature_range = {allies} does not say what an "
                f"agent of {self!r} sees of its allies; set (begin, end) within {size} numbers"
            )
        self._allies = slice(*map(int, allies))
        seen = space[AGENT_STATE]
        shape = len(self._agents), self._width - (self._allies.stop - self._allies.start)
        alone = gym.spaces.Box(-np.inf, np.inf, shape, dtype=np.float32)
        return gym.spaces.Dict({**space, ALONE_STATE: alone, ALONE_PADDING_STATE: seen})

    def _set_actions(self, given: list[Any]) -> None:
        discrete = [isinstance(space, gym.spaces.Discrete) for space in given]
        counts = [int(space.n) if isinstance(space, gym.spaces.Discrete) else 0 for space in given]
        alike = len(set(counts)) == 1 and all(space == given[0] for space in given)
        if not alike and not all(discrete):
            raise ConfigError(
                f"the agents of {self!r} act in {given}, but they share one network, and numbers "
                "can't be filled up as choices can (env.pad_agents): give all the same space"
            )
        if not alike and not self._cfg["pad_agents"]:
            raise self._differ(f"act in {given}")
        largest = given[int(np.argmax(counts))]
        self._one: ActionMap = action_map(largest, bool(self._cfg["act_scale"]))
        self._n_action = max(counts) if all(discrete) else None
        if self._n_action is not None:
            self._possible = (np.arange(self._n_action) < np.array(counts)[:, None]).astype("f4")
        self._action_space = AgentsSpace(self._one.presented, len(given))

    def _differ(self, how: str) -> ConfigError:
        return ConfigError(
            f"the agents of {self!r} {how}, but they share one network; set env.pad_agents = True "
            "to fill up the shorter ones"
        )

    # --- episodes ------------------------------------------------------------------------------

    def reset(self, **kwargs: Any) -> Any:
        self._need_env()
        obs, infos = self._env.reset(seed=self._next_seed(), **kwargs)
        self._begin(obs)
        self._returns = np.zeros(len(self._agents))
        self._steps, self._running = 0, True
        return self._observed(obs, infos)

    def _begin(self, obs: Mapping[str, Any]) -> None:
        self._alive = np.array([agent in obs for agent in self._agents], dtype=np.float32)
        self._last = np.zeros((len(self._agents), self._width - self._last_at), dtype=np.float32)

    def step(self, action: Any) -> BaseEnvTimestep:
        if not self._running:
            raise DingError(f"{self!r} has no running episode: call reset() before step()")
        action = np.asarray(action)
        self._refuse_the_dead(action)
        acting = [(i, self._agents[i]) for i in np.flatnonzero(self._alive).tolist()]
        obs, rewards, terminated, truncated, infos = self._env.step(self.actions_of(action))
        self._steps += 1
        reward = np.zeros(len(self._agents))
        for i, agent in acting:
            reward[i] = rewards.get(agent, 0.0)
        reward *= self._cfg["reward_scale"]
        self._returns += reward
        over = self._bury(acting, terminated, truncated)
        seen = self._observed(obs, infos)
        return BaseEnvTimestep(seen, self._given(reward), *self._ending(*over))

    def random_action(self) -> Any:
        """A random action of each agent that lives; that of the dead is 0."""
        action = super().random_action()
        if self._running and self._n_action is not None:
            action[self._alive == 0] = 0
        return action

    def _refuse_the_dead(self, action: np.ndarray) -> None:
        """Who can see that it is dead has to take the one action that is left."""
        if self._n_action is None or self._cfg["agent_obs_only"] or self._alive.all():
            return
        acting = np.flatnonzero((self._alive == 0) & (action.reshape(-1) != 0))
        if len(acting):
            i = int(acting[0])
            raise DingError(
                f"agent '{self._agents[i]}' of {self!r} is dead, but takes action "
                f"{action.reshape(-1)[i]}; agents whose 'alive' is 0 take action 0"
            )

    def _bury(
        self, acting: list[tuple[int, str]], terminated: Mapping[str, Any], truncated: Any
    ) -> tuple[bool, bool]:
        """Note who has left; whether the episode is over, and whether it was only cut off.

        Who was cut off with the episode is alive in its last observation: values go on there.
        """
        dead = [i for i, agent in acting if terminated.get(agent, True)]
        cut = [i for i, agent in acting if truncated.get(agent, False) and i not in dead]
        too_long = self._steps >= self._limit
        goes_on = len(dead) + len(cut) < len(acting)
        self._alive[dead] = 0
        if goes_on and not too_long:
            self._alive[cut] = 0
        still = bool(self._alive.any())
        return not goes_on or too_long, still and (bool(cut) or too_long)

    def _ending(self, over: bool, truncated: bool) -> tuple[bool, dict[str, Any]]:
        if not over:
            return False, {}
        self._running = False
        returned = self._returns.mean() if self._cfg["reward"] == "mean" else self._returns.sum()
        info: dict[str, Any] = {"eval_episode_return": float(returned)}
        info |= {f"{AGENT_RETURN}{i}": value for i, value in enumerate(self._returns.tolist())}
        return True, {**info, "truncated": True} if truncated else info

    def _given(self, reward: np.ndarray) -> Any:
        if self._cfg["reward"] == "each":
            return reward.astype(np.float32)
        return float(reward.mean() if self._cfg["reward"] == "mean" else reward.sum())

    def _note_actions(self, action: np.ndarray) -> None:
        if not self._cfg["obs_last_action"]:
            return
        if self._n_action is None:
            self._last[:] = action.reshape(self._last.shape)
        else:
            self._last[:] = np.arange(self._n_action) == action.reshape(-1, 1)

    # --- observations --------------------------------------------------------------------------

    def _observed(self, obs: Mapping[str, Any], infos: Mapping[str, Any]) -> Any:
        state = np.zeros((len(self._agents), self._width), dtype=np.float32)
        masks = None if self._n_action is None else self._possible.copy()
        for agent, seen in obs.items():
            i = self._index[agent]
            if not self._alive[i]:
                continue
            mask = infos.get(agent, {}).get(ACTION_MASK)
            if isinstance(seen, Mapping):
                mask, seen = seen.get(ACTION_MASK, mask), seen["observation"]
            state[i, : self._sizes[i]] = np.reshape(seen, -1)
            if mask is not None and masks is not None:
                masks[i, : len(mask)] *= mask
        bare = state[:, : self._id_at]
        whole = None if self._cfg["agent_obs_only"] else self._global_state(bare)
        self._add_own(state)
        if whole is None:
            return state
        return self._documented(state, whole, masks)

    def _add_own(self, state: np.ndarray) -> None:
        """Add which agent it is and what it did last, where asked for."""
        if self._cfg["obs_agent_id"]:
            np.fill_diagonal(state[:, self._id_at : self._last_at], 1.0)
        if self._cfg["obs_last_action"]:
            state[:, self._last_at :] = self._last
        state *= self._alive[:, None]

    def _global_state(self, state: np.ndarray) -> np.ndarray:
        if self._has_state and not self._running:
            return np.zeros(self._state_size, dtype=np.float32)
        if self._has_state:
            return np.asarray(self._env.state(), dtype=np.float32).reshape(-1)
        if len(set(self._sizes)) == 1:
            return state.reshape(-1).copy()
        return np.concatenate([row[:size] for row, size in zip(state, self._sizes, strict=True)])

    def _documented(
        self, state: np.ndarray, whole: np.ndarray, masks: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        if self._cfg["agent_specific_global_state"]:
            whole = np.concatenate([state, np.tile(whole, (len(state), 1))], axis=1)
        obs = {AGENT_STATE: state, GLOBAL_STATE: whole}
        if self._cfg["obs_alone"]:
            padded = state.copy()
            padded[:, self._allies] = 0
            obs[ALONE_STATE] = np.delete(state, self._allies, axis=1)
            obs[ALONE_PADDING_STATE] = padded
        if masks is not None:
            dead = self._alive == 0
            masks[dead] = 0
            masks[dead, 0] = 1
            obs[ACTION_MASK] = masks
        return {**obs, ALIVE: self._alive.copy()}

    # --- another env like this one -------------------------------------------------------------

    def is_by_agent(self, obs: Any) -> bool:
        """Whether these are observations by agent, as the env inside gives them."""
        self._need_spaces()
        return isinstance(obs, Mapping) and bool(obs) and set(obs) <= set(self._agents)

    def begin_anew(self) -> None:
        """The next observations are the first of an episode."""
        self._others_run = False

    def seen_of(self, obs: Mapping[str, Any], infos: Mapping[str, Any]) -> Any:
        """Convert observations by agent, of somebody else's env, to what policies see.

        Its own global state is unknown and shown as zeros: agents act without it.
        """
        if self._others_run:
            self._alive *= [agent in obs for agent in self._agents]
        else:
            self._begin(obs)
        self._others_run = True
        return self._observed(obs, infos)

    def actions_of(self, action: np.ndarray) -> dict[str, Any]:
        """These actions by agent, for that env."""
        self._note_actions(action)
        return {
            agent: self._one(action[i]) for i, agent in enumerate(self._agents) if self._alive[i]
        }

    # --- the rest of an env --------------------------------------------------------------------

    def close(self) -> None:
        if self._env is not None and hasattr(self._env, "close"):
            self._env.close()
        self._env, self._running = None, False

    def seed(self, seed: int, dynamic_seed: bool = True) -> None:
        super().seed(seed, dynamic_seed)
        if self._action_space is not None:
            self._action_space.seed(self._seed)

    @property
    def observation_space(self) -> Any:
        self._need_spaces()
        return self._observation_space

    @property
    def action_space(self) -> Any:
        self._need_spaces()
        return self._action_space

    @property
    def reward_space(self) -> Any:
        self._need_spaces()
        return self._reward_space

    def _need_spaces(self) -> None:
        if self._observation_space is None:
            self._need_env()

    def __getstate__(self) -> dict[str, Any]:
        if not self._running:
            return self.__dict__ | {"_env": None}
        if hasattr(self._env, "unwrapped"):
            refuse_rebuilt(self._env)
        return self.__dict__ | {"_factory": None}


def _box_of(space: Any, env: Any) -> gym.spaces.Box:
    """What an agent sees besides its mask."""
    inner = space["observation"] if isinstance(space, gym.spaces.Dict) else space
    if not isinstance(inner, gym.spaces.Box):
        raise ConfigError(
            f"the agents of {env!r} see {inner}; numbers (Box) are supported: convert it in the env"
        )
    return inner
