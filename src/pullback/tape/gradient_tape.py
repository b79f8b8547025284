"""`GradientTape`: the explicit recorder."""

from __future__ import annotations

from typing import Any, Sequence

from .operations import Operations
from .walking import add_gradients
from .watching import Watching


class GradientTape(Operations, Watching):
    """Records operations, and walks them back: on NumPy arrays, or on tensors.

    **On NumPy arrays**, operation by operation. You compute; the tape is told what was computed, with the values that
    gradients need. A slot stands for one array: `leaf` makes one for an input, and each `record_*` returns that of its
    result. These methods take slots (`input`, `a`, `b`, `weight`, `scale_slot`, `bias_slot`; None for a constant where
    that is allowed) and the arrays that they stand for (`input_data`, `a_data`, `b_data`, `a_mat`, `b_mat`,
    `weight_data`). `backward` adds every slot's gradient to a buffer of yours, in the order of the slots.

    **On tensors**, as a context manager: what is computed in the block is listed in `ops`, and `gradient`
    differentiates it. Tensors that do not require a gradient can be followed with `watch`.

    >>> import numpy as np, pullback as pb
    >>> w, x = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0.5, -1.0])
    >>> tape = pb.GradientTape()
    >>> w_slot, x_slot = tape.leaf(), tape.leaf()
    >>> h = w @ x
    >>> h_slot = tape.record_matmul(w_slot, w, x_slot, x)
    >>> out_slot = tape.record_silu(h_slot, h)
    >>> buffers = [np.zeros((2, 2)), np.zeros(2), np.zeros(2), np.zeros(2)]
    >>> tape.backward(np.ones(2), buffers)
    >>> buffers[x_slot].round(4)
    array([-0.3395, -0.4802])
    >>> w = pb.tensor([1.0, 2.0], requires_grad=True)
    >>> with pb.GradientTape() as tape:
    ...     loss = (w * w).sum()
    >>> tape.gradient(loss, w)
    tensor([2., 4.])
    >>> tape.ops
    ['multiply((2,), (2,)): (2,) float32', 'sum((2,)): () float32']
    """

    def backward(self, loss_grad: Any, tensors: Sequence[Any]) -> None:
        """Add every slot's gradient to its buffer in `tensors`, given `loss_grad`, that of the last recorded output.

        `tensors` has a NumPy array for each slot, in the order of the slots; more are left alone. An array of the right
        size may have any shape. Gradients are computed in the dtype of the data. NaN or infinity anywhere raises
        `NumericalInstabilityError`, which names the operation and the slot (`pb.guard` changes that). On any error the
        buffers are as before. A tape can be walked any number of times: each adds the same gradients again.

        >>> import numpy as np, pullback as pb
        >>> tape = pb.GradientTape()
        >>> y = tape.leaf()
        >>> z = tape.record_add(y, y)
        >>> buffers = [np.zeros(1), np.zeros(1)]
        >>> tape.backward([1.0], buffers)
        >>> buffers[y]
        array([2.])
        """
        add_gradients(self, loss_grad, tensors)
