"""Where PyTorch's graph goes over into Pullback's: a `torch.autograd.Function` whose backward walks the latter.

Under `create_graph` the backward is such a function itself, of the cotangents and of the same inputs, so that PyTorch
can differentiate it again.
"""

from __future__ import annotations

from typing import Any, Sequence

import torch

from .. import backends, dtypes, modes
from ..autodiff.base import make, resolved
from ..autodiff.engine import alias, walk
from ..autodiff.forward import vjp_of
from ..autodiff.gradients import _conj
from ..autodiff.graph import Leaf, Node
from ..errors import GradientError
from ..tensors.tensor import Tensor


class Border:
    """An input: a variable of Pullback's graph that stands for a torch tensor."""

    def __init__(self, node: Any, device: torch.device) -> None:
        self.node = node
        self.device = device

    def to_torch(self, gradient: Any) -> Any:
        """A raw gradient on the torch tensor's device."""
        return backends.transfer(gradient, f"torch:{self.device}")

    def moved_to_torch(self, gradient: Tensor) -> Tensor:
        """A gradient on that device, recorded."""
        return gradient.to_device(f"torch:{self.device}")


class Captured(Border):
    """A variable of Pullback's that the function uses without having been given it.

    To PyTorch it is a variable without values. What `backward` of PyTorch's adds to that one's gradient is added to the
    gradient of Pullback's.
    """

    def __init__(self, leaf: Leaf, device: torch.device) -> None:
        super().__init__(leaf, device)
        self.leaf = leaf
        self.home = f"torch:{device}"  # where its gradient belongs, once there was one

    def to_torch(self, gradient: Any) -> Any:
        self.home = backends.of(gradient).device_of(gradient)
        return super().to_torch(gradient)

    def moved_to_torch(self, gradient: Tensor) -> Tensor:
        self.home = gradient.device
        return super().moved_to_torch(gradient)

    def handle(self) -> torch.Tensor:
        """The variable that PyTorch sees."""
        backend, _ = backends.for_device("torch:cpu")
        dtype = backend.raw_dtype(dtypes.get(self.leaf.dtype))
        handle = torch.empty((), dtype=dtype, device=self.device).expand(tuple(self.leaf.shape)).requires_grad_()
        handle.register_post_accumulate_grad_hook(self._deliver)
        return handle

    def _deliver(self, handle: torch.Tensor) -> None:
        assert handle.grad is not None
        gradient = make(backends.transfer(handle.grad.detach(), self.home), None)
        handle.grad = None
        cell = self.leaf.cell
        cell.value = gradient if cell.value is None else cell.value + gradient


class Recorded:
    """A stretch of Pullback's graph: its inputs, and the tensors that were made of them."""

    def __init__(self, name: str, inputs: Sequence[Border], outputs: Sequence[Tensor]) -> None:
        self.name = name
        self.inputs = list(inputs)
        self.outputs = [resolved(out) for out in outputs]
        self.tracked = [out._node is not None for out in self.outputs]
        self._versions = [_version(out._raw) for out in self.outputs]

    def cross(self, tensors: Sequence[torch.Tensor], shared: set[int] | None = None) -> list[torch.Tensor]:
        """The outputs as results of PyTorch's, made of `tensors`, which stand for the inputs.

        Those on the memory of `shared`, and those that nothing was computed for, are copied: PyTorch may write to them.
        """
        if not any(self.tracked):
            return [_own(out, shared) for out in self.outputs]
        return list(_Crossing.apply(self, shared, *tensors))

    def values(self, shared: set[int] | None) -> list[torch.Tensor]:
        return [_own(out, shared) for out in self.outputs]

    def pull(self, cotangents: Sequence[Any], wanted: Sequence[int], keep: bool) -> dict[int, Any]:
        """The gradients of the inputs at the places `wanted`, as torch tensors."""
        seeds = [(self.outputs[i]._node, _conjugate(cotangents[i])) for i in self._given(cotangents)]
        nodes = frozenset([self.inputs[i].node for i in wanted])
        found = walk(seeds, nodes, retain_graph=keep)
        result = {}
        for i in wanted:
            gradient = found.get(self.inputs[i].node)
            if gradient is not None:
                result[i] = self.inputs[i].to_torch(_conjugate(gradient))
        return result

    def pull_recorded(
        self, cotangents: Sequence[Any], wanted: Sequence[int], tensors: Sequence[torch.Tensor]
    ) -> dict[int, Any]:
        """The same as something that both libraries can differentiate again."""
        given = self._given(cotangents)
        moving = [i for i in given if cotangents[i].requires_grad]
        with modes.changed(recording=True):
            seeds = {i: make(cotangents[i].detach(), None) for i in given}
            variables = {i: alias(seeds[i]) for i in moving}
            sources = [make(None, self.inputs[i].node) for i in wanted]
            found = vjp_of(
                [self.outputs[i] for i in given], [_conj(variables.get(i, seeds[i])) for i in given], sources
            )
            gradients = {
                i: self.inputs[i].moved_to_torch(_conj(gradient))
                for i, gradient in zip(wanted, found)
                if gradient is not None
            }
        borders = [Border(variables[i]._node, cotangents[i].device) for i in moving]
        outer = Recorded(f"gradient of {self.name}", [*borders, *self.inputs], list(gradients.values()))
        return dict(zip(gradients, outer.cross([*[cotangents[i] for i in moving], *tensors])))

    def _given(self, cotangents: Sequence[Any]) -> list[int]:
        return [i for i, g in enumerate(cotangents) if g is not None and self.tracked[i]]

    def check_unchanged(self) -> None:
        if [_version(out._raw) for out in self.outputs] != self._versions:
            raise GradientError(
                f"{self.name}: a result was written in place, and its values are needed for the gradient. "
                "Write to `y.clone()`."
            )


