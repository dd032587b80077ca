"""Optimizers with limits on their gradients, whose options are explained in `gradients.py`.

Small networks on a CPU are bound by per-parameter calls, so Adam makes every parameter a view of
one tensor: zeroing, clipping and the update are then one call each, whatever the number of layers.
Every optimizer averages its gradients with those of the other learners first, if there are any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any, cast

import torch
from torch import Tensor, nn

from ding.torch_utils.distributed import Group, current
from ding.torch_utils.gradients import GradientLimits

State = dict[str, Any]


class Adam(torch.optim.Adam):
    """Adam whose parameters live in one buffer, `flat`."""

    def __init__(
        self,
        params: Iterable[nn.Parameter],
        lr: float = 1e-3,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        **gradient_options: Any,
    ) -> None:
        self._params = [p for p in params if p.requires_grad]
        self.flat = _flatten(self._params)
        self._grad = cast(Tensor, self.flat.grad)
        self._grad_views = [p.grad for p in self._params]
        self.limits = GradientLimits([self.flat.data], type(self).__name__, gradient_options)
        super().__init__(
            [self.flat], lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, fused=True
        )
        self.state[self.flat] = {
            "step": torch.zeros((), dtype=torch.float32, device=self.flat.device),
            "exp_avg": torch.zeros_like(self.flat),
            "exp_avg_sq": torch.zeros_like(self.flat),
        }

    @property
    def parameters(self) -> list[nn.Parameter]:
        return self._params

    def zero_grad(self, set_to_none: bool = False) -> None:
        """Zero in place: the gradients stay views of the flat one."""
        for parameter, view in zip(self._params, self._grad_views, strict=True):
            if parameter.grad is not view:
                parameter.grad = view
        self._grad.zero_()

    def step_on(self, loss: Tensor) -> None:
        """One step on the gradient of `loss`; only these parameters get one."""
        self.zero_grad()
        loss.backward(inputs=self._params)
        self._update()

    def step_with(self, grad: Tensor) -> None:
        """One step with a gradient that is known without a loss, as long as the flat parameter."""
        self._grad.copy_(grad)
        self._update()

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        self._update()

    def _update(self) -> None:
        """`step` without the hooks and profiling that torch wraps it in."""
        grad, state, group = self._grad, self.state[self.flat], self.param_groups[0]
        with torch.no_grad():
            learners = current()
            if learners is not None:
                learners.average_(grad)
            if self.limits.parts:
                self.limits.apply_([grad])
            # Private, since the public forms cost more than 3 % of an update of DQN (1.05 ms): this
            # takes 54 us, `torch.optim.adam.adam` 88, `torch.optim.Adam.step` 150.
            state["step"] += 1
            torch._fused_adam_(
                [self.flat.data],
                [grad],
                [state["exp_avg"]],
                [state["exp_avg_sq"]],
                [],
                [state["step"]],
                lr=group["lr"],
                beta1=group["betas"][0],
                beta2=group["betas"][1],
                weight_decay=group["weight_decay"],
                eps=group["eps"],
                amsgrad=False,
                maximize=False,
            )

    # torch's own versions import its compiler (a second at start-up) to keep it out of them.
    def add_param_group(self, param_group: dict[str, Any]) -> None:
        _undecorated(torch.optim.Optimizer.add_param_group)(self, param_group)

    def state_dict(self) -> State:
        state = _undecorated(torch.optim.Optimizer.state_dict)(self)
        return {**state, "limits": self.limits.state_dict()}

    def load_state_dict(self, state_dict: State) -> None:
        # torch keeps the tensors it is given: two optimizers would then share their moments.
        own = deepcopy({k: v for k, v in state_dict.items() if k != "limits"})
        _undecorated(torch.optim.Optimizer.load_state_dict)(self, own)
        state = self.state[self.flat]
        state["step"] = state["step"].to(torch.float32).reshape(())
        self.limits.load_state_dict(state_dict.get("limits", {}))


def _undecorated(method: Callable[..., Any]) -> Callable[..., Any]:
    return getattr(method, "__wrapped__", method)


def _flatten(params: list[nn.Parameter]) -> nn.Parameter:
    """Re-home parameters and gradients as views of one flat parameter, and return it."""
    if not params:
        raise ValueError("an optimizer needs at least one parameter that requires a gradient")
    flat = nn.Parameter(torch.cat([p.detach().reshape(-1) for p in params]))
    flat.grad = torch.zeros_like(flat)
    sizes = [p.numel() for p in params]
    values, grads = flat.data.split(sizes), flat.grad.split(sizes)
    for parameter, value, grad in zip(params, values, grads, strict=True):
        parameter.data = value.view_as(parameter)
        parameter.grad = grad.view_as(parameter)
    return flat


class AdamW(torch.optim.AdamW):
    """Adam with decoupled weight decay."""

    def __init__(
        self,
        params: Iterable[nn.Parameter],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        **gradient_options: Any,
    ) -> None:
        super().__init__(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)
        _limit(self, gradient_options)


class RMSprop(torch.optim.RMSprop):
    def __init__(
        self,
        params: Iterable[nn.Parameter],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        *,
        centered: bool = False,
        **gradient_options: Any,
    ) -> None:
        super().__init__(params, lr, alpha, eps, weight_decay, momentum, centered)
        _limit(self, gradient_options)

    def step_on(self, loss: Tensor) -> None:
        """One step on the gradient of `loss`."""
        self.zero_grad()
        loss.backward()
        self.step()


class SGD(torch.optim.SGD):
    """Stochastic gradient descent with momentum."""

    def __init__(
        self,
        params: Iterable[nn.Parameter],
        lr: float = 1e-2,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        **gradient_options: Any,
    ) -> None:
        super().__init__(params, lr, momentum=momentum, weight_decay=weight_decay)
        _limit(self, gradient_options)

    def step_on(self, loss: Tensor) -> None:
        """One step on the gradient of `loss`."""
        self.zero_grad()
        loss.backward()
        self.step()


def _limit(optimizer: torch.optim.Optimizer, options: dict[str, Any]) -> None:
    """Average and limit gradients before every step; their history is in the optimizer's state."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    limits = GradientLimits(parameters, type(optimizer).__name__, options)

    @torch.no_grad()
    def before_step(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        grads = _gradients(parameters)
        learners = current()
        if learners is not None:
            _average_(grads, learners)
        limits.apply_(grads)

    def after_saving(_: torch.optim.Optimizer, state: State) -> State:
        return {**state, "limits": limits.state_dict()}

    def before_loading(_: torch.optim.Optimizer, state: State) -> State:
        limits.load_state_dict(state.get("limits", {}))
        return {key: value for key, value in state.items() if key != "limits"}

    optimizer.register_step_pre_hook(before_step)
    optimizer.register_state_dict_post_hook(after_saving)
    optimizer.register_load_state_dict_pre_hook(before_loading)


def _gradients(parameters: list[Tensor]) -> list[Tensor]:
    """One gradient per parameter; one that was not reached counts as zero."""
    for parameter in parameters:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    return [cast(Tensor, parameter.grad) for parameter in parameters]


def _average_(grads: list[Tensor], group: Group) -> None:
    """Average all at once: every call waits for all members."""
    flat = torch.cat([grad.reshape(-1) for grad in grads])
    group.average_(flat)
    for grad, mean in zip(grads, flat.split([grad.numel() for grad in grads]), strict=True):
        grad.copy_(mean.view_as(grad))
