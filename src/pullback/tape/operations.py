"""The operations a tape records. No gradient is written here: the rule table has them all."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from ..backends import NUMPY
from ..errors import AxisError, GradientError, ShapeError
from ..functions.axes import all_axes
from ..functions.convolution import geometry
from ..functions.shapes import shape_of
from .checks import axes_of, broadcast, checked_statistics, product_shape, real, scale_of
from .recording import Call, Operand, Tape

Sizes = int | Sequence[int]


class Operations(Tape):
    """`record_*` for each operation.

    Operands are slots; data are the values that they had. A slot of None is a constant: it has data and gets no
    gradient, and what only its gradient needs is not kept. NumPy arrays that are kept are copied, so that the caller
    may use their memory again; tensors are shared.
    """

    # -- arithmetic --------------------------------------------------------------------------------

    def record_add(self, a: int, b: int) -> int:
        """a + b; shapes are broadcast.

        >>> import numpy as np, pullback as pb
        >>> tape = pb.GradientTape()
        >>> out = tape.record_add(tape.leaf(), tape.leaf())
        >>> buffers = [np.zeros(2) for _ in range(tape.num_tensors)]
        >>> tape.backward(np.ones(2), buffers)
        >>> buffers[0]
        array([1., 1.])
        """
        return self._elementwise("add", "add", (("a", a), ("b", b)))

    def record_sub(self, a: int, b: int) -> int:
        """a - b; shapes are broadcast."""
        return self._elementwise("sub", "subtract", (("a", a), ("b", b)))

    def record_mul(self, a: int | None, a_data: Any, b: int | None, b_data: Any) -> int:
        """a * b; shapes are broadcast.

        >>> import numpy as np, pullback as pb
        >>> tape = pb.GradientTape()
        >>> a, b = tape.leaf(), tape.leaf()
        >>> out = tape.record_mul(a, np.array([1.0, 2.0]), b, np.array([3.0, 4.0]))
        >>> buffers = [np.zeros(2) for _ in range(tape.num_tensors)]
        >>> tape.backward(np.ones(2), buffers)
        >>> buffers[a], buffers[b]
        (array([3., 4.]), array([1., 2.]))
        """
        return self._elementwise("mul", "multiply", (("a_data", a, a_data), ("b_data", b, b_data)))

    def record_div(self, a: int | None, a_data: Any, b: int | None, b_data: Any) -> int:
        """a / b; shapes are broadcast."""
        return self._elementwise("div", "divide", (("a_data", a, a_data), ("b_data", b, b_data)))

    def record_neg(self, input: int) -> int:
        """-input."""
        return self._elementwise("neg", "negative", (("input", input),))

    # -- functions of one array --------------------------------------------------------------------

    def record_exp(self, input: int, input_data: Any) -> int:
        """The exponential function."""
        return self._elementwise("exp", "exp", (("input_data", input, input_data),))

    def record_log(self, input: int, input_data: Any) -> int:
        """The natural logarithm."""
        return self._elementwise("log", "log", (("input_data", input, input_data),))

    def record_tanh(self, input: int, input_data: Any) -> int:
        """The hyperbolic tangent."""
        return self._elementwise("tanh", "tanh", (("input_data", input, input_data),))

    def record_sigmoid(self, input: int, input_data: Any) -> int:
        """1 / (1 + exp(-input))."""
        return self._elementwise("sigmoid", "sigmoid", (("input_data", input, input_data),))

    def record_relu(self, input: int, input_data: Any) -> int:
        """max(input, 0), with a gradient of 0 at 0."""
        return self._elementwise("relu", "relu", (("input_data", input, input_data),))

    def record_silu(self, input: int, input_data: Any) -> int:
        """input * sigmoid(input).

        >>> import numpy as np, pullback as pb
        >>> tape = pb.GradientTape()
        >>> x = tape.leaf()
        >>> out = tape.record_silu(x, np.array([0.0]))
        >>> buffers = [np.zeros(1), np.zeros(1)]
        >>> tape.backward([1.0], buffers)
        >>> buffers[x]
        array([0.5])
        """
        return self._elementwise("silu", "silu", (("input_data", input, input_data),))

    def record_gelu(self, input: int, input_data: Any, approximate: str = "none") -> int:
        """input times the normal distribution function of it; `approximate="tanh"` is the usual approximation."""
        if approximate not in ("none", "tanh"):
            raise ValueError(f'record_gelu: approximate must be "none" or "tanh", got {approximate!r}.')
        return self._elementwise("gelu", "gelu", (("input_data", input, input_data),), (approximate,))

    def record_softmax(self, input: int, input_data: Any, axis: int | Sequence[int] = -1) -> int:
        """exp(input) divided by its sum over `axis`."""
        call = Call(self, "softmax")
        x = real(call, call.data_operand("input_data", input, input_data))
        return call.commit(call.step("softmax", (x,), (axes_of(call, axis, x),), x.shape))

    # -- matrix products ---------------------------------------------------------------------------

    def record_matmul(self, a: int | None, a_mat: Any, b: int | None, b_mat: Any) -> int:
        """a @ b of matrices, vectors and broadcast stacks of matrices.

        >>> import numpy as np, pullback as pb
        >>> tape = pb.GradientTape()
        >>> a, b = tape.leaf(), tape.leaf()
        >>> out = tape.record_matmul(a, np.ones((2, 3)), b, np.ones((3, 4)))
        >>> buffers = [np.zeros((2, 3)), np.zeros((3, 4)), np.zeros(8)]  # any shape of the right size
        >>> tape.backward(np.ones((2, 4)), buffers)
        >>> buffers[a]
        array([[4., 4., 4.],
               [4., 4., 4.]])
        """
        call = Call(self, "matmul")
        x, y = call.data_operand("a_mat", a, a_mat), call.data_operand("b_mat", b, b_mat)
        return call.commit(call.step("matmul", (x, y), (), product_shape(call, x, y)))

    def record_linear(
        self, input: int | None, input_data: Any, weight: int | None, weight_data: Any, bias: int | None = None
    ) -> int:
        """input @ weight.T + bias. `weight` has shape (outputs, inputs), `bias` (outputs,)."""
        call = Call(self, "linear")
        x, w = call.data_operand("input_data", input, input_data), call.data_operand("weight_data", weight, weight_data)
        if len(w.shape) != 2 or not x.shape or x.shape[-1] != w.shape[1]:
            raise ShapeError(
                f"record_linear: input has shape {x.shape} and weight {w.shape}; "
                "expected (..., inputs) and (outputs, inputs)."
            )
        b = None if bias is None else call.operand("bias", bias, w.shape[:1], x.dtype)
        return call.commit(call.step("linear", (x, w, b), (), x.shape[:-1] + w.shape[:1]))

    def record_conv(
        self,
        input: int | None,
        input_data: Any,
        weight: int | None,
        weight_data: Any,
        bias: int | None = None,
        *,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
    ) -> int:
        """Slide `weight` (features, channels / groups, *kernel) over `input` (samples, channels, *size).

        There may be any number of spatial axes; the arguments are those of `pb.conv1d`.
        """
        call = Call(self, "conv")
        x, w = call.data_operand("input_data", input, input_data), call.data_operand("weight_data", weight, weight_data)
        axes = len(w.shape) - 2
        if axes < 1 or len(x.shape) != len(w.shape):
            raise ShapeError(
                f"record_conv: input has shape {x.shape} and weight {w.shape}; expected (samples, channels, *size) and "
                "(features, channels / groups, *kernel), with as many spatial axes in both."
            )
        static = geometry("record_conv", axes, x, w, stride, padding, dilation, groups)
        size = [
            (n + low + high - step * (k - 1) - 1) // jump + 1
            for n, k, jump, (low, high), step in zip(x.shape[2:], w.shape[2:], *static[:3])
        ]
        shape = (x.shape[0], w.shape[0], *size)
        if bias is None:
            return call.commit(call.step("convolution", (x, w), static, shape))
        b = call.operand("bias", bias, w.shape[:1], x.dtype)
        return call.commit(call.step("biased_convolution", (x, w, b), static, shape))

    # -- reductions and shapes ---------------------------------------------------------------------

    def record_sum(self, input: int, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> int:
        """The sum over `axis`, or over all axes. The shape of `input` must be known."""
        return self._reduction("sum", input, axis, keepdims)

    def record_mean(self, input: int, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> int:
        """The mean over `axis`, or over all axes. The shape of `input` must be known."""
        return self._reduction("mean", input, axis, keepdims)

    def record_reshape(self, input: int, shape: int | Sequence[int]) -> int:
        """The same elements in another shape; one size may be -1. The shape of `input` must be known."""
        call = Call(self, "reshape")
        x = call.shaped_operand("input", input)
        sizes = shape_of("record_reshape", shape, x)  # type: ignore[arg-type]  # it looks at size and shape alone
        return call.commit(call.step("reshape", (x,), (sizes,), sizes))

    def record_transpose(self, input: int, axes: Sequence[int] | None = None) -> int:
        """The axes in another order; in reverse order if none is given. The shape of `input` must be known."""
        call = Call(self, "transpose")
        x = call.shaped_operand("input", input)
        order = all_axes(len(x.shape))[::-1] if axes is None else axes_of(call, tuple(axes), x)
        if len(order) != len(x.shape):
            raise AxisError(f"record_transpose: {axes} is no permutation of the axes of shape {x.shape}.")
        return call.commit(call.step("permute_dims", (x,), (order,), tuple(x.shape[a] for a in order)))

    # -- normalisation -----------------------------------------------------------------------------

    def record_layer_norm(
        self,
        input: int | None,
        mean: Any,
        var: Any,
        scale: Any,
        *,
        input_data: Any,
        scale_slot: int | None = None,
        bias_slot: int | None = None,
        eps: float = 1e-5,
    ) -> int:
        """(input - mean) / sqrt(var + eps) * scale + bias, over as many of the last axes as `scale` has.

        `mean` and `var` are those of `input_data` over these axes (`var` divided by the number of elements), one number
        each for a single row; others are refused, since the gradient goes through them. `scale` may be None.

        >>> import numpy as np, pullback as pb
        >>> tape, x = pb.GradientTape(), np.array([1.0, 2.0, 6.0])
        >>> slot = tape.leaf()
        >>> out = tape.record_layer_norm(slot, x.mean(), x.var(), np.ones(3), input_data=x)
        >>> buffers = [np.zeros(3), np.zeros(3)]
        >>> tape.backward([1.0, 0.0, 0.0], buffers)
        >>> buffers[slot].round(3)
        array([ 0.176, -0.22 ,  0.044])
        """
        call = Call(self, "layer_norm")
        x = call.data_operand("input_data", input, input_data)
        weight, axes = scale_of(call, x, scale, scale_slot)
        shape = tuple(x.shape[a] for a in axes)
        bias = None if bias_slot is None else call.operand("bias", bias_slot, shape, x.dtype)
        statistics = checked_statistics(call, x.array, axes, mean, var, eps)
        static = (axes, float(eps))
        return call.commit(call.step("layer_norm", (x, weight, bias), static, x.shape, x.dtype, (), statistics))

    def record_rms_norm(
        self, input: int | None, scale: Any, *, input_data: Any, scale_slot: int | None = None, eps: float = 1e-5
    ) -> int:
        """input / sqrt(mean square + eps) * scale, over as many of the last axes as `scale` has; it may be None."""
        call = Call(self, "rms_norm")
        x = call.data_operand("input_data", input, input_data)
        weight, axes = scale_of(call, x, scale, scale_slot)
        return call.commit(call.step("rms_norm", (x, weight), (axes, float(eps)), x.shape, x.dtype))

    # -- recurrences -------------------------------------------------------------------------------

    def record_ssm_scan(
        self,
        input: int | None,
        a_vals: Any,
        b_vals: Any,
        *,
        input_data: Any = None,
        a_slot: int | None = None,
        b_slot: int | None = None,
    ) -> int:
        """h[t] = a[t] h[t-1] + b[t] x[t] along the first axis of the input x, from h = 0; the result is every h[t].

        `a_vals` and `b_vals` broadcast to x. `input_data` is needed for the gradients of `a_slot` and `b_slot`; without
        it, and without a known shape, x has the shape that `a_vals` and `b_vals` have together.

        >>> import numpy as np, pullback as pb
        >>> tape = pb.GradientTape()
        >>> x = tape.leaf()
        >>> out = tape.record_ssm_scan(x, np.array([0.5, 0.5, 0.5]), np.ones(3))
        >>> buffers = [np.zeros(3), np.zeros(3)]
        >>> tape.backward([0.0, 0.0, 1.0], buffers)  # how the last state depends on each input
        >>> buffers[x]
        array([0.25, 0.5 , 1.  ])
        """
        call = Call(self, "ssm_scan")
        if input_data is not None:
            x = call.data_operand("input_data", input, input_data)
        else:
            x = call.operand("input", input)  # type: ignore[arg-type]
        a, b = call.data_operand("a_vals", a_slot, a_vals), call.data_operand("b_vals", b_slot, b_vals)
        if x.shape is None:
            x = call.told(x, broadcast(call, (), a, b))
        if not x.shape:
            raise ShapeError("record_ssm_scan: the input must have an axis of time, got a number.")
        broadcast(call, x.shape, a, b)
        if x.array is None and (a_slot is not None or b_slot is not None):
            raise GradientError("record_ssm_scan: a gradient for a_slot or b_slot needs input_data.")
        driven = Operand(None, None, x.shape, np.result_type(b.dtype, x.dtype or b.dtype))
        if x.value is not None or b.value is not None:
            driven = call.step("multiply", (b, x), (), x.shape)
        states = None
        if a.value is None:  # nothing needs the states but the gradient of `a`
            states = (np.broadcast_to(np.zeros((), driven.dtype), x.shape),)
        else:
            driven.array = NUMPY.xp.multiply(b.array, x.array)
        static = (-len(x.shape), False)
        return call.commit(call.step("ssm_scan", (driven, a, None), static, x.shape, outputs=states))

    # -- what several have in common ---------------------------------------------------------------

    def _elementwise(
        self, name: str, operation: str, operands: tuple[tuple[Any, ...], ...], static: tuple[Any, ...] = ()
    ) -> int:
        call = Call(self, name)
        found = tuple([call.operand(*given) if len(given) == 2 else call.data_operand(*given) for given in operands])
        shape = None
        if not any([operand.shape is None for operand in found]):
            shape = broadcast(call, (), *found)
        return call.commit(call.step(operation, found, static, shape))

    def _reduction(self, name: str, input: int, axis: Any, keepdims: bool) -> int:
        call = Call(self, name)
        x = call.shaped_operand("input", input)
        axes = all_axes(len(x.shape)) if axis is None else axes_of(call, axis, x)
        kept = [(n, i - len(x.shape) in axes) for i, n in enumerate(x.shape)]
        shape = tuple(1 if reduced else n for n, reduced in kept if keepdims or not reduced)
        return call.commit(call.step(name, (x,), (axes, bool(keepdims)), shape))
