"""`from_jax`: functions of JAX as differentiable functions on Pullback's tensors."""

from __future__ import annotations

from functools import update_wrapper
from typing import Any, Callable

from ..autodiff.creation import asarray
from ..errors import DeviceError, DtypeError
from ..tensors.tensor import Tensor
from .foreign import accelerator, common_home, is_array, record, refuse_trace

__all__ = ["from_jax"]


def require_jax(caller: str) -> Any:
    """The module jax, or an error that says who needs it."""
    try:
        import jax
    except ImportError as error:
        raise DeviceError(f"{caller} needs the package jax, which cannot be imported here ({error}).") from error
    return jax


def from_jax(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of JAX as a differentiable function on Pullback's tensors.

    Inside a graph it is one operation, whose gradients JAX computes (`jax.vjp`), to any order. Arguments and results
    may be any of JAX's pytrees; arguments that are no arrays are passed on as they are. Tensors on JAX's devices are
    passed without a copy; others are moved there, and the results come back to the device of the arguments. A function
    that is called often is faster as `pb.from_jax(jax.jit(f))`.

    Parameters
    ----------
    function : callable
        A pure function from JAX arrays to JAX arrays.

    Returns
    -------
    callable
        A function on tensors.

    Examples
    --------
    >>> import jax.numpy as jnp, pullback as pb
    >>> power = pb.from_jax(lambda x: jnp.sum(x**3))
    >>> x = pb.tensor([1.0, 2.0], requires_grad=True)
    >>> power(x).backward()
    >>> x.grad
    tensor([ 3., 12.])
    """
    jax = require_jax("from_jax")
    if isinstance(function, (Tensor, jax.Array, type)) or not callable(function):
        raise DtypeError(f"from_jax: expected a function, got {type(function).__name__}.")
    name = f"from_jax({getattr(function, '__name__', type(function).__name__)})"

    def bridged(*args: Any, **kwargs: Any) -> Any:
        return _run(name, function, args, kwargs)

    return update_wrapper(bridged, function, updated=())


def _run(name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    import jax

    from .jax_calls import JaxCall, check_output

    refuse_trace(name, "JAX")
    leaves, structure = jax.tree.flatten((args, kwargs))
    places = [i for i, leaf in enumerate(leaves) if is_array(leaf)]
    tensors = [asarray(leaves[i]) for i in places]
    home = common_home(name, tensors)
    is_jaxs = home is None or home.partition(":")[0] == "jax"
    if not is_jaxs:
        tensors = [x.to_device(accelerator(home, "jax:gpu") or "jax") for x in tensors]
    others = [None if is_array(leaf) else leaf for leaf in leaves]
    shape: list[Any] = []

    def flat(inputs: list[Any]) -> list[Any]:
        filled = list(others)
        for i, x in zip(places, inputs):
            filled[i] = x
        given, named = jax.tree.unflatten(structure, filled)
        paths, found = jax.tree.flatten_with_path(function(*given, **named))
        for path, out in paths:
            check_output(name, jax.tree_util.keystr(path), out)
        shape.append(found)
        return [out for _, out in paths]

    outputs = record(JaxCall(name, flat), tensors)
    if home is not None and not is_jaxs:
        outputs = tuple([out.to_device(home) for out in outputs])
    return jax.tree.unflatten(shape[0], outputs)
