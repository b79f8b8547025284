"""`to_jax`: functions of Pullback's as functions that JAX transforms."""

from __future__ import annotations

from functools import partial, update_wrapper
from typing import Any, Callable, Sequence

import numpy as np

from .. import backends, modes, tree
from ..autodiff.base import make, resolved, values_of
from ..autodiff.creation import asarray
from ..autodiff.gradients import _conj
from ..autodiff.graph import Leaf
from ..errors import DeviceError, DtypeError, GradientError
from ..tensors.tensor import Tensor
from ..transforms.lifting import must_stay
from ..transforms.reverse import vjp
from .jax_functions import require_jax

__all__ = ["to_jax"]

OnTensors = Callable[[Sequence[Tensor]], list[Tensor]]


def to_jax(function: Callable[..., Any], device: str | None = None) -> Callable[..., Any]:
    """A function of Pullback's as a function on JAX arrays, which `jax.jit`, `jax.grad` and `jax.vmap` transform.

    It runs on whatever JAX gives it, tracers included, so inside `jax.jit` it becomes part of JAX's program. Gradients
    are Pullback's own, to any order, through `jax.custom_vjp`: `detach`, operations of one's own and masked infinities
    count as they do in Pullback. The backward pass runs the function again; inside `jax.jit` XLA removes what is
    double. JAX has no forward mode for such functions: write `jax.jacrev(jax.jacrev(f))` for second derivatives.

    JAX cannot give gradients to variables that the function uses without getting them as arguments; such a variable is
    an error. Arrays among the arguments, also in JAX's pytrees, become tensors; all others are passed on as they are.

    Parameters
    ----------
    function : callable
        What computes with Pullback's tensors on the devices of its arguments, and returns tensors.
    device : str, optional
        Run it there instead, for example on "numpy" or "torch:cpu": what JAX could not make part of its program.
        Inside `jax.jit` and `jax.vmap` JAX calls back to it (`jax.pure_callback`, one example after the other),
        after it has run once on zeros, which tells the shapes of its results.

    Returns
    -------
    callable
        A function on JAX arrays.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, pullback as pb
    >>> f = pb.to_jax(lambda x: pb.logsumexp(x))
    >>> jax.jit(jax.grad(f))(jnp.zeros(4, "float32"))
    Array([0.25, 0.25, 0.25, 0.25], dtype=float32)
    """
    jax = require_jax("to_jax")
    if isinstance(function, (Tensor, jax.Array, type)) or not callable(function):
        raise DtypeError(f"to_jax: expected a function of Pullback's, got {type(function).__name__}.")
    device = None if device is None else backends.for_device(device)[1]
    name = f"to_jax({getattr(function, '__name__', type(function).__name__)})"

    def bridged(*args: Any, **kwargs: Any) -> Any:
        return _run(name, function, device, args, kwargs)

    return update_wrapper(bridged, function, updated=())


def _run(name: str, function: Callable[..., Any], device: str | None, args: Any, kwargs: Any) -> Any:
    import jax

    modes.refuse_in_trace(f"{name} computes with JAX arrays.")
    leaves, structure = jax.tree.flatten((args, kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, (jax.Array, np.ndarray))]
    for leaf in leaves:
        if isinstance(leaf, Tensor):
            raise DtypeError(
                f"{name}: an argument of shape {leaf.shape} is a tensor of Pullback's; expected JAX arrays. "
                "Pass `t.data`, or call the function itself."
            )
    arrays = [jax.numpy.asarray(leaves[i]) for i in places]
    others = [None if isinstance(leaf, (jax.Array, np.ndarray)) else leaf for leaf in leaves]
    shape: list[tree.Structure] = []

    def on_tensors(tensors: Sequence[Tensor]) -> list[Tensor]:
        filled = list(others)
        for i, x in zip(places, tensors):
            filled[i] = x.clone()  # the function may write to it
        given, named = jax.tree.unflatten(structure, filled)
        outputs, found = tree.flatten(function(*given, **named))
        for path, out in zip(found._paths(), outputs):
            _check_output(name, path, out, device)
        shape.append(found)
        return outputs

    results = _differentiable(name, on_tensors, device, None)(*arrays)
    return tree.unflatten(shape[0], results)


