"""Normalisation layers, dropout, embedding and similarity, with the names of PyTorch's functional interface."""

from __future__ import annotations

import math
from operator import index
from typing import TYPE_CHECKING, Any, Never, Sequence

from .. import modes
from ..autodiff.apply import apply
from ..autodiff.creation import given as asarray
from ..autodiff.fast import call_for
from ..autodiff.tables import TENSORS
from ..dtypes import REAL, get as get_dtype, int64
from ..errors import DtypeError, IndexingError, ShapeError
from ..keywords import hide_others, unexpected
from ..operations import OPERATIONS
from .activations import Axis
from .axes import negative_axes, negative_axis
from .elementwise import divide, maximum
from .shapes import broadcast_shapes

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from ..typing import ArrayLike

__all__ = [
    "batch_norm", "cosine_similarity", "dropout", "embedding", "group_norm", "instance_norm", "layer_norm", "normalize",
    "one_hot", "rms_norm",
]  # fmt: skip

_embedding = call_for("embedding")
_layer_norm = call_for("layer_norm")
_rms_norm = call_for("rms_norm")
_dropout = call_for("dropout")


#: The last axes, by their number.
LAST_AXES = {n: tuple(range(-n, 0)) for n in range(1, 9)}


def _floating(name: str, x: Any) -> Tensor:
    x = asarray(x)
    if x._raw.dtype not in REAL and x.dtype.kind != "float":
        raise DtypeError(f"{name}: expected floating-point numbers, got {x.dtype.name}. Convert with `.astype(...)`.")
    return x


