"""Adam on one flat buffer, and gradient steps that can be compiled whole.

Small networks on a CPU are bound by per-parameter calls, so every parameter becomes a view of one
tensor: zeroing, clipping and Adam are then one call each, whatever the number of layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from ding.torch_utils.compiled import CompiledStep
from ding.torch_utils.group import current
from ding.utils.errors import ConfigError, nearest

CLIP_TYPES = ("clip_norm", "clip_value")

Loss = Callable[[Any], tuple[Tensor, dict[str, Tensor]]]


class Adam(torch.optim.Adam):
    """Adam whose parameters live in one buffer, with clipping inside `step`."""

    def __init__(
        self,
        params: Iterable[nn.Parameter],
        lr: float = 1e-3,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        grad_clip_type: str | None = None,
        clip_value: float | None = None,
    ) -> None:
        if grad_clip_type is not None and grad_clip_type not in CLIP_TYPES:
            raise ConfigError(
                f"grad_clip_type = '{grad_clip_type}'{nearest(grad_clip_type, CLIP_TYPES)}"
            )
        if (grad_clip_type is None) != (clip_value is None):
            raise ConfigError(
                f"grad_clip_type = {grad_clip_type} and clip_value = {clip_value}: set both or none"
            )
        self._params = [p for p in params if p.requires_grad]
        self.flat = _flatten(self._params)
        self._grad_views = [p.grad for p in self._params if p.grad is not None]
        self._clip_type, self._clip_value = grad_clip_type, clip_value
        super().__init__(
            [self.flat], lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, fused=True
        )
        self.state[self.flat] = {
            "step": torch.zeros((), dtype=torch.float32, device=self.flat.device),
            "exp_avg": torch.zeros_like(self.flat),
            "exp_avg_sq": torch.zeros_like(self.flat),
        }

    # torch's own versions import its compiler (a second at start-up) to keep it out of them.
    def add_param_group(self, param_group: dict[str, Any]) -> None:
        _undecorated(torch.optim.Optimizer.add_param_group)(self, param_group)

    def state_dict(self) -> dict[str, Any]:
        return _undecorated(torch.optim.Optimizer.state_dict)(self)

    @property
    def parameters(self) -> list[nn.Parameter]:
        return self._params

    def zero_grad(self, set_to_none: bool = False) -> None:
        """Zero in place: the gradients stay views of the flat one."""
        for parameter, view in zip(self._params, self._grad_views, strict=True):
            parameter.grad = view
        assert self.flat.grad is not None
        self.flat.grad.zero_()

    def clip_(self, grad: Tensor) -> None:
        if self._clip_value is None:
            return
        if self._clip_type == "clip_norm":
            norm = torch.linalg.vector_norm(grad)
            grad.mul_((self._clip_value / (norm + 1e-6)).clamp_(max=1.0))
        else:
            grad.clamp_(-self._clip_value, self._clip_value)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        self._update()

    def _update(self) -> None:
        grad, state, group = self.flat.grad, self.state[self.flat], self.param_groups[0]
        assert grad is not None
        learners = current()
        if learners is not None:
            learners.average_(grad)
        self.clip_(grad)
        # The functional form: torch's `Adam.step` spends more on bookkeeping than on this update.
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

    def step_on(self, loss: Tensor) -> None:
        """Gradients of `loss` for these parameters alone, over the flat one, then `step`."""
        grads = gradients(loss, self._params)
        assert self.flat.grad is not None
        torch.cat([grad.reshape(-1) for grad in grads], out=self.flat.grad)
        self.step_written()

    @property
    def gradient_of(self) -> dict[Tensor, Tensor]:
        """Where `step_written` reads the gradient of each parameter."""
        return dict(zip(self._params, self._grad_views, strict=True))

    def step_written(self) -> None:
        """`step` with gradients that somebody has written to their places."""
        with torch.no_grad():
            self._update()  # not `step`: torch wraps that in hooks and profiling

    def step_with(self, grad: Tensor) -> None:
        """`step` with a gradient that is known without a loss, as long as the flat parameter."""
        assert self.flat.grad is not None
        with torch.no_grad():
            self.flat.grad.copy_(grad)
            self._update()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        # torch keeps the tensors it is given: two optimizers would then share their moments.
        _undecorated(torch.optim.Optimizer.load_state_dict)(self, deepcopy(state_dict))
        state = self.state[self.flat]
        state["step"] = state["step"].to(torch.float32).reshape(())


def gradients(loss: Tensor, params: Sequence[Tensor]) -> list[Tensor]:
    """Of a scalar for every parameter; zeros for those that it does not depend on.

    What `torch.autograd.grad` comes down to here. Its checks of all that one may ask of it took 8 %
    of an update of SAC with layers of 8, and 2 to 4 % with layers of 256.
    """
    if loss.numel() != 1:
        raise ValueError(f"a loss must be one number, got one of shape {tuple(loss.shape)}")
    one = torch.ones_like(loss)
    run, inputs = torch.autograd.graph._engine_run_backward, tuple(params)
    found = run((loss,), (one,), False, False, inputs, True, accumulate_grad=False)
    pairs = zip(params, found, strict=True)
    return [torch.zeros_like(p) if grad is None else grad for p, grad in pairs]


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


class GradientStep:
    """`step(batch)`: one optimizer step on `loss(batch) -> (scalar, metrics)`.

    Eager, or with `compiled` as a single graph of loss, gradient, clipping and Adam. That graph is
    made once for every shape of the batch: what the loss reads besides parameters and constants
    (a schedule, a temperature) must come in the batch.
    """

    def __init__(
        self, module: nn.Module, optimizer: Adam, loss: Loss, *, compiled: bool = False
    ) -> None:
        self._optimizer = optimizer
        self._loss = loss
        self._run: Callable[[Any], tuple[Tensor, dict[str, Tensor]]] = self._eager
        if compiled:
            self._run = CompiledStep(module, optimizer, loss)

    def __call__(self, batch: Any) -> tuple[Tensor, dict[str, Tensor]]:
        return self._run(batch)

    def _eager(self, batch: Any) -> tuple[Tensor, dict[str, Tensor]]:
        loss, metrics = self._loss(batch)
        self._optimizer.step_on(loss)
        return loss.detach(), metrics
