"""Gradient steps: eager, or compiled as one graph of loss, gradient, clipping and Adam.

A compiled step is traced to tensor operations and handed to the code generator as it is: no Python
of the policy runs again, so nothing has to be guarded. That saves a sixth of a small network's
update.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ding.torch_utils.distributed import current
from ding.torch_utils.optim import SGD, Adam, RMSprop
from ding.utils.errors import ConfigError

Result = tuple[Tensor, dict[str, Tensor]]
Loss = Callable[[Any], Result]

_CPU_OPTIONS: dict[str, Any] = {
    # Calling the kernels from C++ instead of Python took a third off an update of PPO.
    "cpp_wrapper": True,
    # tanh by way of exp: faster, and different by less than 1e-6.
    "cpp.use_decompose_tanh": True,
    # It would put back what `_product_then_bias` takes apart; DQN, PPO and SAC lost nothing by it.
    "pattern_matcher": False,
}


class GradientStep:
    """`step(batch)`: one optimizer step on `loss(batch) -> (scalar, metrics)`.

    A compiled graph is made once for every shape of the batch: what the loss reads besides
    parameters and constants (a schedule, a temperature) must come in the batch.
    """

    def __init__(
        self,
        module: nn.Module,
        optimizer: Adam | RMSprop | SGD,
        loss: Loss,
        *,
        compiled: bool = False,
    ) -> None:
        self._optimizer, self._loss = optimizer, loss
        self._compiled: CompiledStep | None = None
        if compiled:
            if not isinstance(optimizer, Adam):
                raise ConfigError("a compiled update needs Adam; set policy.learn.compile = False")
            self._compiled = CompiledStep(module, optimizer, loss)

    def __call__(self, batch: Any) -> Result:
        if self._compiled is not None:
            return self._compiled(batch)
        loss, metrics = self._loss(batch)
        self._optimizer.step_on(loss)
        return loss.detach(), metrics


class CompiledStep:
    """`step(batch) -> (loss, metrics)`; compiles when a batch of a new shape comes."""

    def __init__(self, module: nn.Module, optimizer: Adam, loss: Loss) -> None:
        self._optimizer = optimizer
        self._step = _adam_step(module, optimizer, loss)
        self._graphs: dict[Any, Callable[..., Result]] = {}
        self._lr = torch.empty(())
        self._lr_value: float | None = None

    def __call__(self, batch: Any) -> Result:
        optimizer = self._optimizer
        state = optimizer.state[optimizer.flat]
        leaves = _leaves(batch)
        inputs = [
            optimizer.flat.data,
            *(state["step"], state["exp_avg"], state["exp_avg_sq"]),
            self._learning_rate(),
            *leaves,
        ]
        kind = tuple([(leaf.shape, leaf.stride(), leaf.dtype) for leaf in leaves])
        with torch.no_grad():
            if kind not in self._graphs:
                self._graphs[kind] = self._compiled(inputs, batch)
            return self._graphs[kind](inputs)

    def _learning_rate(self) -> Tensor:
        lr = self._optimizer.param_groups[0]["lr"]
        if lr != self._lr_value:
            self._lr_value, self._lr = lr, torch.tensor(lr)
        return self._lr

    def _compiled(self, inputs: list[Tensor], batch: Any) -> Callable[[list[Tensor]], Result]:
        if current() is not None:
            raise ConfigError(
                "a compiled update can't wait for other learners to average gradients with; set "
                "policy.learn.compile = False"
            )
        import torch._inductor
        from torch.fx.experimental.proxy_tensor import make_fx

        names: list[str] = []

        def flat_step(*leaves: Tensor) -> list[Tensor]:
            flat, step, mean, square, lr, *rest = leaves
            loss, metrics = self._step(flat, step, mean, square, lr, _rebuilt(batch, iter(rest)))
            names[:] = metrics
            return [loss, *metrics.values()]

        on_cpu = inputs[0].device.type == "cpu"
        apart = {torch.ops.aten.addmm.default: _product_then_bias} if on_cpu else None
        trace = make_fx(flat_step, apart, tracing_mode="fake", _allow_non_fake_inputs=True)
        graph, captured = _with_inputs_for_captured(trace(*inputs), len(inputs))
        options = _CPU_OPTIONS if on_cpu else {}
        example: list[Any] = [*inputs, *(tensor.data for tensor in captured)]
        # Private, since `torch.compile` guards what needs no guard here: an update of DQN takes 609
        # us with it, 492 so.
        run = torch._inductor.compile(graph, example, options=options)

        def step(inputs: list[Tensor]) -> Result:
            loss, *metrics = run(*inputs, *[tensor.data for tensor in captured])
            return loss, dict(zip(names, metrics, strict=True))

        return step


def _adam_step(module: nn.Module, optimizer: Adam, loss: Loss) -> Callable[..., Result]:
    """Loss, gradient, clipping and Adam as a function of tensors that it changes in place."""
    loss_module = _LossModule(module, loss)
    names = _names_of(loss_module, optimizer.parameters)
    shapes = [p.shape for p in optimizer.parameters]
    sizes = [p.numel() for p in optimizer.parameters]
    group = optimizer.param_groups[0]
    (beta1, beta2), eps, decay = group["betas"], group["eps"], group["weight_decay"]

    def adam_step(
        flat: Tensor, step: Tensor, mean: Tensor, square: Tensor, lr: Tensor, batch: Any
    ) -> Result:
        def of_flat(flat: Tensor) -> Result:
            pieces = zip(names, flat.split(sizes), shapes, strict=True)
            parameters = {
                name: piece.view(shape) for places, piece, shape in pieces for name in places
            }
            # torch's own tying leaves the traced tensors behind in modules that have two names.
            return torch.func.functional_call(loss_module, parameters, (batch,), tie_weights=False)

        grad, (value, metrics) = torch.func.grad_and_value(of_flat, has_aux=True)(flat)
        optimizer.limits.apply_([grad])
        if decay:
            grad = grad.add(flat, alpha=decay)
        step.add_(1)
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        scale = lr / (1 - _once(beta1**step))
        flat.sub_(scale * mean / ((square / (1 - _once(beta2**step))).sqrt() + eps))
        return value, metrics

    return adam_step


def _once(scalar: Tensor) -> Tensor:
    """Computed by itself: fused into the loop over all parameters it would be computed for each."""
    return scalar.expand(16).amax()  # A reduction ends a loop.


def _product_then_bias(
    bias: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """Linear layers of a CPU: the kernel of the activation adds the bias as it goes.

    Together with the product it is first copied to every row of the output.
    """
    product = torch.mm(a, b)
    return (product if alpha == 1 else alpha * product) + (bias if beta == 1 else beta * bias)


def _names_of(module: nn.Module, parameters: Sequence[nn.Parameter]) -> list[list[str]]:
    """Where each parameter is to be found; a module that is there twice counts once."""
    places: dict[int, list[str]] = {id(parameter): [] for parameter in parameters}
    for prefix, part in module.named_modules():
        for name, parameter in part.named_parameters(recurse=False, remove_duplicate=False):
            if id(parameter) in places:
                places[id(parameter)].append(f"{prefix}.{name}")
    return list(places.values())


class _LossModule(nn.Module):
    """The loss as a module, so that `functional_call` can hand it other parameters."""

    def __init__(self, module: nn.Module, loss: Loss) -> None:
        super().__init__()
        self.module = module
        self._loss = loss

    def forward(self, batch: Any) -> Result:
        return self._loss(batch)


def _with_inputs_for_captured(
    graph: torch.fx.GraphModule, n_input: int
) -> tuple[torch.fx.GraphModule, list[Tensor]]:
    """Turn tensors that the trace met on its way (other networks' weights) into inputs.

    As constants of the graph their later changes could be missed.
    """
    last = graph.graph.find_nodes(op="placeholder")[n_input - 1]
    inputs: dict[str, torch.fx.Node] = {}
    for node in graph.graph.find_nodes(op="get_attr"):
        if node.target not in inputs:
            with graph.graph.inserting_after(last):
                last = inputs[node.target] = graph.graph.placeholder(f"captured_{len(inputs)}")
        node.replace_all_uses_with(inputs[node.target])
        graph.graph.erase_node(node)
    for node in graph.graph.find_nodes(op="placeholder"):
        node.meta.clear()  # What the trace noted there is not known of the new ones.
    captured = [getattr(graph, name) for name in inputs]
    # The code generator adds the parameters that a module still owns to its inputs.
    return torch.fx.GraphModule(nn.Module(), graph.graph), captured


def _leaves(tree: Any) -> list[Tensor]:
    if isinstance(tree, Tensor):
        return [tree]
    parts = tree.values() if isinstance(tree, dict) else tree
    return [leaf for part in parts for leaf in _leaves(part)]


def _rebuilt(like: Any, leaves: Iterator[Tensor]) -> Any:
    if isinstance(like, Tensor):
        return next(leaves)
    if isinstance(like, dict):
        return {key: _rebuilt(part, leaves) for key, part in like.items()}
    return type(like)(_rebuilt(part, leaves) for part in like)