def _reshaped(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    return x if x.shape == shape else apply(OPERATIONS["reshape"], (x,), (shape,))


def _normalized_axes(name: str, x: Tensor, normalized_shape: Any, axis: Any) -> tuple[int, ...]:
    """The axes to normalise over: those of `normalized_shape`, which must be the last ones, or `axis`."""
    if (normalized_shape is None) == (axis is None):
        raise TypeError(f"{name}: give either normalized_shape or axis, for example axis=-1.")
    if axis is not None:
        axes = negative_axes(name, axis, x.ndim)
        if not axes:
            raise ShapeError(f"{name}: axis is empty: there is nothing to normalise over.")
        return axes
    if type(normalized_shape) is tuple and normalized_shape == x._raw.shape[-len(normalized_shape) :]:
        return LAST_AXES[len(normalized_shape)]
    try:
        shape = tuple(map(index, normalized_shape if hasattr(normalized_shape, "__len__") else (normalized_shape,)))
    except TypeError:
        raise DtypeError(
            f"{name}: normalized_shape must be an integer or a tuple of them, got {type(normalized_shape).__name__}: "
            f"{normalized_shape!r:.60}. Pass parameters by name: axis=-1, weight=w."
        ) from None
    if not shape or x.shape[-len(shape) :] != shape:
        raise ShapeError(f"{name}: normalized_shape {shape} is not the end of the shape {x.shape} of x.")
    return tuple(range(-len(shape), 0))


def _parameter(name: str, label: str, parameter: Any, x: Tensor, axes: tuple[int, ...]) -> Tensor | None:
    """A weight or bias with one number for each position along `axes`, in a shape that broadcasts against `x`."""
    if parameter is None:
        return None
    parameter = _floating(name, parameter)
    if axes == LAST_AXES.get(len(axes)) and parameter._raw.shape == x._raw.shape[-len(axes) :]:
        return parameter
    order = sorted(axes)
    expected = tuple(x.shape[a] for a in order)
    if parameter.shape != expected:
        raise ShapeError(f"{name}: {label} has shape {parameter.shape}, expected {expected} for x of shape {x.shape}.")
    return _reshaped(parameter, tuple(x.shape[a] if a in order else 1 for a in range(order[0], 0)))


def layer_norm(
    x: ArrayLike,
    normalized_shape: int | Sequence[int] | None = None,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    eps: float = 1e-5,
    *,
    axis: Axis | None = None,
) -> Tensor:
    """Subtract the mean and divide by the standard deviation, over the last axes or over `axis`; then scale and shift.

    Parameters
    ----------
    x : array
        Real numbers of any shape.
    normalized_shape : int or tuple of int, optional
        The sizes of the last axes, which are normalised over. Give this or `axis`.
    weight : array, optional
        What results are multiplied by; it has the shape of the axes normalised over.
    bias : array, optional
        What is added after that, of the same shape.
    eps : float
        Added to the variance, so that nothing is divided by zero.
    axis : int or tuple of int, optional
        Which axes to normalise over, in place of the last ones.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.layer_norm(pb.tensor([[1.0, 3.0], [10.0, 30.0]]), 2, eps=0.0)
    tensor([[-1.,  1.],
            [-1.,  1.]])
    """
    x = _floating("layer_norm", x)
    axes = _normalized_axes("layer_norm", x, normalized_shape, axis)
    scale = _parameter("layer_norm", "weight", weight, x, axes)
    shift = _parameter("layer_norm", "bias", bias, x, axes)
    return _layer_norm(x, scale, shift, axes, float(eps))


def rms_norm(
    x: ArrayLike,
    normalized_shape: int | Sequence[int] | None = None,
    weight: ArrayLike | None = None,
    eps: float | None = None,
    *,
    axis: Axis | None = None,
) -> Tensor:
    """Divide by the root of the mean square over the last axes or over `axis`; then multiply by `weight`.

    Parameters
    ----------
    x : array
        Real numbers of any shape.
    normalized_shape : int or tuple of int, optional
        The sizes of the last axes, which are normalised over. Give this or `axis`.
    weight : array, optional
        What results are multiplied by; it has the shape of the axes normalised over.
    eps : float, optional
        Added to the mean square; by default the rounding unit of the dtype computed in.
    axis : int or tuple of int, optional
        Which axes to normalise over, in place of the last ones.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.rms_norm(pb.tensor([3.0, 4.0, 0.0, 0.0]), 4, eps=0.0)
    tensor([1.2, 1.6, 0. , 0. ])
    """
    x = _floating("rms_norm", x)
    axes = _normalized_axes("rms_norm", x, normalized_shape, axis)
    scale = _parameter("rms_norm", "weight", weight, x, axes)
    if eps is None:
        eps = 2.0**-52 if x.dtype.itemsize == 8 else 2.0**-23
    return _rms_norm(x, scale, axes, float(eps))


def group_norm(
    x: ArrayLike, num_groups: int, weight: ArrayLike | None = None, bias: ArrayLike | None = None, eps: float = 1e-5
) -> Tensor:
    """Split axis 1 of `x` (samples, channels, ...) into groups and normalise each sample's groups; see `layer_norm`.

    Parameters
    ----------
    x : array
        (samples, channels, ...).
    num_groups : int
        How many groups the channels are split into, each normalised by itself in every sample.
    weight, bias : array, optional
        (channels,): results are multiplied by one, and the other is added.
    eps : float
        Added to the variance, so that nothing is divided by zero.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Examples
    --------
    >>> import numpy as np, pullback as pb
    >>> pb.group_norm(np.array([[1.0, 3.0, 10.0, 30.0]]), 2, eps=0.0)
    tensor([[-1.,  1., -1.,  1.]], dtype=float64)
    """
    x = _floating("group_norm", x)
    if x.ndim < 2:
        raise ShapeError(f"group_norm: x must have the axes (samples, channels, ...), got shape {x.shape}.")
    channels = x.shape[1]
    if num_groups < 1 or channels % num_groups:
        raise ShapeError(f"group_norm: {channels} channels cannot be split into {num_groups} groups of equal size.")
    split = (num_groups, channels // num_groups)
    ones = (1,) * (x.ndim - 2)
    parameters = []
    for label, parameter in (("weight", weight), ("bias", bias)):
        if parameter is not None:
            parameter = _floating("group_norm", parameter)
            if parameter.shape != (channels,):
                raise ShapeError(f"group_norm: {label} has shape {parameter.shape}, expected ({channels},).")
            parameter = _reshaped(parameter, split + ones)
        parameters.append(parameter)
    grouped = _reshaped(x, (x.shape[0], *split, *x.shape[2:]))
    axes = tuple(range(1 - x.ndim, 0))
    return _reshaped(apply(OPERATIONS["layer_norm"], (grouped, *parameters), (axes, float(eps))), x.shape)


def instance_norm(
    x: ArrayLike, *, weight: ArrayLike | None = None, bias: ArrayLike | None = None, eps: float = 1e-5
) -> Tensor:
    """Normalise each channel of each sample by itself, over all axes after it; then scale and shift.

    Parameters
    ----------
    x : array of real numbers
        (samples, channels, ...), with at least two elements in each channel.
    weight, bias : array of real numbers, optional
        One number per channel, to multiply by and to add.
    eps : float
        What is added to variances.

    Returns
    -------
    Tensor
        In the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.instance_norm(pb.tensor([[[1.0, 3.0], [10.0, 30.0]]]), eps=0.0)
    tensor([[[-1.,  1.],
             [-1.,  1.]]])
    """
    x = _floating("instance_norm", x)
    if x.ndim < 3:
        raise ShapeError(f"instance_norm: x must have the axes (samples, channels, ...), got shape {x.shape}.")
    if math.prod(x.shape[2:]) < 2:
        raise ShapeError(f"instance_norm: one value per channel has no variance; x has shape {x.shape}.")
    return group_norm(x, x.shape[1], weight, bias, eps)


def batch_norm(
    x: ArrayLike,
    running_mean: Any = None,
    running_var: Any = None,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Normalise each channel (axis 1) of `x` over all other axes.

    In training the batch's own statistics are used, and the running ones come back moved towards them (towards the
    unbiased variance). They are new tensors; nothing is written. Otherwise the running ones are used, and come back as
    they are.

    Parameters
    ----------
    x : array
        (samples, channels, ...).
    running_mean, running_var : array, optional
        (channels,): the statistics so far. In training they can be left out.
    weight, bias : array, optional
        (channels,): results are multiplied by one, and the other is added.
    training : bool
        Whether to use the batch's own statistics.
    momentum : float
        How far the running statistics move towards the batch's, from 0 to 1.
    eps : float
        Added to the variance, so that nothing is divided by zero.

    Returns
    -------
    tuple of Tensor
        (result, running mean, running variance); the statistics are None if they were not given.

    Examples
    --------
    >>> import numpy as np, pullback as pb
    >>> x = np.array([[1.0, 10.0], [3.0, 30.0]])
    >>> out, mean, var = pb.batch_norm(x, np.zeros(2), np.ones(2), training=True, momentum=0.5, eps=0.0)
    >>> out
    tensor([[-1., -1.],
            [ 1.,  1.]], dtype=float64)
    >>> mean, var
    (tensor([ 1., 10.], dtype=float64), tensor([  1.5, 100.5], dtype=float64))
    """
    x = _floating("batch_norm", x)
    if x.ndim < 2:
        raise ShapeError(f"batch_norm: x must have the axes (samples, channels, ...), got shape {x.shape}.")
    channels = x.shape[1]
    along_channels = (channels,) + (1,) * (x.ndim - 2)
    given = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    for label, value in given.items():
        if value is not None:
            value = given[label] = _floating("batch_norm", value)
            if value.shape != (channels,):
                raise ShapeError(f"batch_norm: {label} has shape {value.shape}, expected ({channels},).")
    if (running_mean is None) != (running_var is None):
        raise TypeError("batch_norm: give both running_mean and running_var, or neither.")
    mean, variance = given["running_mean"], given["running_var"]
    scale, shift = (None if p is None else _reshaped(p, along_channels) for p in (given["weight"], given["bias"]))
    if not training:
        if mean is None:
            raise TypeError("batch_norm: outside training running_mean and running_var are needed.")
        return _with_running_statistics(x, mean, variance, scale, shift, along_channels, eps), mean, variance
    count = x.size // max(channels, 1)
    if count < 2:
        raise ShapeError(f"batch_norm: one value per channel has no variance; x has shape {x.shape}.")
    axes = tuple(a for a in range(-x.ndim, 0) if a != 1 - x.ndim)
    out, batch_mean, batch_variance = apply(OPERATIONS["batch_norm"], (x, scale, shift), (axes, float(eps)))
    if mean is not None:
        mean = moved(mean, _reshaped(batch_mean.detach(), (channels,)), momentum)
        unbiased = _reshaped(batch_variance.detach(), (channels,)) * (count / (count - 1))
        variance = moved(variance, unbiased, momentum)
    return out, mean, variance


def moved(running: Tensor, value: Tensor, momentum: float) -> Tensor:
    """Running statistics, moved by `momentum` towards a value."""
    running = running.detach()
    return asarray(running * (1 - momentum) + value * momentum, dtype=running.dtype)


def _with_running_statistics(
    x: Tensor, mean: Any, variance: Any, scale: Any, shift: Any, shape: Any, eps: float
) -> Tensor:
    mean, variance = TENSORS.widened(mean), TENSORS.widened(variance)
    factor = apply(OPERATIONS["reciprocal"], (apply(OPERATIONS["sqrt"], (_reshaped(variance, shape) + eps,)),))
    if scale is not None:
        factor = factor * scale
    offset = -_reshaped(mean, shape) * factor
    if shift is not None:
        offset = offset + shift
    return asarray(apply(OPERATIONS["multiply_add"], (x, factor, offset)), dtype=x.dtype)


def dropout(x: ArrayLike, p: float = 0.5, training: bool = True, *, generator: Any = None) -> Tensor:
    """Set each element to zero with probability `p` and divide the others by 1 - p; `x` itself outside training.

    Parameters
    ----------
    x : array
        Real numbers of any shape.
    p : float
        The probability of each element to become zero, from 0 to 1.
    training : bool
        With False `x` comes back as it is.
    generator : pb.random.Generator, optional
        Where random numbers come from, by default the one that `pb.random.seed` seeds.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.random.seed(0)
    >>> sorted(set(pb.dropout(pb.tensor([1.0] * 100), 0.5).tolist()))
    [0.0, 2.0]
    """
    x = _floating("dropout", x)
    if not 0 <= p <= 1:
        raise ValueError(f"dropout: p must be a probability, from 0 to 1, got {p!r}.")
    if not training or p == 0:
        return x
    from .. import random

    key, offset = (generator or random.default_generator()).next_key(x.size)
    return _dropout(x, float(p), key, offset)


def embedding(indices: Any, weight: ArrayLike, padding_idx: int | None = None) -> Tensor:
    """The rows of `weight` at `indices`: a table of vectors by number.

    Parameters
    ----------
    indices : array of int
        Numbers of rows, of any shape.
    weight : array
        The table (rows, features).
    padding_idx : int, optional
        A row that gets no gradient.

    Returns
    -------
    Tensor
        (..., features), where `indices` is (...).

    Examples
    --------
    >>> import pullback as pb
    >>> table = pb.tensor([[0.0, 1.0], [2.0, 3.0]], requires_grad=True)
    >>> pb.embedding(pb.asarray([1, 1, 0]), table).sum().backward()
    >>> table.grad
    tensor([[1., 1.],
            [2., 2.]])
    """
    indices, weight = asarray(indices), asarray(weight)
    if indices.dtype.kind not in ("int", "uint"):
        raise DtypeError(f"embedding: indices must be integers, got {indices.dtype.name}. They come before the weight.")
    if weight.ndim != 2:
        raise ShapeError(f"embedding: weight must have the axes (rows, features), got shape {weight.shape}.")
    rows = weight.shape[0]
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise IndexError(f"embedding: padding_idx {padding_idx} is out of range for {rows} rows.")
    out = _embedding(indices, weight)
    if padding_idx is None or not out.requires_grad:
        return out
    is_padding = apply(OPERATIONS["equal"], (indices, int(padding_idx) % rows))
    is_padding = apply(OPERATIONS["expand_dims"], (is_padding,), ((-1,),))
    return apply(OPERATIONS["where"], (is_padding, out.detach(), out))


@hide_others
def normalize(x: ArrayLike, axis: Axis | None = -1, *, ord: float = 2.0, eps: float = 1e-12, **other: Never) -> Tensor:
    """`x` divided by its norms along `axis`: vectors of length one. A norm below `eps` counts as `eps`.

    Parameters
    ----------
    x : array
        Numbers of any shape.
    axis : int, tuple of int or None
        Along which axes vectors lie, by default the last one; None takes all of `x` for one vector.
    ord : float
        Which norm: 2 is the Euclidean length, 1 the sum of absolute values, `pb.inf` the largest one.
    eps : float
        The least that is divided by.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.normalize(pb.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[0.6, 0.8],
            [0. , 0. ]])
    """
    if other:
        raise unexpected("normalize", other)
    x = asarray(x)
    if x.dtype.kind not in ("float", "complex"):
        raise DtypeError(f"normalize: expected floating-point or complex numbers, got {x.dtype.name}.")
    axes = None if axis is None else negative_axes("normalize", axis, x.ndim)
    norms = apply(OPERATIONS["vector_norm"], (x,), (axes, True, ord))
    return divide(x, maximum(norms, eps))


@hide_others
def cosine_similarity(x: ArrayLike, y: ArrayLike, axis: int = -1, eps: float = 1e-8, **other: Never) -> Tensor:
    """The cosine of the angle between vectors: the products of `x` and `y` along `axis`, both divided by their norms.

    A norm below `eps` counts as `eps`: beside a vector of zeros the result is 0.

    Parameters
    ----------
    x, y : array of real numbers
        They broadcast against each other.
    axis : int
        The axis of the vectors' elements, once both are broadcast. (PyTorch's is 1 if it is not given.)
    eps : float

    Returns
    -------
    Tensor
        From -1 to 1, without `axis`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.cosine_similarity(pb.tensor([[3.0, 4.0], [0.0, 0.0]]), pb.tensor([0.0, 2.0]))
    tensor([0.8, 0. ])
    """
    if other:
        raise unexpected("cosine_similarity", other)
    x, y = _floating("cosine_similarity", x), _floating("cosine_similarity", y)
    try:
        shape = broadcast_shapes(x.shape, y.shape)
    except ShapeError as error:
        raise ShapeError(f"cosine_similarity: {error}") from None
    along = negative_axis("cosine_similarity", axis, len(shape))
    if not all(v.ndim >= -along and v.shape[along] == shape[along] for v in (x, y)):
        x, y = TENSORS.broadcast_to(x, shape), TENSORS.broadcast_to(y, shape)  # norms count what is repeated
    axes = (along,)
    return TENSORS.sum(normalize(x, axes, eps=eps) * normalize(y, axes, eps=eps), axes, False)


@hide_others
def one_hot(
    x: ArrayLike, num_classes: int | None = None, *, axis: int = -1, dtype: Any = None, **other: Never
) -> Tensor:
    """For each class number a vector of zeros with a one at its place.

    Parameters
    ----------
    x : array of integers
        From 0 to `num_classes` - 1; others are refused.
    num_classes : int, optional
        How long the vectors are. Without it one more than the largest number, which compiled code does not know.
    axis : int
        Where the axis of the classes comes in the result.
    dtype : dtype, optional
        int64 unless another one is given.

    Returns
    -------
    Tensor
        With one axis more than `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.one_hot(pb.asarray([1, 0]), 3, dtype=pb.float32)
    tensor([[0., 1., 0.],
            [1., 0., 0.]])
    """
    if other:
        raise unexpected("one_hot", other)
    x = asarray(x)
    if x.dtype.kind not in ("int", "uint"):
        raise DtypeError(f"one_hot: class numbers must be integers, got {x.dtype.name}.")
    if num_classes is None or num_classes == -1:  # which is PyTorch's word for it
        if x.size == 0:
            raise ShapeError("one_hot: of no class numbers the largest is not known: give num_classes.")
        num_classes = int(TENSORS.max(x, None, False)) + 1
    if index(num_classes) < 1:
        raise ShapeError(f"one_hot: num_classes must be positive, got {num_classes}.")
    along = negative_axis("one_hot", axis, x.ndim + 1)
    classes = asarray(x, dtype=int64)
    classes = TENSORS.where(TENSORS.less(classes, 0), num_classes, classes)  # no class, where -1 would be the last
    classes = TENSORS.expand_dims(classes, (along,))
    shape = list(classes.shape)
    shape[along] = num_classes
    zeros = TENSORS.zeros(tuple(shape), x._backend.raw_dtype(get_dtype(int64 if dtype is None else dtype)), x)
    try:
        return apply(OPERATIONS["put_along_axis"], (zeros, 1, classes), (along,))
    except IndexingError:
        raise no_such_class("one_hot", x, num_classes) from None


def no_such_class(name: str, numbers: Tensor, classes: int) -> IndexingError:
    """The error for class numbers some of which are out of range."""
    found = ""
    if modes.mapping() is None:
        found = f", got {int(TENSORS.min(numbers, None, False))} to {int(TENSORS.max(numbers, None, False))}"
    return IndexingError(f"{name}: class numbers must be from 0 to {classes - 1}{found}.")
