"""Exported agents: one graph from observations to actions, for PyTorch or ONNX without `ding`.

Normalisation of observations and the scaling of actions are in the graph. Wrappers of observations
are not: a graph of a run with them takes what they give, as its description says.
"""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy, deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import nn

from ding import __version__
from ding.agent.spaces import plain_space
from ding.envs.spaces import (
    ActionMap,
    AgentsAction,
    DiscreteAction,
    MultiDiscreteAction,
    NestedAction,
    PlainAction,
    RegroupedAction,
    ScaledAction,
    narrow,
)
from ding.model.numpy_forward import NumpyForward
from ding.policy.agents import AgentsActor
from ding.policy.recurrent import RecurrentActor
from ding.utils.batch import ByEnv, stack, stacked_of, tree_map
from ding.utils.errors import DingError

_ROWS = (1, 7)
"""Sizes of the batches that a file is checked with."""
_TOLERANCE = 1e-4
_DESCRIPTION = "agent.json"

Leaves = list[np.ndarray]


class Acting(nn.Module):
    """Stacked observations, as `Border.seen` gives them, to stacked actions of the env."""

    def __init__(self, agent: Any) -> None:
        super().__init__()
        self._forward, networks = _in_torch(agent.policy, observations(agent, 1))
        self.networks = nn.ModuleList(networks)
        normaliser = agent.policy.acting_parts.get("obs_norm")
        self._seen = (lambda obs: obs) if normaliser is None else normaliser.in_torch()
        self._action_map = agent.border.action_map

    def forward(self, obs: Any) -> Any:
        ids = np.zeros(1, np.int64)  # only policies that remember tell rows apart
        output = stacked_of(self._forward(ByEnv(ids, self._seen(obs))))[1]
        return to_env(self._action_map, output["action"])


def _in_torch(policy: Any, obs: Any) -> tuple[Callable[..., Any], list[nn.Module]]:
    """The forward of the eval mode with its networks run by torch, and these networks."""
    parts = vars(policy)
    if any(isinstance(value, (AgentsActor, RecurrentActor)) for value in parts.values()):
        raise _refusal(policy._cfg.type, "it remembers the episode, which a graph does not")
    policy._forward_eval(ByEnv(np.arange(1), obs))  # what it runs is made on first use
    twin, networks = copy(policy), []
    for name, value in parts.items():
        if isinstance(value, NumpyForward):
            setattr(twin, name, value.forward)
            networks.append(value.model)
    return partial(type(policy)._forward_eval, twin), list(dict.fromkeys(networks))


def _refusal(policy: str, reason: str) -> DingError:
    return DingError(
        f"policy '{policy}' cannot be exported: {reason}; save it (agent.save) and load it with "
        "ding instead"
    )


def to_env(mapping: ActionMap, action: Any) -> Any:
    """`mapping` in torch, for stacked actions."""
    if isinstance(mapping, RegroupedAction):
        return to_env(mapping.nested, mapping.split(action))
    if isinstance(mapping, NestedAction):
        if isinstance(mapping.parts, dict):
            return {key: to_env(part, action[key]) for key, part in mapping.parts.items()}
        pairs = zip(mapping.parts, action, strict=True)
        return tuple(to_env(part, one) for part, one in pairs)
    if isinstance(mapping, AgentsAction):
        return to_env(mapping.one, action)
    if isinstance(mapping, DiscreteAction):
        return action + mapping.start
    if isinstance(mapping, ScaledAction):
        half, middle = torch.from_numpy(mapping.half), torch.from_numpy(mapping.middle)
        return mapping.shaped(action.to(half.dtype).clamp(-1, 1) * half + middle)
    assert isinstance(mapping, (MultiDiscreteAction, PlainAction))
    if isinstance(mapping, MultiDiscreteAction):
        action = action.to(torch.int64) + torch.from_numpy(np.asarray(mapping.start))
    return mapping.shaped(action.to(torch.from_numpy(np.zeros(0, mapping.dtype)).dtype))


