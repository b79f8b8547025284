"""PyTorch's own fused kernels, forward and backward, for the operations that it has some for.

Each takes what PyTorch's kernel can; for the rest there is the portable kernel, or the table's rule. A rule here has
the arguments of the table's rule, so that what is kept for it is the same (see `Backend.rules`).
"""

from __future__ import annotations

from functools import partial
from operator import add, eq, ge, gt, le, lt, mul, ne, sub, truediv
from typing import Any, Mapping

import torch
from torch.nn import functional

from . import torch_namespace
from .torch_aten import operator
from .torch_attention import attention_kernels
from .torch_batch_norm import batch_norm_kernels, batch_norm_rule
from .torch_linalg import linear_algebra_kernels
from .torch_losses import loss_kernels
from .torch_pooling import pooling_kernels
from .torch_quantized import quantized_kernels
from .torch_random import random_kernels
from .torch_scan import scan_kernels

Tensor = torch.Tensor

_FLOATS = frozenset((torch.float16, torch.bfloat16, torch.float32, torch.float64))
_INDICES = frozenset((torch.int32, torch.int64))
_NUMBERS = frozenset((float, int))


_layer_norm_backward = operator("native_layer_norm_backward")
_rms_norm_backward = operator("_fused_rms_norm_backward")
_gelu_backward = operator("gelu_backward")
_silu_backward = operator("silu_backward")
_tanh_backward = operator("tanh_backward")
_sigmoid_backward = operator("sigmoid_backward")
_threshold_backward = operator("threshold_backward")
_embedding_backward = operator("embedding_dense_backward")
_convolution_backward = operator("convolution_backward")

_WITH_NUMBERS = {
    "add": add, "subtract": sub, "multiply": mul, "divide": truediv, "pow": pow, "equal": eq, "not_equal": ne,
    "less": lt, "less_equal": le, "greater": gt, "greater_equal": ge,
}  # fmt: skip
_HALF = frozenset((torch.float16, torch.bfloat16))
_LAST_AXES = {n: tuple(range(-n, 0)) for n in range(1, 9)}
_FIRST_AXES = [tuple(range(n - 1)) for n in range(65)]  # all but the last, by the number of axes; PyTorch has up to 64


