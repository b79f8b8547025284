"""`Mlp`: a multilayer perceptron on NumPy that allocates nothing per step."""

from __future__ import annotations

import os
from math import sqrt
from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence

import numpy as np

from ..errors import ConfigurationError, GradientError, ShapeError
from ..random import Generator
from .arrays import aligned_zeros, real_array
from .gradients import MlpGradients
from .layout import Layout
from .scratch import Scratch

if TYPE_CHECKING:
    from ..train.history import History
    from .builder import MlpBuilder

__all__ = ["Mlp"]


_ndarray = np.ndarray


class Mlp:
    """A multilayer perceptron: `sizes` from the input to the output, an activation after every layer.

    All parameters lie in one array, `parameters`, and layers are views of it. Weights start from the normal
    distribution (He's for the relu family, else Glorot's), biases at zero. Where layers differ, use `Mlp.builder`.

    Parameters
    ----------
    sizes : sequence of int
        The widths from the input to the output: [2, 16, 1] has one hidden layer of 16.
    activation : str
        That of the hidden layers: identity, relu, leaky_relu, tanh, sigmoid, gelu, silu or softmax.
    output : str
        That of the last layer, one of the same.
    seed : int or None
        It determines the first weights; None draws them anew each time.
    dtype : dtype
        `numpy.float32` or `numpy.float64`.

    Examples
    --------
    >>> import numpy as np, pullback as pb
    >>> mlp = pb.Mlp([2, 16, 1], activation="tanh", seed=0)
    >>> x = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32)
    >>> y = np.array([[0], [1], [1], [0]], np.float32)
    >>> history = mlp.fit(x, y, epochs=300, batch_size=4, optimizer="adam", lr=0.02)
    >>> mlp.predict(x).round().ravel()
    array([0., 1., 1., 0.], dtype=float32)
    """

    __slots__ = ("_layout", "_parameters")

    def __init__(
        self,
        sizes: Sequence[int],
        activation: str = "tanh",
        output: str = "identity",
        seed: int | None = 0,
        dtype: Any = np.float32,
    ) -> None:
        if not hasattr(sizes, "__len__"):
            raise ConfigurationError(f"an Mlp is made from a list of sizes, such as [4, 16, 1], got {sizes!r:.60}.")
        hidden = [activation] * (len(sizes) - 2)
        self._start(Layout(sizes, [*hidden, output] if len(sizes) > 1 else [], dtype), seed)

    def _start(self, layout: Layout, seed: int | None) -> None:
        self._layout = layout
        self._parameters = aligned_zeros(layout.size, layout.dtype)
        generator = Generator(seed)
        for layer, activation in enumerate(layout.activations):
            weights = self.weights(layer)
            outputs, inputs = weights.shape
            spread = sqrt(2 / inputs) if activation.halves else sqrt(2 / (inputs + outputs))
            weights[...] = generator.normal(weights.shape, std=spread, dtype=layout.dtype, device="numpy").data

    @classmethod
    def builder(cls, input: int) -> MlpBuilder:
        """Build a network layer by layer, each with its activation.

        >>> import pullback as pb
        >>> pb.Mlp.builder(input=4).layer(8, "relu").layer(8, "tanh").layer(3).seed(1).build()
        Mlp(4-8-8-3, relu, tanh, identity, float32)
        """
        from .builder import MlpBuilder

        return MlpBuilder(input)

    # -- parameters -----------------------------------------------------------------------------------

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes from the input to the output."""
        return self._layout.sizes

    @property
    def activations(self) -> tuple[str, ...]:
        """The name of each layer's activation."""
        return tuple(activation.name for activation in self._layout.activations)

    @property
    def dtype(self) -> Any:
        """What it computes in, as a NumPy dtype."""
        return self._layout.dtype

    @property
    def parameters(self) -> np.ndarray[Any, Any]:
        """All parameters as one vector: the weights and the biases of the first layer, of the second, ...

        Write into it to change them.
        """
        return self._parameters

    def weights(self, layer: int) -> np.ndarray[Any, Any]:
        """A layer's weights, (out, in); a view that can be written to."""
        return self._layout.weights(self._parameters, layer)

    def biases(self, layer: int) -> np.ndarray[Any, Any]:
        """A layer's biases, (out,); a view that can be written to."""
        return self._layout.biases(self._parameters, layer)

    def __len__(self) -> int:
        return len(self._layout)

    def __repr__(self) -> str:
        return f"Mlp({self._layout!r})"

    def __reduce__(self) -> Any:
        return _restored, (self.sizes, self.activations, self.dtype.name, self._parameters)

    def state_dict(self) -> dict[str, Any]:
        """Copies of the parameters by name: "layers.0.weight", "layers.0.bias", ..."""
        return {name: view.copy() for name, view in self._named()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over the parameters in `state`, by name; if one is missing, left over or of a wrong shape, none."""
        views = dict(self._named())
        if missing := [name for name in views if name not in state]:
            raise ShapeError(f"load_state_dict: missing {', '.join(missing)}.")
        if unexpected := [str(name) for name in state if name not in views]:
            raise ShapeError(f"load_state_dict: unexpected {', '.join(unexpected)}.")
        arrays = {name: real_array(f"load_state_dict: {name}", state[name], self.dtype) for name in views}
        for name, view in views.items():
            if arrays[name].shape != view.shape:
                raise ShapeError(f"load_state_dict: {name} has shape {arrays[name].shape}, expected {view.shape}.")
        for name, view in views.items():
            view[...] = arrays[name]

    def _named(self) -> list[tuple[str, Any]]:
        names = [f"layers.{layer}.{kind}" for layer in range(len(self)) for kind in ("weight", "bias")]
        return list(zip(names, self._layout.views(self._parameters)))

    # -- steps ----------------------------------------------------------------------------------------

    def scratch(self, batch: int = 1) -> Scratch:
        """The buffers for forward passes with up to `batch` samples. Allocate them once."""
        return Scratch(self, batch)

    def gradients(self, batch: int = 1, input_gradient: bool = True) -> MlpGradients:
        """The buffers for backward passes with up to `batch` samples. Allocate them once.

        Without `input_gradient` the gradient of the input is not computed.
        """
        return MlpGradients(self, batch, input_gradient)

    def forward(self, x: Any, scratch: Scratch) -> np.ndarray[Any, Any]:
        """The outputs for one sample (in,) or for several (samples, in), as (out,) or (samples, out).

        The result is a view of the scratch: the next forward pass overwrites it. Nothing is allocated if `x` is
        contiguous.

        >>> import numpy as np, pullback as pb
        >>> mlp = pb.Mlp([3, 8, 2], seed=0)
        >>> mlp.forward(np.ones(3, np.float32), mlp.scratch()).shape
        (2,)
        """
        plan = scratch._current
        if plan is not None and type(x) is _ndarray and x.shape == plan.shape and x.dtype is plan.dtype:
            if scratch._mlp is self:
                return plan.run(x)
        if scratch._mlp is not self:
            raise ShapeError(f"forward: this scratch belongs to another Mlp. Write `mlp.scratch({scratch.batch})`.")
        scratch._current = plan = scratch._plan(x, "forward")
        return plan.run(x)

    def backward(self, x: Any, scratch: Scratch, grads: MlpGradients) -> None:
        """Overwrite `grads` with the gradients for `grads.d_output`, which is left as it is.

        `x` and `scratch` are those of the last forward pass.
        """
        plan = scratch._current
        if plan is None or scratch._mlp is not self or x.shape != plan.shape:
            plan = self._forward_plan(x, scratch)
        (grads._plans.get(plan) or grads._plan(plan, scratch, False)).run(x)
        if grads._shown is not None:
            grads._show(plan.shape)

    def backward_accumulate(self, x: Any, scratch: Scratch, grads: MlpGradients) -> None:
        """Add the gradients of the parameters to those in `grads`; the gradient of the input is overwritten.

        `x` and `scratch` are those of the last forward pass.
        """
        plan = scratch._current
        if plan is None or scratch._mlp is not self or x.shape != plan.shape:
            plan = self._forward_plan(x, scratch)
        (grads._adding.get(plan) or grads._plan(plan, scratch, True)).run(x)
        np.add(grads._flat, grads._fresh, grads._flat)
        if grads._shown is not None:
            grads._show(plan.shape)

    def _forward_plan(self, x: Any, scratch: Scratch) -> Any:
        """Why a backward pass cannot follow."""
        if scratch._mlp is not self:
            raise ShapeError(f"backward: this scratch belongs to another Mlp. Write `mlp.scratch({scratch.batch})`.")
        if scratch._current is None:
            raise GradientError("backward: there was no forward pass with this scratch. Call `mlp.forward` first.")
        raise ShapeError(
            f"backward: x has shape {np.shape(x)}, the last forward pass with this scratch had "
            f"{scratch._current.shape}. Pass the same x."
        )

    # -- data sets --------------------------------------------------------------------------------------

    def fit(
        self,
        x: Any,
        y: Any,
        *,
        epochs: int,
        batch_size: int = 32,
        loss: str = "mse",
        optimizer: str | Callable[[list[Any]], Any] = "adam",
        lr: float | None = None,
        schedule: Any = None,
        clip_norm: float | None = None,
        shuffle: bool = True,
        seed: int | None = 0,
        validation: tuple[Any, Any] | None = None,
        metrics: Any = (),
        callback: Callable[[dict[str, Any]], Any] | None = None,
        compile: bool | None = None,
    ) -> History:
        """Train the network on samples and targets.

        Equal seeds give equal bits.

        Parameters
        ----------
        x : array
            Samples (samples, in).
        y : array
            Targets (samples, out), or class numbers (samples,) for "cross_entropy".
        epochs : int
            How many times to go through the data.
        batch_size : int
            Samples per step.
        loss : str
            "mse", "mae", "huber", "cross_entropy" (class numbers or one-hot) or "binary_cross_entropy".
        optimizer : str or callable
            The name of one of `pb.optim`, or a function that makes one of a list of arrays.
        lr : float, optional
            The learning rate, by default the optimizer's own.
        schedule : Schedule, optional
            One of `pb.optim.schedules`, counted in steps.
        clip_norm : float, optional
            The largest joint norm of the gradients of a step.
        shuffle : bool
            Whether each epoch has an order of its own.
        seed : int or None
            It determines these orders.
        validation : tuple of array, optional
            Samples and targets that are evaluated after each epoch.
        metrics : str, metric, or list or dict of these
            What to compute beside the loss: names such as "accuracy", or objects of `pullback.train.metrics`.
        callback : callable, optional
            It gets each epoch's record, and ends training by returning True.
        compile : bool, optional
            Whether a step is one native call (see `pb.compile`). By default where the steps are so many that
            compiling pays, which optimizers given as a function never do.

        Returns
        -------
        History
            `history.epochs` has a record for each epoch.

        Raises
        ------
        NumericalInstabilityError
            If a loss or a gradient is not finite. The parameters are then as before that step.

        Examples
        --------
        >>> import numpy as np, pullback as pb
        >>> x = np.linspace(-1, 1, 64, dtype=np.float32)[:, None]
        >>> mlp = pb.Mlp([1, 16, 1], seed=0)
        >>> history = mlp.fit(x, x**2, epochs=60, batch_size=8, lr=0.01)
        >>> history.epochs[-1]["loss"] < history.epochs[0]["loss"] / 5
        True
        """
        from .fitting import fit

        options = (loss, optimizer, lr, schedule, clip_norm, shuffle, seed, validation, metrics, callback, compile)
        return fit(self, x, y, epochs, batch_size, *options)

    def evaluate(
        self, x: Any, y: Any, *, loss: str = "mse", metrics: Any = (), batch_size: int = 256
    ) -> dict[str, float]:
        """The mean loss over a data set, as "loss", and metrics by their names.

        >>> import numpy as np, pullback as pb
        >>> mlp = pb.Mlp([2, 3], seed=0)
        >>> sorted(mlp.evaluate(np.eye(2), [0, 1], loss="cross_entropy", metrics=["accuracy"]))
        ['accuracy', 'loss']
        """
        from .fitting import evaluate

        return evaluate(self, x, y, loss, metrics, batch_size)

    def predict(self, x: Any) -> np.ndarray[Any, Any]:
        """The outputs for one sample or many, as a new array.

        Parameters
        ----------
        x : array
            One sample (in,), or several (samples, in).

        Returns
        -------
        array
            (out,) or (samples, out), a new NumPy array.

        Examples
        --------
        >>> import numpy as np, pullback as pb
        >>> pb.Mlp([2, 3], seed=0).predict(np.zeros((5, 2))).shape
        (5, 3)
        """
        x = real_array("predict: x", x, self.dtype)
        if x.ndim == 0:
            raise ShapeError(f"predict: x is a number, expected ({self.sizes[0]},) or (samples, {self.sizes[0]}).")
        out = np.empty((*x.shape[:-1], self.sizes[-1]), self.dtype)
        self.predict_into(x, out)
        return out

    def predict_into(self, x: Any, out: Any, scratch: Scratch | None = None) -> None:
        """Write the outputs for `x` into `out`. With a `scratch`, nothing is allocated.

        >>> import numpy as np, pullback as pb
        >>> mlp = pb.Mlp([2, 3], seed=0)
        >>> out = np.empty((5, 3), np.float32)
        >>> mlp.predict_into(np.zeros((5, 2), np.float32), out)
        """
        expected = (*np.shape(x)[:-1], self.sizes[-1])
        if not isinstance(out, np.ndarray) or out.shape != expected or out.dtype != self.dtype:
            shape = f"{out.dtype.name} {out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
            raise ShapeError(f"predict_into: out is {shape}, expected a {self.dtype.name} array of shape {expected}.")
        rows = np.ndim(x) > 1
        if scratch is None:
            scratch = self.scratch(min(max(len(x), 1), 256) if rows else 1)
        if not rows or 0 < len(x) <= scratch.batch:
            np.copyto(out, self.forward(x, scratch))
            return
        scratch._plan(x[:1] if len(x) else np.empty((1, *x.shape[1:]), x.dtype), "predict_into")
        for start in range(0, len(x), scratch.batch):
            end = start + scratch.batch
            np.copyto(out[start:end], self.forward(x[start:end], scratch))

    # -- files ------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the network to a file: readable with the suffix `.json`, compact with `.safetensors`.

        >>> import pullback as pb, tempfile, os
        >>> path = os.path.join(tempfile.mkdtemp(), "model.json")
        >>> mlp = pb.Mlp([2, 3], seed=0)
        >>> mlp.save(path)
        >>> bool((pb.Mlp.load(path).parameters == mlp.parameters).all())
        True
        """
        from .files import save

        save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Mlp:
        """Read a network that `save` wrote to `path`; whatever is wrong with it, the error is a `FileFormatError`."""
        from .files import load

        return load(path)


def _restored(sizes: Sequence[int], activations: Sequence[str], dtype: Any, parameters: Any) -> Mlp:
    """A network with a copy of these parameters."""
    mlp = object.__new__(Mlp)
    mlp._layout = Layout(sizes, activations, dtype)
    mlp._parameters = aligned_zeros(mlp._layout.size, mlp._layout.dtype)
    mlp._parameters[...] = parameters
    return mlp
