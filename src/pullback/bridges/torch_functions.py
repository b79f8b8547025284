"""`from_torch`: functions and modules of PyTorch as differentiable functions on Pullback's tensors."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from functools import cache, update_wrapper
from typing import Any, Callable, Sequence

from .. import backends, tree
from ..autodiff.creation import asarray
from ..errors import DeviceError, DtypeError, GradientError
from ..tensors.tensor import Tensor
from .foreign import accelerator, common_home, is_array, record, refuse_trace

__all__ = ["from_torch"]


def require_torch(caller: str) -> Any:
    """The module torch, or an error that says who needs it."""
    try:
        import torch
    except ImportError as error:
        raise DeviceError(f"{caller} needs the package torch, which cannot be imported here ({error}).") from error
    return torch


def from_torch(function: Callable[..., Any]) -> Any:
    """A function or a `torch.nn.Module` of PyTorch as a differentiable function on Pullback's tensors.

    Inside a graph it is one operation, whose gradients PyTorch computes, to any order that PyTorch has. Arguments and
    results may be trees; arguments that are no arrays are passed on as they are. Tensors on PyTorch's devices are
    passed without a copy; others are moved there, and the results come back to the device of the arguments. Results
    that have no gradient in PyTorch have none here.

    A module becomes a `pb.nn.Module` whose parameters and buffers are its own, under the same names and on the same
    memory, so that Pullback's optimizers train it: see `TorchModule`.

    Parameters
    ----------
    function : callable or torch.nn.Module
        What computes with torch tensors and returns torch tensors. It must not write to its arguments.

    Returns
    -------
    callable
        A function on tensors; for a module, a `TorchModule`.

    Examples
    --------
    >>> import torch, pullback as pb
    >>> rms = pb.from_torch(lambda x: torch.sqrt(torch.mean(x * x)))
    >>> x = pb.tensor([1.0, 7.0], requires_grad=True)
    >>> rms(x).backward()
    >>> x.grad
    tensor([0.1, 0.7])
    """
    torch = require_torch("from_torch")
    if isinstance(function, torch.nn.Module):
        from .torch_modules import TorchModule

        return TorchModule(function)
    if isinstance(function, (Tensor, torch.Tensor)):
        raise DtypeError(
            f"from_torch: expected a function or a torch.nn.Module, got a tensor of shape {tuple(function.shape)}. "
            "Write `pb.asarray(t.detach())` to make a torch tensor one of Pullback's."
        )
    if isinstance(function, type) or not callable(function):
        made = " Make one first: `from_torch(Module())`." if isinstance(function, type) else ""
        raise DtypeError(f"from_torch: expected a function or a torch.nn.Module, got {function!r:.60}.{made}")
    name = f"from_torch({getattr(function, '__name__', type(function).__name__)})"

    def bridged(*args: Any, **kwargs: Any) -> Any:
        return run(name, lambda captured, args, kwargs: function(*args, **kwargs), (), args, kwargs, None)

    return update_wrapper(bridged, function, updated=())


def run(
    name: str,
    function: Callable[[list[Any], Any, Any], Any],
    captured: Sequence[Tensor],
    args: Any,
    kwargs: Any,
    device: str | None,
) -> Any:
    """`function(captured, args, kwargs)` on torch tensors, as one operation on `captured` and the arrays in the rest.

    Everything is moved to `device`; without one, to PyTorch's device that is nearest.
    """
    import torch

    from .torch_calls import TorchCall

    refuse_trace(name, "PyTorch")
    leaves, structure = tree.flatten((args, kwargs))
    places = [i for i, leaf in enumerate(leaves) if is_array(leaf)]
    for i in places:
        if isinstance(leaves[i], torch.Tensor) and leaves[i].requires_grad:
            raise GradientError(
                f"{name}: an argument is a torch tensor of shape {tuple(leaves[i].shape)} that requires a gradient of "
                "PyTorch's, which would be lost. Pass `t.detach()`, or make it a variable of Pullback's: "
                "`pb.asarray(t.detach()).set_requires_grad(True)`."
            )
    tensors = [asarray(leaves[i]) for i in places]
    home = common_home(name, tensors)
    is_torchs = home is None or home.startswith("torch:")
    target = device or (None if is_torchs else accelerator(home, "torch:cuda") or "torch:cpu")
    if target is not None:
        tensors = [x if x.device == target else x.to_device(target) for x in tensors]
        captured = [x if x.device == target else x.to_device(target) for x in captured]
    shape: list[tree.Structure] = []

    def flat(inputs: list[Any]) -> list[Any]:
        for i, x in zip(places, inputs[len(captured) :]):
            leaves[i] = x
        result = function(inputs[: len(captured)], *tree.unflatten(structure, leaves))
        outputs, found = tree.flatten(_as_known(result))
        for path, out in zip(found._paths(), outputs):
            _check_output(name, path, out)
        shape.append(found)
        return outputs

    outputs = record(TorchCall(name, flat), [*captured, *tensors])
    if home is not None and not is_torchs:
        outputs = tuple([out.to_device(home) for out in outputs])
    return tree.unflatten(shape[0], outputs)


def _as_known(result: Any) -> Any:
    """A result in containers that `pb.tree` can make again: other kinds of dict become dicts."""

    def is_unknown(x: Any) -> bool:
        if isinstance(x, tuple) and hasattr(x, "n_sequence_fields"):
            _register_return_type(type(x))
        return isinstance(x, dict) and type(x) not in (dict, OrderedDict, defaultdict)

    return tree.map(lambda x: _as_known(dict(x)) if is_unknown(x) else x, result, is_leaf=is_unknown)


@cache
def _register_return_type(kind: type) -> None:
    """Make one of `torch.return_types`, as `torch.max` gives, a container."""
    tree.register(kind, lambda x: (x, None), lambda data, children: kind(children))


def _check_output(name: str, path: str, out: Any) -> None:
    import torch

    where = f"result{path}" if path else "the result"
    if not isinstance(out, torch.Tensor):
        hint = ""
        if backends.of(out) is backends.NUMPY:
            hint = " A function that is written with NumPy's functions needs no bridge: call it on Pullback's tensors."
        raise DtypeError(
            f"{name}: {where} is of type {type(out).__name__}; expected torch tensors, in lists, tuples and dicts."
            + hint
        )
    if out.layout is not torch.strided:
        raise DtypeError(f"{name}: {where} has the layout {out.layout}; write `.to_dense()`.")
    backend, _ = backends.for_device("torch:cpu")
    try:
        backend.dtype_of(out)
    except KeyError:
        raise DtypeError(f"{name}: {where} is {out.dtype}, which Pullback does not have; convert it.") from None
