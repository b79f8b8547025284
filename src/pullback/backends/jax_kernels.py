"""Operations that JAX runs as one call: a kernel or a rule that consists of several is compiled by `jax.jit`.

Called one by one on arrays, each of JAX's functions costs some microseconds, and each reads and writes memory. What is
compiled is kept by JAX, for as many forms of arguments as it thinks right. Inside of somebody else's `jax.jit` the call
is a part of that program.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Mapping

import jax

from ..operations import OPERATIONS
from .jax_attention import attention_kernels
from .jax_convolution import convolution_kernels
from .jax_linalg import linear_algebra_kernels
from .jax_losses import loss_kernels
from .jax_scan import scan_kernels

#: Operations of several calls, forward (unless the library has the function itself) and backward. Those that draw
#: random numbers are not among them: where they begin to draw would be a part of the program.
_JOINED = (
    "softmax", "log_softmax", "logsumexp", "layer_norm", "rms_norm", "batch_norm", "cross_entropy",
    "soft_cross_entropy", "binary_cross_entropy_with_logits", "mse_loss", "l1_loss", "huber_loss", "linear", "relu",
    "leaky_relu", "elu", "gelu", "silu", "sigmoid", "softplus", "log_sigmoid", "tanh", "rotary_embedding",
    "multiply_add", "max_pool", "max_pool_indices", "pool_gather", "pool_scatter", "resample", "embedding",
)  # fmt: skip
_NUMBERS = frozenset((bool, int, float, complex))


def kernels(xp: Any, check: Any) -> Mapping[str, Any]:
    """Kernels by operation; `xp` has the portable ones.

    `check(indices, least, end)` raises for positions outside of a range: inside of a compiled call they have no values.
    """

    def general(name: str) -> Any:
        return partial(_portable, xp, name)

    own = {
        **attention_kernels(general, _joined),
        **loss_kernels(general),
        **convolution_kernels(general, _joined),
        **linear_algebra_kernels(xp, _joined),
        **scan_kernels(general, _joined),
    }
    for name in _JOINED:
        if not OPERATIONS[name].standard:
            own[name] = _joined_kernel(OPERATIONS[name], own.get(name) or general(name))

    def embedding(indices: Any, weight: Any) -> Any:
        check(indices, -weight.shape[-2], weight.shape[-2])
        return own["embedding"](indices, weight)

    def cross_entropy(x: Any, target: Any, weight: Any, ignore_index: int, *static: Any) -> Any:
        check(target, 0, x.shape[1] if len(x.shape) > 1 else x.shape[-1], ignore_index)
        return own["cross_entropy"](x, target, weight, ignore_index, *static)

    def pool_gather(x: Any, indices: Any) -> Any:
        check(indices, 0, math.prod(x.shape[2:]))
        return own["pool_gather"](x, indices)

    def pool_scatter(x: Any, indices: Any, size: Any) -> Any:
        check(indices, 0, math.prod(size))
        return own["pool_scatter"](x, indices, size)

    checked = {
        "embedding": embedding,
        "cross_entropy": cross_entropy,
        "pool_gather": pool_gather,
        "pool_scatter": pool_scatter,
    }
    return own | checked


def rules(general: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The table's own rules, each as one call; those of the cotangent alone, which pass it on, stay."""
    return {
        name: {
            key: _joined_rule(OPERATIONS[name], rule)
            for key, rule in general[name].items()
            if rule.__code__.co_argcount > 1
        }
        for name in _JOINED
    }


def _portable(xp: Any, name: str, *args: Any) -> Any:
    return xp.composed(name)(*args)


def _joined_kernel(operation: Any, kernel: Any) -> Any:
    """A kernel as one compiled call, for arrays and static arguments that can be told apart."""
    first = operation.arity
    return _joined(kernel, tuple(range(first, first + len(operation.static))))


def _joined_rule(operation: Any, rule: Any) -> Any:
    """A rule as one compiled call, under the same names of arguments."""
    names = rule.__code__.co_varnames[1 : rule.__code__.co_argcount]
    arrays = ("input", "output", "residual")
    static = tuple(i for i, name in enumerate(names, 1) if operation.source_of(name)[0] not in arrays)
    arguments = ", ".join(("g", *names))
    return eval(f"lambda {arguments}: call({arguments})", {"call": _joined(rule, static)})  # made of names alone


def _joined(function: Any, static: tuple[int, ...]) -> Any:
    """`function` as one compiled call, whose arguments at the positions `static` are a part of the program."""
    compiled = jax.jit(function, static_argnums=static)

    def call(*args: Any) -> Any:
        for i, arg in enumerate(args):
            if type(arg) in _NUMBERS and i not in static:
                return function(*args)  # beside arrays a number has no dtype of its own
        return compiled(*args)

    return call