def _differentiable(
    name: str, function: OnTensors, device: str | None, results: Sequence[Any] | None
) -> Callable[..., tuple[Any, ...]]:
    """`function` on JAX arrays, with its pullback, which is differentiable in the same way, as its gradient.

    `results` are arrays like those that it gives, if that is known.
    """
    import jax
    import jax.numpy as jnp

    def is_floating(x: Any) -> bool:
        return jnp.issubdtype(x.dtype, jnp.inexact)

    def run(*arrays: Any) -> tuple[Any, ...]:
        if device is None:
            outputs = [resolved(out) for out in function([make(array, None) for array in arrays])]
            _refuse_captured(name, outputs)
            return tuple([out._raw for out in outputs])
        if not any(isinstance(array, jax.core.Tracer) for array in arrays):
            return tuple([jnp.asarray(out) for out in _on_host(name, function, device, arrays)])
        like = results or _on_host(name, function, device, [np.zeros(x.shape, x.dtype) for x in arrays])
        shapes = tuple([jax.ShapeDtypeStruct(x.shape, x.dtype) for x in like])
        host = partial(_on_host, name, function, device)
        return tuple(jax.pure_callback(lambda *given: host(given), shapes, *arrays, vmap_method="sequential"))

    def forward(*arrays: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return call(*arrays), arrays  # not `run`, which a transform further out would look into

    def backward(arrays: tuple[Any, ...], cotangents: tuple[Any, ...]) -> tuple[Any, ...]:
        moving = [i for i, x in enumerate(arrays) if is_floating(x)]
        given = [i for i, g in enumerate(cotangents) if g.dtype != jax.dtypes.float0]

        def pulled(tensors: Sequence[Tensor]) -> list[Tensor]:
            inputs, seeds = list(tensors[: len(arrays)]), tensors[len(arrays) :]

            def of_moving(*variables: Tensor) -> list[Tensor]:
                for i, variable in zip(moving, variables):
                    inputs[i] = variable
                outputs = function(inputs)
                return [outputs[i] for i in given]

            _, pullback = vjp(of_moving, *[inputs[i] for i in moving])
            # JAX's cotangents are plain transposes, those of `pb.vjp` their conjugates
            return [_conj(g) for g in pullback([_conj(g) for g in seeds])]

        outer = _differentiable(f"gradient of {name}", pulled, device, [arrays[i] for i in moving])
        found = dict(zip(moving, outer(*arrays, *[cotangents[i] for i in given])))
        return tuple([found[i] if i in found else np.zeros(x.shape, jax.dtypes.float0) for i, x in enumerate(arrays)])

    call = jax.custom_vjp(run)
    call.defvjp(forward, backward)
    return call


def _on_host(name: str, function: OnTensors, device: str, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Run on values, on a device that is not JAX's: NumPy arrays of the results."""
    outputs = function([asarray(np.asarray(array), device=device) for array in arrays])
    _refuse_captured(name, [resolved(out) for out in outputs])
    return tuple([values_of(out) for out in outputs])


def _check_output(name: str, path: str, out: Any, device: str | None) -> None:
    where = f"result{path}" if path else "the result"
    if not isinstance(out, Tensor):
        raise DtypeError(
            f"{name}: {where} is of type {type(out).__name__}; expected tensors of Pullback's, in lists, tuples and "
            "dicts."
        )
    if device is None and out.device.partition(":")[0] != "jax":
        raise DeviceError(
            f"{name}: {where} is on {out.device!r}, and what runs there cannot be part of JAX's program. Compute on "
            'the device of the arguments, and move what the function uses there: `t.to_device("jax")`; or let it all '
            f"run there: `to_jax(function, device={out.device!r})`."
        )


def _refuse_captured(name: str, outputs: Sequence[Tensor]) -> None:
    if must_stay(outputs, False):
        raise GradientError(
            f"{name}: the result depends on a variable of a transform of Pullback's that is running, which JAX does "
            "not know of. Pass the value as an argument, or `.detach()` it."
        )
    stack = [out._node for out in outputs if out._node is not None]
    seen = set(stack)
    while stack:
        node = stack.pop()
        if isinstance(node, Leaf):
            raise GradientError(
                f"{name}: the function uses a variable of Pullback's of shape {tuple(node.shape)} that is no argument, "
                "and JAX could not give it its gradient. Pass its value as an argument, or use `.detach()` of it."
            )
        for parent in node.inputs:
            if parent not in seen:
                seen.add(parent)
                stack.append(parent)
