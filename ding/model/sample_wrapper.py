"""Wrappers that turn what a model says into actions.

Every row draws for itself, `action_mask` is respected, and the model's logits are left as they are.
Letters in shapes: B batch, A actions. A multi-discrete action has a list of logits, masks and
actions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ding.model.action_mask import masked
from ding.model.wrapper import IModelWrapper
from ding.torch_utils.distribution import categorical_sample

Eps = float | Tensor | Mapping[int, float] | Sequence[float]
Output = dict[str, Any]
Pick = Callable[[Tensor, Tensor | None], Tensor]
"""Logits and a mask to actions."""


def argmax(logit: Tensor, mask: Tensor | None = None) -> Tensor:
    return masked(logit, mask).argmax(dim=-1)


def multinomial(logit: Tensor, mask: Tensor | None = None, alpha: float = 1.0) -> Tensor:
    """One action per row with probability softmax(logit / alpha)."""
    return categorical_sample(masked(logit / alpha, mask))


def uniform(logit: Tensor, mask: Tensor | None = None) -> Tensor:
    """One action per row, all allowed ones alike."""
    return masked(torch.rand_like(logit), mask).argmax(dim=-1)


def mixed(action: Tensor, random_action: Tensor, eps: Eps) -> Tensor:
    """Each row explores by its own draw; `eps` is one number, or one per row."""
    if isinstance(eps, Mapping):
        eps = list(eps.values())
    threshold = torch.as_tensor(eps, dtype=torch.float32, device=action.device)
    if threshold.ndim:
        threshold = threshold.reshape(-1, *[1] * (action.ndim - 1))
    draws = torch.rand(action.shape, device=action.device)
    return torch.where(draws < threshold, random_action, action)


def each_head(pick: Pick, logit: Any, mask: Any) -> Any:
    """`pick` for one head, or for each in a list of heads."""
    if isinstance(logit, Tensor):
        return pick(logit, mask)
    masks = mask if mask is not None else [None] * len(logit)
    return [pick(one, one_mask) for one, one_mask in zip(logit, masks, strict=True)]


def _mu_sigma(logit: Any) -> tuple[Tensor, Tensor]:
    return (logit["mu"], logit["sigma"]) if isinstance(logit, Mapping) else (logit[0], logit[1])


def _reparam(logit: Any) -> Tensor:
    mu, sigma = _mu_sigma(logit)
    return mu + sigma * torch.randn_like(mu)


def _hybrid(action_type: Any, action_args: Any) -> dict[str, Any]:
    return {"action_type": action_type, "action_args": action_args}


# --- choices: from a model's output to actions ---------------------------------------------------


def _greedy(output: Output) -> Any:
    return each_head(argmax, output["logit"], output.get("action_mask"))


def _sampled(output: Output, alpha: float = 1.0) -> Any:
    pick = partial(multinomial, alpha=alpha)
    return each_head(pick, output["logit"], output.get("action_mask"))


def _explored(output: Output, exploit: Pick, eps: Eps) -> Any:
    def pick(logit: Tensor, mask: Tensor | None) -> Tensor:
        return mixed(exploit(logit, mask), uniform(logit, mask), eps)

    return each_head(pick, output["logit"], output.get("action_mask"))


def _eps_greedy(output: Output, eps: Eps) -> Any:
    return _explored(output, argmax, eps)


def _eps_sampled(output: Output, eps: Eps, alpha: float = 1.0) -> Any:
    return _explored(output, partial(multinomial, alpha=alpha), eps)


# --- wrappers ------------------------------------------------------------------------------------


class _SampleWrapper(IModelWrapper):
    """Adds `action` to a copy of the model's output; subclasses say how it is chosen."""

    _own_kwargs: tuple[str, ...] = ()
    """Options of a call that are for the choice and not for the model."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        choice = {key: kwargs.pop(key) for key in self._own_kwargs if key in kwargs}
        output = dict(self._model.forward(*args, **kwargs))
        output["action"] = self._action(output, **choice)
        return output

    def _action(self, output: Output, **choice: Any) -> Any:
        raise NotImplementedError


class ArgmaxSampleWrapper(_SampleWrapper):
    def _action(self, output: Output, **choice: Any) -> Any:
        return _greedy(output)


class MultinomialSampleWrapper(_SampleWrapper):
    """softmax(logit / alpha), `alpha` at the call."""

    _own_kwargs = ("alpha",)

    def _action(self, output: Output, **choice: Any) -> Any:
        return _sampled(output, **choice)


class EpsGreedySampleWrapper(_SampleWrapper):
    """Greedy, but with probability `eps` (at the call, a number or one per row) uniform."""

    _own_kwargs = ("eps",)

    def _action(self, output: Output, **choice: Any) -> Any:
        return _eps_greedy(output, **choice)


class EpsGreedyMultinomialSampleWrapper(_SampleWrapper):
    """Samples from softmax(logit / alpha), but with probability `eps` uniformly."""

    _own_kwargs = ("eps", "alpha")

    def _action(self, output: Output, **choice: Any) -> Any:
        return _eps_sampled(output, **choice)


class DeterministicSampleWrapper(_SampleWrapper):
    """The mean of the Gaussian."""

    def _action(self, output: Output, **choice: Any) -> Any:
        return _mu_sigma(output["logit"])[0]


class ReparamSampleWrapper(_SampleWrapper):
    """A draw from the Gaussian through which gradients flow."""

    def _action(self, output: Output, **choice: Any) -> Any:
        return _reparam(output["logit"])


class HybridArgmaxSampleWrapper(_SampleWrapper):
    """Greedy action type together with the model's action arguments."""

    def _action(self, output: Output, **choice: Any) -> Any:
        return _hybrid(_greedy(output), output["action_args"])


