"""Calls of PyTorch functions: PyTorch's autograd records them, and pulls cotangents back."""

from __future__ import annotations

from typing import Any, Callable, Iterator, Sequence

import torch

from .. import modes
from ..errors import GradientError, PullbackError
from .foreign import Call, PulledCall

Function = Callable[[list[Any]], list[Any]]


class TorchCall(Call):
    """One run of `function`, from a list of torch tensors to another one, with PyTorch's graph of it.

    The graph is let go when Pullback lets this call go, not when it is first walked.
    """

    def __init__(self, name: str, function: Function | None) -> None:
        self.name = name
        self._function = function
        self.inputs: list[Any] = []  # those in PyTorch's graph
        self.outputs: list[Any] = []

    def run(self, raws: Sequence[Any]) -> tuple[Any, ...]:
        function, self._function = self._function, None  # it holds the arguments
        assert function is not None
        is_enabled = (
            torch.is_grad_enabled() and modes.is_recording()
        )  # also for what the function differentiates itself
        recording = any(self.needs) and is_enabled
        inputs = [_input(raw, recording and needed) for raw, needed in zip(raws, self.needs)]
        versions = [_version(raw) for raw in raws]
        try:
            with torch.set_grad_enabled(is_enabled):
                outputs = function(inputs)
        except RuntimeError as error:
            raise _explained_run(self.name, error) from error
        if [_version(raw) for raw in raws] != versions:
            raise GradientError(f"{self.name}: {_WRITES}")
        if is_enabled:
            _refuse_captured(self.name, inputs, outputs)
        return self._keep(inputs, outputs, recording)

    def _keep(self, inputs: list[Any], outputs: list[Any], recording: bool) -> tuple[Any, ...]:
        self.tracked = tuple([recording and out.requires_grad for out in outputs])
        if any(self.tracked):
            self.inputs, self.outputs = inputs, outputs
        return tuple([out.detach() for out in outputs])

    def pull(self, cotangents: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(self.gradients(cotangents, create_graph=False))

    def gradients(self, cotangents: Sequence[Any], create_graph: bool) -> list[Any]:
        """The gradients of the tracked inputs. Pullback's are plain transposes, PyTorch's conjugates of these."""
        pairs = [(out, g) for out, g in zip(self.outputs, cotangents) if g is not None and out.requires_grad]
        wanted = [x for x, needed in zip(self.inputs, self.needs) if needed]
        if not pairs:
            return [None] * len(wanted)
        try:
            found = torch.autograd.grad(
                [out for out, _ in pairs],
                wanted,
                [_conjugate(g) for _, g in pairs],
                retain_graph=True,
                create_graph=create_graph,
                allow_unused=True,
            )
        except RuntimeError as error:
            if isinstance(error, (PullbackError, torch.OutOfMemoryError)):
                raise
            raise GradientError(f"{self.name}: PyTorch has no gradient here: {error}") from error
        return [None if g is None else _conjugate(g) for g in found]

    def pulled(self, given: tuple[bool, ...]) -> PulledCall:
        return _PulledTorchCall(self, given)


class _PulledTorchCall(TorchCall, PulledCall):
    """The pull through a call, recorded by PyTorch in turn: its inputs are in the graph of that call already."""

    def __init__(self, inner: TorchCall, given: tuple[bool, ...]) -> None:
        super().__init__(f"gradient of {inner.name}", None)
        self._inner: TorchCall | None = inner
        self._given = given

    def run(self, raws: Sequence[Any]) -> tuple[Any, ...]:
        inner, self._inner = self._inner, None
        assert inner is not None
        recording = any(self.needs)
        count = sum(self._given)
        # All cotangents, since PyTorch says that a function has no second derivative only where one of them is tracked.
        cotangents = [_input(raw, recording) for raw in raws[:count]]
        rest = iter(cotangents)
        with torch.enable_grad():
            found = inner.gradients([next(rest) if there else None for there in self._given], create_graph=recording)
        inputs = cotangents + [x for x, needed in zip(inner.inputs, inner.needs) if needed]
        self.found = tuple([g is not None for g in found])
        return self._keep(inputs, [g for g in found if g is not None], recording)

    def gradients(self, cotangents: Sequence[Any], create_graph: bool) -> list[Any]:
        found = super().gradients(cotangents, create_graph)
        # What is marked once_differentiable leads nowhere in PyTorch's graph, and would pass for a constant.
        if any(g is None for g in found) and any(node.name() == _DEAD_END for node in _nodes_behind(self.outputs)):
            raise GradientError(f"{self.name}: PyTorch has no gradient here: a function is once_differentiable.")
        return found


_DEAD_END = "torch::autograd::Error"
_WRITES = (
    "the function writes to one of its arguments in place, and tensors of Pullback's never change through another one. "
    "Let it write to `x.clone()`."
)


def _input(raw: Any, tracked: bool) -> Any:
    """A raw array as a torch tensor of its own on the same memory."""
    return raw.detach().requires_grad_() if tracked else raw.detach()


def _version(raw: Any) -> int:
    """A number that every write in place changes."""
    return 0 if raw.is_inference() else raw._version


def _refuse_captured(name: str, inputs: list[Any], outputs: list[Any]) -> None:
    """A gradient is never lost silently: refuse variables of PyTorch's that are in the graph and no inputs."""
    own = {id(x) for x in inputs}
    for node in _nodes_behind(outputs):
        captured = getattr(node, "variable", None)
        if captured is not None and id(captured) not in own:
            raise GradientError(
                f"{name}: the function uses a torch tensor of shape {tuple(captured.shape)} that requires a gradient "
                "and is no argument, so its gradient would be lost. Pass it as an argument, give the whole "
                "torch.nn.Module to pb.from_torch, or do without it: `.requires_grad_(False)`, or a call inside "
                "pb.no_grad()."
            )


def _nodes_behind(outputs: list[Any]) -> Iterator[Any]:
    """The nodes of PyTorch's graph."""
    stack = [out.grad_fn for out in outputs if out.grad_fn is not None]
    seen = set(stack)
    while stack:
        node = stack.pop()
        yield node
        for parent, _ in node.next_functions:
            if parent is not None and parent not in seen:
                seen.add(parent)
                stack.append(parent)


def _conjugate(g: Any) -> Any:
    return torch.conj_physical(g) if g.is_complex() else g


def _explained_run(name: str, error: RuntimeError) -> Exception:
    """An error of the user's function as one of ours, where we know what to write."""
    text = str(error)
    if isinstance(error, PullbackError):
        return error
    if "numpy()" in text and "requires grad" in text:
        return GradientError(
            f"{name}: the function turns a torch tensor into a NumPy array, where its gradient would be lost. Write it "
            "with torch's functions; one that is written with NumPy's needs no bridge: call it on Pullback's tensors."
        )
    if "in-place operation" in text and "leaf" in text:
        return GradientError(f"{name}: {_WRITES}")
    return error