class _Crossing(torch.autograd.Function):
    """The border itself."""

    @staticmethod
    def forward(ctx: Any, recorded: Recorded, shared: set[int] | None, *tensors: torch.Tensor) -> Any:
        ctx.recorded = recorded
        ctx.save_for_backward(
            *tensors
        )  # PyTorch sees to it that they have not changed, and to walks that come too late
        ctx.set_materialize_grads(False)
        values = recorded.values(shared)
        ctx.mark_non_differentiable(*[value for value, tracked in zip(values, recorded.tracked) if not tracked])
        return tuple(values)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        tensors = ctx.saved_tensors
        recorded = ctx.recorded
        recorded.check_unchanged()
        needed = ctx.needs_input_grad[2:]
        wanted = [i for i, is_needed in enumerate(needed) if is_needed]
        if torch.is_grad_enabled():
            found = recorded.pull_recorded(cotangents, wanted, tensors)
        else:
            found = recorded.pull(cotangents, wanted, _keeps_graph())
        return (None, None, *[found.get(i) for i in range(len(needed))])


def _keeps_graph() -> bool:
    """Whether PyTorch's walk that is under way was asked to keep the graph; where it does not tell, it is kept."""
    tell = getattr(torch._C._autograd, "_get_current_graph_task_keep_graph", None)
    return True if tell is None else tell()


def refuse_transformed(name: str, tensors: Sequence[torch.Tensor]) -> None:
    """Refuse tensors inside transforms that autograd's functions, and so the border, do not take part in."""
    is_wrapped = getattr(torch._C._functorch, "is_functorch_wrapped_tensor", lambda tensor: False)
    for tensor in tensors:
        if is_wrapped(tensor) or torch.autograd.forward_ad.unpack_dual(tensor).tangent is not None:
            raise GradientError(
                f"{name}: the transforms of torch.func and PyTorch's forward mode cannot look inside. Use "
                "`torch.autograd.grad`, or transform the function itself with pb.grad, pb.vjp or pb.jvp."
            )


def leaves_behind(outputs: Sequence[Tensor], known: frozenset[Node]) -> list[Leaf]:
    """The variables that `outputs` depend on, without going past the nodes that are known."""
    stack = [node for out in outputs if (node := resolved(out)._node) is not None]
    seen = set(stack)
    found = []
    while stack:
        node = stack.pop()
        if isinstance(node, Leaf):
            found.append(node)
        if node not in known:
            for parent in node.inputs:
                if parent not in seen:
                    seen.add(parent)
                    stack.append(parent)
    return found


def _own(out: Tensor, shared: set[int] | None) -> torch.Tensor:
    """A torch tensor of an output's values that is no part of Pullback's graph."""
    raw = out._raw.detach()
    if shared is not None:
        is_made = out._node is not None and not isinstance(out._node, Leaf)
        if not is_made or raw.untyped_storage().data_ptr() in shared:
            raw = raw.clone()
    return raw


def _version(raw: torch.Tensor) -> int:
    """A number that every write in place changes."""
    return 0 if raw.is_inference() else raw._version


def _conjugate(g: Any) -> Any:
    backend: Any = backends.of(g)
    return backend.xp.conj(g) if backend.is_complex(g) else g