def kernels(xp: Any) -> Mapping[str, Any]:
    """Kernels by operation; `xp` has the portable ones for what these leave out."""

    def general(name: str) -> Any:
        return partial(_portable, xp, name)

    def linear(x: Any, weight: Any, bias: Any) -> Any:
        dtype = x.dtype
        if dtype is weight.dtype and dtype in _FLOATS and (bias is None or bias.dtype is dtype):
            return functional.linear(x, weight, bias)
        return general("linear")(x, weight, bias)

    def summed(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
        if x.dtype in _FLOATS:
            if axis is None and not keepdims:
                return x.sum()
            if axis is not None and axis != ():
                return x.sum(axis, keepdims)
        return torch_namespace.sum(xp.as_number(x), axis=axis, keepdims=keepdims)

    def concat(xs: Any, axis: int) -> Any:
        dtype = xs[0].dtype
        if dtype in _FLOATS and all([x.dtype is dtype for x in xs]):
            return torch.cat(xs, axis)
        return torch_namespace.concat(xp.together(xs), axis=axis)

    def multiply_add(x: Any, scale: Any, shift: Any) -> Any:
        dtype = getattr(x, "dtype", None)
        if all([type(z) is Tensor and z.dtype is dtype for z in (x, scale, shift)]) and dtype in _FLOATS:
            return torch.addcmul(shift, x, scale)
        return general("multiply_add")(x, scale, shift)

    def unary(name: str, function: Any) -> Any:
        def kernel(x: Any, *static: Any) -> Any:
            return function(x, *static) if x.dtype in _FLOATS else general(name)(x, *static)

        return kernel

    def along_axis(name: str, function: Any) -> Any:
        def kernel(x: Any, axis: Any) -> Any:
            if len(axis) == 1 and x.is_floating_point():
                return function(x, axis[0])
            return general(name)(x, axis)

        return kernel

    def running_indices(x: Any, axis: Any, largest: bool = True) -> Any:
        if x.dtype in _FLOATS or x.dtype in _INDICES:
            return (torch.cummax if largest else torch.cummin)(x, axis[0]).indices
        return general("running_indices")(x, axis, largest)

    def layer_norm(x: Any, weight: Any, bias: Any, axis: Any, eps: float) -> Any:
        if _is_fused_norm(x, axis, weight, bias):
            return torch.native_layer_norm(x, x.shape[-len(axis) :], weight, bias, eps)
        return general("layer_norm")(x, weight, bias, axis, eps)

    def rms_norm(x: Any, weight: Any, axis: Any, eps: float) -> Any:
        if x.is_cuda and _is_fused_norm(x, axis, weight):
            return torch._fused_rms_norm(x, x.shape[-len(axis) :], weight, eps)
        return general("rms_norm")(x, weight, axis, eps)

    def embedding(indices: Any, weight: Any) -> Any:
        if indices.dtype in _INDICES:
            return torch.embedding(weight, indices)
        return general("embedding")(indices, weight)

    def scatter_extremum(x: Any, value: Any, indices: Any, axis: int, largest: bool) -> Any:
        if x.dtype is value.dtype and x.dtype in _FLOATS and x.numel() and value.numel():
            return x.scatter_reduce(axis, indices, value, "amax" if largest else "amin", include_self=False)
        return general("scatter_extremum")(x, value, indices, axis, largest)

    return {
        "embedding": embedding,
        "linear": linear,
        "relu": unary("relu", torch.relu),
        "sigmoid": unary("sigmoid", torch.sigmoid),
        "silu": unary("silu", functional.silu),
        "gelu": unary("gelu", lambda x, approximate: functional.gelu(x, approximate=approximate)),
        "softmax": along_axis("softmax", torch.softmax),
        "log_softmax": along_axis("log_softmax", torch.log_softmax),
        "layer_norm": layer_norm,
        "rms_norm": rms_norm,
        "running_indices": running_indices,
        "reshape": lambda x, shape: x.reshape(shape),
        "permute_dims": lambda x, axes: x.permute(axes),
        "matrix_transpose": lambda x: x.mT,
        "split": lambda x, sizes, axis: x.split(sizes, axis),
        "sum": summed,
        "concat": concat,
        "multiply_add": multiply_add,
        "scatter_extremum": scatter_extremum,
        "cleared": lambda mask, x: x.masked_fill(mask, 0),
        **attention_kernels(general),
        **loss_kernels(general),
        **_convolutions(general),
        **quantized_kernels(),
        **pooling_kernels(general),
        **batch_norm_kernels(general),
        **random_kernels(general),
        **scan_kernels(general),
        **linear_algebra_kernels(general),
    }


def direct(operation: Any, function: Any, kernel: Any) -> Any:
    """`kernel`, or PyTorch's `function` itself where its rules are NumPy's: for floating-point arrays of one dtype,
    and for such an array and a Python number.
    """
    if operation.standard != "main" or operation.static or operation.variadic or operation.arity > 2:
        return kernel
    function = getattr(function, "plain", function)
    if operation.arity == 1:
        return lambda x: function(x) if x.dtype in _FLOATS else kernel(x)
    if operation.name not in _WITH_NUMBERS:
        return lambda x, y: function(x, y) if _are_alike(x, y) else kernel(x, y)
    with_operator: Any = _WITH_NUMBERS[operation.name]

    def with_numbers(x: Any, y: Any) -> Any:
        if type(x) is Tensor:
            if type(y) is Tensor:
                if x.dtype is y.dtype and x.dtype in _FLOATS:
                    return function(x, y)
            elif type(y) in _NUMBERS and x.dtype in _FLOATS:
                return function(x, y)
        elif type(x) in _NUMBERS and type(y) is Tensor and y.dtype in _FLOATS:
            return with_operator(x, y)
        return kernel(x, y)

    return with_numbers


_IN_PLACE = {"add": Tensor.add_, "subtract": Tensor.sub_, "multiply": Tensor.mul_, "divide": Tensor.div_}


def write(name: str, raw: Any, other: Any) -> bool:
    """Compute into `raw` where the result has its dtype for sure, and its shape."""
    function = _IN_PLACE.get(name)
    if function is None or raw.dtype not in _FLOATS:
        return False
    if type(other) not in _NUMBERS and not (type(other) is Tensor and other.dtype is raw.dtype):
        return False
    try:
        function(raw, other)
    except RuntimeError:  # another shape, or device
        return False
    return True


def _are_alike(x: Any, y: Any) -> bool:
    return type(x) is Tensor and type(y) is Tensor and x.dtype is y.dtype and x.dtype in _FLOATS


def _portable(xp: Any, name: str, *args: Any) -> Any:
    return xp.composed(name)(*args)


def _is_fused_norm(x: Any, axis: Any, weight: Any, bias: Any = None) -> bool:
    """Whether PyTorch has one kernel for it: over the last axes, with parameters of just their shape and dtype."""
    dtype = x.dtype
    if (
        axis != _LAST_AXES.get(len(axis))
        or dtype not in _FLOATS
        or (dtype in _HALF and not x.is_cuda)  # on the CPU its statistics would be of half precision
        or not x.numel()
    ):
        return False
    shape = x.shape[-len(axis) :]
    return (weight is None or (weight.dtype is dtype and weight.shape == shape)) and (
        bias is None or (bias.dtype is dtype and bias.shape == shape)
    )


def rules(general: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Rules by operation and input; `general` has the table's for what these leave out."""

    def softmax(g: Any, out: Any, x_dtype: Any, axis: Any) -> Any:
        if len(axis) == 1 and g.dtype == out.dtype == x_dtype:
            return torch._softmax_backward_data(g, out, axis[0], x_dtype)
        return general["softmax"]["x"](g, out, x_dtype, axis)

    def log_softmax(g: Any, out: Any, x_dtype: Any, axis: Any) -> Any:
        if len(axis) == 1 and g.dtype == out.dtype == x_dtype:
            return torch._log_softmax_backward_data(g, out, axis[0], x_dtype)
        return general["log_softmax"]["x"](g, out, x_dtype, axis)

    def gelu(g: Any, x: Any, approximate: Any) -> Any:
        if g.dtype is x.dtype:
            return _gelu_backward(g, x, approximate=approximate)
        return general["gelu"]["x"](g, x, approximate)

    def silu(g: Any, x: Any) -> Any:
        return _silu_backward(g, x) if g.dtype is x.dtype else general["silu"]["x"](g, x)

    def tanh(g: Any, out: Any) -> Any:
        return _tanh_backward(g, out) if _are_real(g, out) else general["tanh"]["x"](g, out)

    def sigmoid(g: Any, out: Any) -> Any:
        return _sigmoid_backward(g, out) if _are_real(g, out) else general["sigmoid"]["x"](g, out)

    def relu(g: Any, x_dtype: Any, out: Any) -> Any:
        if _are_real(g, out):
            return _threshold_backward(g, out, 0)
        return general["relu"]["x"](g, x_dtype, out)

    def linear_x(g: Any, weight: Any) -> Any:
        return g.matmul(weight) if g.dtype is weight.dtype else general["linear"]["x"](g, weight)

    def linear_weight(g: Any, x: Any, weight_shape: Any) -> Any:
        if g.dtype is x.dtype and g.dtype in _FLOATS and x.ndim > 1 and g.numel() and x.numel():
            if x.ndim > 2:
                g, x = g.flatten(0, -2), x.flatten(0, -2)
            return g.t().mm(x)
        return general["linear"]["weight"](g, x, weight_shape)

    def linear_bias(g: Any, bias_shape: Any) -> Any:
        return g.sum(_FIRST_AXES[g.ndim]) if g.ndim > 1 else g

    def layer_norm(
        g: Any, x: Any, weight: Any, mean: Any, rstd: Any, x_dtype: Any, weight_shape: Any, weight_dtype: Any,
        bias_shape: Any, bias_dtype: Any, axis: Any, needs: Any,
    ) -> tuple[Any, ...]:  # fmt: skip
        dtype = x.dtype
        shape = x.shape[-len(axis) :]
        plain = bias_shape is None or bias_shape == () or (bias_shape == shape and bias_dtype is dtype)
        if plain and g.dtype is dtype and _is_fused_norm(x, axis, weight) and not (weight is None and needs[2]):
            return _layer_norm_backward(g, x, shape, mean, rstd, weight, weight, needs)
        return general["layer_norm"]["joint"](
            g, x, weight, mean, rstd, x_dtype, weight_shape, weight_dtype, bias_shape, bias_dtype, axis, needs
        )

    def rms_norm(
        g: Any, x: Any, weight: Any, rstd: Any, x_dtype: Any, weight_shape: Any, weight_dtype: Any, axis: Any,
        needs: Any,
    ) -> tuple[Any, ...]:  # fmt: skip
        if x.is_cuda and g.dtype == x.dtype and _is_fused_norm(x, axis, weight):
            return _rms_norm_backward(g, x, x.shape[-len(axis) :], rstd, weight, needs)
        return general["rms_norm"]["joint"](g, x, weight, rstd, x_dtype, weight_shape, weight_dtype, axis, needs)

    def embedding(g: Any, indices: Any, weight_shape: Any, weight_dtype: Any) -> Any:
        if g.dtype == weight_dtype and g.is_floating_point() and indices.dtype in _INDICES:
            return _embedding_backward(g, indices, weight_shape[0], -1, False)
        return general["embedding"]["weight"](g, indices, weight_shape, weight_dtype)

    return {
        "softmax": {"x": softmax},
        "log_softmax": {"x": log_softmax},
        "linear": {"x": linear_x, "weight": linear_weight, "bias": linear_bias},
        "reshape": {"x": lambda g, x_shape: g.reshape(x_shape)},
        "tanh": {"x": tanh},
        "sigmoid": {"x": sigmoid},
        "relu": {"x": relu},
        "gelu": {"x": gelu},
        "silu": {"x": silu},
        "layer_norm": {"joint": layer_norm},
        "rms_norm": {"joint": rms_norm},
        "embedding": {"weight": embedding},
        "batch_norm": {"joint": batch_norm_rule(general["batch_norm"]["joint"])},
    }


def _are_real(g: Any, out: Any) -> bool:
    """PyTorch's rules for complex numbers are conjugated."""
    return g.dtype is out.dtype and g.dtype in _FLOATS


def _convolutions(general: Any) -> dict[str, Any]:
    """Convolutions of one to three spatial axes; paddings that differ before and after are made before."""

    def is_plain(x: Any, weight: Any, padding: Any) -> bool:
        return (
            1 <= x.ndim - 2 <= 3
            and x.dtype == weight.dtype
            and x.is_floating_point()
            and x.numel() > 0
            and weight.numel() > 0
            and all(low == high >= 0 for low, high in padding)
        )

    def before(padding: Any) -> list[int]:
        return [low for low, _ in padding]

    def convolution(x: Any, weight: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
        return biased_convolution(x, weight, None, stride, padding, dilation, groups)

    def biased_convolution(
        x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int
    ) -> Any:
        if is_plain(x, weight, padding) and (bias is None or bias.dtype == x.dtype):
            none = [0] * len(stride)
            return torch.convolution(x, weight, bias, stride, before(padding), dilation, False, none, groups)
        if bias is None:
            return general("convolution")(x, weight, stride, padding, dilation, groups)
        return general("biased_convolution")(x, weight, bias, stride, padding, dilation, groups)

    def gradient(
        g: Any, x: Any, weight: Any, stride: Any, padding: Any, dilation: Any, groups: int, wanted: list[bool]
    ) -> Any:
        none = [0] * len(stride)
        return _convolution_backward(g, x, weight, None, stride, before(padding), dilation, False, none, groups, wanted)

    def convolution_input_gradient(
        g: Any, weight: Any, size: Any, stride: Any, padding: Any, dilation: Any, groups: int
    ) -> Any:
        if is_plain(g, weight, padding):
            if g.ndim == 4 and g.is_contiguous(memory_format=torch.channels_last):
                # `_convolution_backward` would compute it with channels first, and copy both ways: it asks x.
                sizes = zip(size, g.shape[2:], weight.shape[2:], stride, before(padding), dilation)
                rest = [n - ((m - 1) * step - 2 * low + d * (k - 1) + 1) for n, m, k, step, low, d in sizes]
                return torch.convolution(g, weight, None, stride, before(padding), dilation, True, rest, groups)
            x = g.new_empty(1).expand(g.shape[0], weight.shape[1] * groups, *size)  # only its shape counts
            return gradient(g, x, weight, stride, padding, dilation, groups, [True, False, False])[0]
        return general("convolution_input_gradient")(g, weight, size, stride, padding, dilation, groups)

    def convolution_weight_gradient(
        g: Any, x: Any, size: Any, stride: Any, padding: Any, dilation: Any, groups: int
    ) -> Any:
        if is_plain(g, x, padding):
            weight = g.new_empty(1).expand(g.shape[1], x.shape[1] // groups, *size)
            return gradient(g, x, weight, stride, padding, dilation, groups, [False, True, False])[1]
        return general("convolution_weight_gradient")(g, x, size, stride, padding, dilation, groups)

    return {
        "convolution": convolution,
        "biased_convolution": biased_convolution,
        "convolution_input_gradient": convolution_input_gradient,
        "convolution_weight_gradient": convolution_weight_gradient,
    }