def export(agent: Any, path: str | Path) -> None:
    """Write `path` (.pt2 or .onnx) and compare it with the agent before it stays."""
    path = Path(path)
    writers = {".pt2": _write_pt2, ".onnx": _write_onnx}
    if path.suffix not in writers:
        raise DingError(f"'{path}': agents are exported as .pt2 (torch.export) or .onnx")
    if agent.border.outward:
        name = agent.card.policy["type"]
        raise _refusal(name, "an env_wrapper of its run changes the actions")
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".unfinished_{path.name}")
    try:
        acting = Acting(agent).eval()
        with _own_errors(agent):
            run = writers[path.suffix](acting, observations(agent, 3), unfinished, describe(agent))
        for n_row in _ROWS:
            obs = observations(agent, n_row)
            _check_same(leaves_of(agent.act_on(obs)), run(obs), agent)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def _own_errors(agent: Any) -> Iterator[None]:
    try:
        yield
    except DingError:
        raise
    except Exception as error:
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        reason = (str(cause).strip().splitlines() or [""])[0][:200]
        name = agent.card.policy["type"]
        raise _refusal(name, f"{type(cause).__name__}: {reason}") from error


def describe(agent: Any) -> str:
    """Description of the agent in a file, as JSON."""
    wrappers = [w if isinstance(w, (str, dict)) else repr(w) for w in agent.border.wrappers]
    return json.dumps(
        {
            "ding": __version__,
            "policy": agent.card.policy["type"],
            "takes": "observations of the env" if not wrappers else "what these wrappers give",
            "wrappers": wrappers,
            "input": plain_space(agent.border.seen_space),
            "action": plain_space(agent.action_space),
        }
    )


def observations(agent: Any, n_row: int) -> Any:
    """Random observations as the wrappers give them, stacked."""
    space: gym.Space[Any] = deepcopy(agent.border.seen_space)
    space.seed(n_row)
    return narrow(stack([space.sample() for _ in range(n_row)]))


def _tensors(obs: Any) -> Any:
    return tree_map(torch.from_numpy, obs)


def leaves_of(tree: Any) -> Leaves:
    found: Leaves = []
    tree_map(lambda leaf: found.append(np.asarray(leaf)), tree)
    return found


def _names_of(tree: Any, name: str) -> list[str]:
    if isinstance(tree, dict):
        return [n for key, part in tree.items() for n in _names_of(part, f"{name}.{key}")]
    if isinstance(tree, tuple):
        return [n for i, part in enumerate(tree) for n in _names_of(part, f"{name}.{i}")]
    return [name]


def _dynamic(obs: Any) -> Any:
    rows = torch.export.Dim("rows", min=1, max=2**20)
    return (tree_map(lambda leaf: {0: rows}, obs),)


def _traced(acting: Acting, obs: Any) -> torch.export.ExportedProgram:
    with torch.no_grad():
        return torch.export.export(
            acting, (_tensors(obs),), dynamic_shapes=_dynamic(obs), strict=False
        )


def _write_pt2(acting: Acting, obs: Any, path: Path, text: str) -> Callable[[Any], Leaves]:
    with path.open("wb") as target:
        torch.export.save(_traced(acting, obs), target, extra_files={_DESCRIPTION: text})
    with path.open("rb") as source:
        module = torch.export.load(source).module()

    def run(obs: Any) -> Leaves:
        with torch.no_grad():
            return leaves_of(module(_tensors(obs)))

    return run


def _write_onnx(acting: Acting, obs: Any, path: Path, text: str) -> Callable[[Any], Leaves]:
    try:
        import onnxruntime
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise DingError(
            f"exporting to .onnx needs {error.name}: pip install 'ding-engine[onnx]'"
        ) from error
    names = _names_of(obs, "obs")
    with torch.no_grad():
        actions = _names_of(acting(_tensors(obs)), "action")
    with _quiet("torch.onnx"):  # warns of every package that it could have used
        program = torch.onnx.export(
            _traced(acting, obs), input_names=names, output_names=actions, verbose=False
        )
    assert program is not None
    program.model.metadata_props["ding"] = text
    program.save(str(path))
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])

    def run(obs: Any) -> Leaves:
        given = dict(zip(names, leaves_of(obs), strict=True))
        return [np.asarray(one) for one in session.run(None, given)]

    return run


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # torch's, about its own calls
            yield
    finally:
        logger.setLevel(level)


def _check_same(wanted: Leaves, found: Leaves, agent: Any) -> None:
    for mine, theirs in zip(wanted, found, strict=True):
        scale = 1.0 + float(np.abs(mine).max(initial=0.0))
        exact = mine.dtype.kind in "biu"
        if mine.shape != theirs.shape or not np.allclose(
            mine, theirs, 0, 0 if exact else _TOLERANCE * scale
        ):
            name = agent.card.policy["type"]
            raise _refusal(name, "the file acted otherwise than the agent and was removed")
