"""`to_torch`: functions of Pullback's as functions on torch tensors that PyTorch's autograd differentiates."""

from __future__ import annotations

from functools import update_wrapper
from typing import Any, Callable

from .. import modes, tree
from ..autodiff.base import make
from ..autodiff.engine import alias
from ..errors import DtypeError, GradientError
from ..tensors.tensor import Tensor
from ..transforms.lifting import must_stay, running
from .torch_functions import require_torch

__all__ = ["to_torch"]


def to_torch(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of Pullback's as a function on torch tensors, which PyTorch's autograd differentiates.

    Torch tensors among the arguments, also in lists, tuples and dicts, become tensors of Pullback's without a copy;
    what the function returns becomes torch tensors. Gradients are Pullback's, to any order: `torch.autograd.grad` with
    `create_graph=True` works. Variables of Pullback's that the function uses without getting them as arguments have
    their gradients added to their `.grad` by `backward` of PyTorch's, as torch's own parameters have.

    Inside `torch.no_grad()` or `pb.no_grad()` nothing is recorded. The transforms of `torch.func` and forward mode of
    PyTorch's cannot look inside: they are refused.

    Parameters
    ----------
    function : callable
        What computes with Pullback's tensors and returns them, on the device of its arguments or another one.

    Returns
    -------
    callable
        A function on torch tensors.

    Examples
    --------
    >>> import torch, pullback as pb
    >>> f = pb.to_torch(lambda x: pb.logsumexp(x, axis=-1))
    >>> x = torch.zeros(4, requires_grad=True)
    >>> f(x).backward()
    >>> x.grad
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """
    torch = require_torch("to_torch")
    if isinstance(function, (type, torch.nn.Module)) or not callable(function):
        raise DtypeError(f"to_torch: expected a function of Pullback's, got {type(function).__name__}.")
    name = f"to_torch({getattr(function, '__name__', type(function).__name__)})"

    def bridged(*args: Any, **kwargs: Any) -> Any:
        return _run(name, function, args, kwargs)

    return update_wrapper(bridged, function, updated=())


def _run(name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    import torch

    from .torch_border import Border, Captured, Recorded, leaves_behind, refuse_transformed

    modes.refuse_in_trace(f"{name} computes with torch tensors.")
    leaves, structure = tree.flatten((args, kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    for leaf in leaves:
        if isinstance(leaf, Tensor):
            raise DtypeError(
                f"{name}: an argument of shape {leaf.shape} is a tensor of Pullback's; expected torch tensors. "
                "Pass `t.data`, or call the function itself."
            )
    given = [leaves[i] for i in places]
    refuse_transformed(name, given)
    recording = torch.is_grad_enabled() and modes.is_recording()
    tensors = [make(t.detach(), None) for t in given]
    variables = [alias(x) if recording and t.requires_grad else x for x, t in zip(tensors, given)]
    nodes = [v._node for v in variables if v._node is not None]
    inputs = [t for t, v in zip(given, variables) if v._node is not None]
    for i, x in zip(places, variables):
        leaves[i] = x.clone()  # the function may write to it
    args, kwargs = tree.unflatten(structure, leaves)
    if recording:
        with running(frozenset(nodes)):
            result = function(*args, **kwargs)
    else:
        with modes.no_grad():
            result = function(*args, **kwargs)
    outputs, shape = tree.flatten(result)
    for path, out in zip(shape._paths(), outputs):
        if not isinstance(out, Tensor):
            raise DtypeError(
                f"{name}: {f'result{path}' if path else 'the result'} is of type {type(out).__name__}; expected "
                "tensors of Pullback's, in lists, tuples and dicts."
            )
    if must_stay(outputs, False):
        raise GradientError(
            f"{name}: the result depends on a variable of a transform of Pullback's that is running, which PyTorch "
            "does not know of. Pass the value as an argument, or `.detach()` it."
        )
    where = f"torch:{given[0].device}" if given else "torch:cpu"
    outputs = [out if out.device.startswith("torch:") else out.to_device(where) for out in outputs]
    borders = [Border(node, t.device) for node, t in zip(nodes, inputs)]
    captured = [Captured(leaf, torch.device(where[6:])) for leaf in leaves_behind(outputs, frozenset(nodes))]
    recorded = Recorded(name, [*borders, *captured], outputs)
    shared = {t.untyped_storage().data_ptr() for t in given}
    results = recorded.cross([*inputs, *[variable.handle() for variable in captured]], shared)
    return tree.unflatten(shape, results)