class HybridEpsGreedySampleWrapper(_SampleWrapper):
    _own_kwargs = ("eps",)

    def _action(self, output: Output, **choice: Any) -> Any:
        return _hybrid(_eps_greedy(output, **choice), output["action_args"])


class HybridEpsGreedyMultinomialSampleWrapper(_SampleWrapper):
    _own_kwargs = ("eps", "alpha")

    def _action(self, output: Output, **choice: Any) -> Any:
        return _hybrid(_eps_sampled(output, **choice), output["action_args"])


class HybridReparamMultinomialSampleWrapper(_SampleWrapper):
    """Action type and arguments both drawn from {'action_type': logit, 'action_args': Gaussian}."""

    def _action(self, output: Output, **choice: Any) -> Any:
        logit = output["logit"]
        action_type = each_head(multinomial, logit["action_type"], output.get("action_mask"))
        return _hybrid(action_type, _reparam(logit["action_args"]))


class HybridDeterministicArgmaxSampleWrapper(_SampleWrapper):
    def _action(self, output: Output, **choice: Any) -> Any:
        logit = output["logit"]
        action_type = each_head(argmax, logit["action_type"], output.get("action_mask"))
        return _hybrid(action_type, _mu_sigma(logit["action_args"])[0])


class CombinationArgmaxSampleWrapper(IModelWrapper):
    """The `shot_number` best actions of each row, all different: (B, shot_number)."""

    def forward(self, shot_number: int, *args: Any, **kwargs: Any) -> Any:
        output = dict(self._model.forward(*args, **kwargs))
        logit = masked(output["logit"], output.get("action_mask"))
        output["action"] = logit.topk(shot_number, dim=-1).indices
        return output


class CombinationMultinomialSampleWrapper(IModelWrapper):
    """`shot_number` different actions drawn for each row: (B, shot_number)."""

    def forward(self, shot_number: int, *args: Any, **kwargs: Any) -> Any:
        output = dict(self._model.forward(*args, **kwargs))
        prob = torch.softmax(masked(output["logit"], output.get("action_mask")), dim=-1)
        rows = prob.reshape(-1, prob.shape[-1])
        drawn = torch.multinomial(rows, shot_number, replacement=False)
        output["action"] = drawn.reshape(*prob.shape[:-1], shot_number)
        return output
