"""Integers, orders and choices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never

import numpy as np

from .. import dtypes, modes
from ..autodiff import base
from ..autodiff.base import values_of
from ..autodiff.creation import asarray, default_dtype
from ..autodiff.tables import TENSORS
from ..backends.numpy.random import unit_of_two_words
from ..errors import DtypeError, ShapeError
from ..keywords import hide_others, unexpected
from .arguments import Shape, as_tensor, integer, shape_of, size_of
from .distributions import Distributions
from .drawing import drawn_again, drawn_by_programs
from .stream import KEYS

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor


class Choices(Distributions):
    """Some of so many."""

    __slots__ = ()

    @drawn_again
    @hide_others
    def integers(
        self,
        low: int,
        high: int | None = None,
        shape: Shape = (),
        *,
        dtype: Any = None,
        device: str | None = None,
        **other: Never,
    ) -> Tensor:
        """Integers from `low` (included) to `high` (not included), equally likely.

        Parameters
        ----------
        low : int
            The smallest one. With one bound it is `high`, and the smallest one is 0.
        high : int, optional
            The bound above, which is not drawn.
        shape : int or tuple of int
            The sizes of the axes; () for a single number.
        dtype : dtype, optional
            By default int64.
        device : str, optional
            By default the current device (see `pb.device`).

        Returns
        -------
        Tensor

        Examples
        --------
        >>> import pullback as pb
        >>> x = pb.random.integers(1, 7, (100,))
        >>> x.min().item() >= 1, x.max().item() <= 6
        (True, True)
        """
        if other:
            raise unexpected("integers", other)
        chosen = dtypes.int64 if dtype is None else dtypes.get(dtype)
        if chosen.kind not in ("int", "uint"):
            raise DtypeError(f"integers: dtype must be an integer one, got {chosen.name}.")
        info = np.iinfo(dtypes.numpy_dtype(chosen))
        if high is None:
            low, high = 0, low
        low = integer("low", low, int(info.min), int(info.max) + 1)
        high = integer("high", high, low + 1, int(info.max) + 2)
        return as_tensor(self._below(high - low, shape_of(shape)) + np.uint64(low % KEYS), chosen, device)

    @hide_others
    def permutation(self, x: Any, axis: int = 0, *, device: str | None = None, **other: Never) -> Tensor:
        """The integers below `x` in random order; of an array, its entries along `axis` in random order.

        Parameters
        ----------
        x : int or array
            How many integers, or what to shuffle. It is not changed.
        axis : int
            Along which axis entries of an array are moved.
        device : str, optional
            Where integers go, by default the current device (see `pb.device`).

        Returns
        -------
        Tensor

        Examples
        --------
        >>> import pullback as pb
        >>> sorted(pb.random.permutation(4).tolist())
        [0, 1, 2, 3]
        """
        if other:
            raise unexpected("permutation", other)
        if isinstance(x, (int, np.integer)):
            length = integer("permutation: x", x, 0, 1 << 62)
            return self._places(length, length, False, device)
        x = asarray(x, device=device)
        if not -x.ndim <= axis < x.ndim:
            raise ShapeError(f"permutation: axis {axis} is out of bounds for shape {x.shape}.")
        return x.take(self._places(x.shape[axis], x.shape[axis], False, x.device), axis=axis)

    @hide_others
    def choice(
        self, x: Any, shape: Shape = (), *, replace: bool = True, axis: int = 0, p: Any = None, **other: Never
    ) -> Tensor:
        """Entries of `x` along `axis`, or integers below `x`.

        Parameters
        ----------
        x : array or int
            An array, or the number of integers to choose from.
        shape : int or tuple of int
            How many: this shape takes the place of the axis.
        replace : bool
            Whether an entry may be chosen twice.
        axis : int
            Along which axis of an array.
        p : array, optional
            A weight for each entry, none of them negative; each is equally likely without it. The weights need not
            add up to 1. With `replace`, those in a list or an array of NumPy's are added up once; for those in a
            tensor, which may be known only when a compiled function runs, a number is drawn for each of them and each
            choice.

        Returns
        -------
        Tensor
            What was chosen; through entries of a tensor that needs a gradient there is one.

        Examples
        --------
        >>> import pullback as pb
        >>> len(set(pb.random.Generator(1).choice(10, (10,), replace=False).tolist()))
        10
        >>> pb.random.Generator(1).choice(3, (4,), p=[0.0, 1.0, 0.0])
        tensor([1, 1, 1, 1])
        """
        if other:
            raise unexpected("choice", other)
        shape = shape_of(shape)
        source = None if isinstance(x, (int, np.integer)) else asarray(x)
        if source is not None and not -source.ndim <= axis < source.ndim:
            raise ShapeError(f"choice: axis {axis} is out of bounds for shape {source.shape}.")
        length = int(x) if source is None else source.shape[axis]
        count = size_of(shape)
        if replace:
            integer("choice: number of entries", length, 1, KEYS)
        elif count > length:
            raise ShapeError(f"choice: cannot take {count} of {length} entries without replacement.")
        device = None if source is None else source.device
        if p is None:
            places = self._places(length, count, replace, device)
        else:
            weights: Any = p if isinstance(p, base.Tensor) else np.asarray(p, np.float64)
            if weights.shape != (length,):
                raise ShapeError(f"choice: p has shape {weights.shape}; expected ({length},), a weight for each entry.")
            if isinstance(p, base.Tensor):  # whose values may be known later, or be others for each of many examples
                places = self.multinomial(p, count, replace=replace)
            elif not replace:
                places = self.multinomial(asarray(p, dtype=default_dtype(), device=device), count)
            else:
                weights = tuple(weights.tolist()) if isinstance(p, (list, tuple)) else weights
                places = self._weighted_places(weights, (count,), device=device)
        if source is None:
            return places.reshape(shape)
        axis %= source.ndim
        taken = source.take(places, axis=axis)
        return taken.reshape(source.shape[:axis] + shape + source.shape[axis + 1 :])

    @drawn_again
    def _weighted_places(self, p: Any, shape: Any, *, device: str | None) -> Tensor:
        """Integers below the number of weights, as often as these say."""
        weights = np.asarray(p, np.float64)
        _check_weights("choice", weights, None)
        ends = np.cumsum(weights / weights.max())  # whose sum is not infinite
        picked = np.searchsorted(ends, self._made(shape, 2, unit_of_two_words) * ends[-1], side="right")
        picked = np.minimum(picked, np.flatnonzero(weights)[-1])  # where rounding has reached the end
        return as_tensor(picked, dtypes.int64, device)

    @hide_others
    def categorical(self, logits: Any, shape: Shape | None = None, *, axis: int = -1, **other: Never) -> Tensor:
        """Integers below the length of an axis, with probabilities of which `logits` are the logarithms.

        Parameters
        ----------
        logits : array
            Numbers along `axis`, to which a constant may be added: what a network gives for its classes, say. -inf is
            never drawn; NaN, or -inf for every class, is an error, except in compiled functions and `vmap`.
        shape : int or tuple of int, optional
            The shape of the result, to which the other axes of `logits` are broadcast; theirs unless given.
        axis : int
            Along which axis the classes lie.

        Returns
        -------
        Tensor
            int64 numbers.

        Examples
        --------
        >>> import pullback as pb
        >>> logits = pb.asarray([[0.0, 9.0, 0.0], [0.0, -float("inf"), -float("inf")]])
        >>> pb.random.Generator(1).categorical(logits)
        tensor([1, 0])
        >>> pb.random.Generator(1).categorical(logits, (1000, 2)).shape
        (1000, 2)
        """
        if other:
            raise unexpected("categorical", other)
        given = asarray(logits).detach()
        if given.dtype.kind == "complex" or given.dtype.kind == "bool":
            raise DtypeError(f"categorical: logits must be real numbers, got {given.dtype.name}.")
        if not -given.ndim <= axis < given.ndim:
            raise ShapeError(f"categorical: axis {axis} is out of bounds for shape {given.shape}.")
        if given.dtype.kind != "float" or given.dtype.itemsize < 4:
            given = given.astype(dtypes.float32 if given.dtype.kind == "float" else default_dtype())
        given = given.moveaxis(axis, -1)
        *others, length = given.shape
        if not length:
            raise ShapeError(f"categorical: axis {axis} of shape {asarray(logits).shape} is empty.")
        wanted = tuple(others) if shape is None else shape_of(shape)
        try:
            fits = np.broadcast_shapes(tuple(others), wanted) == wanted
        except ValueError:
            fits = False
        if not fits:
            raise ShapeError(
                f"categorical: logits of shape {asarray(logits).shape} have axes {tuple(others)} beside the classes, "
                f"which do not fit shape {wanted}."
            )
        if modes.mapping() is None and modes.tracing() is None:
            largest = np.asarray(values_of(TENSORS.max(given, (-1,), False)))
            if not np.all(largest > -np.inf):
                raise ValueError(
                    f"categorical: nothing can be drawn where logits are {'NaN' if np.isnan(largest).any() else '-inf'}"
                    f"{'' if np.isnan(largest).any() else ' for every class'}."
                )
        noise = self.gumbel((*wanted, length), dtype=given.dtype, device=given.device)
        return TENSORS.argmax(TENSORS.add(given, noise), (-1,), False)

    @hide_others
    def multinomial(self, p: Any, count: int = 1, *, replace: bool = False, **other: Never) -> Tensor:
        """`count` integers below the length of the last axis for each row of weights `p`.

        Parameters
        ----------
        p : array
            Weights of shape (..., K), none of them negative, which need not add up to 1.
        count : int
            How many integers to draw from a row.
        replace : bool
            Whether one may be drawn twice from a row. If not, each is drawn in proportion to the weights that are left,
            and a row must have as many that are not zero.

        Returns
        -------
        Tensor
            int64 numbers of shape (..., count).

        Examples
        --------
        >>> import pullback as pb
        >>> sorted(pb.random.Generator(1).multinomial(pb.asarray([0.2, 0.0, 0.8]), 2).tolist())
        [0, 2]
        >>> pb.random.Generator(1).multinomial(pb.asarray([[1.0, 3.0], [0.0, 1.0]]), 5, replace=True).shape
        (2, 5)
        """
        if other:
            raise unexpected("multinomial", other)
        weights = asarray(p).detach()
        count = integer("multinomial: count", count, 0, KEYS)
        if weights.ndim == 0 or weights.dtype.kind == "complex":
            raise ShapeError(
                f"multinomial: p must be weights of shape (..., K), got {weights.dtype.name} of shape {weights.shape}."
            )
        if weights.dtype.kind != "float" or weights.dtype.itemsize < 4:
            weights = weights.astype(dtypes.float32 if weights.dtype.kind == "float" else default_dtype())
        length = weights.shape[-1]
        if not replace and count > length:
            raise ShapeError(f"multinomial: cannot take {count} of {length} without replacement. Write replace=True.")
        if replace and count and not length:
            raise ShapeError(f"multinomial: the last axis of p of shape {weights.shape} is empty.")
        if modes.mapping() is None and modes.tracing() is None and weights.size:
            _check_weights("multinomial", np.asarray(values_of(weights)), None if replace else count)
        if replace:
            weights = TENSORS.expand_dims(weights, (-2,))
        drawn = (*weights.shape[:-2], count, length) if replace else weights.shape
        noise = self.exponential(drawn, dtype=weights.dtype, device=weights.device)
        none = TENSORS.less_equal(weights, 0.0)
        if length:  # beside the largest one: times of tiny weights would all be infinite
            largest = TENSORS.max(weights, (-1,), True)
            weights = TENSORS.divide(weights, TENSORS.where(TENSORS.greater(largest, 0.0), largest, 1.0))
        least = 64 * float(np.finfo(dtypes.numpy_dtype(weights.dtype)).tiny)  # no noise is that large
        times = TENSORS.where(none, np.inf, TENSORS.divide(noise, TENSORS.maximum(weights, least)))
        if replace:
            return TENSORS.argmin(times, (-1,), False)
        order = TENSORS.argsort(times, (-1,), False, True)
        return TENSORS.getitem(order, (..., slice(0, count)))

    @drawn_by_programs
    def _places(self, length: int, count: int, replace: bool, device: str | None) -> Tensor:
        """`count` integers below `length`, each equally likely; without `replace` none twice."""
        picked = self._below(length, (count,)) if replace else self._order(length)[:count]
        return as_tensor(picked, dtypes.int64, device)


def _check_weights(name: str, weights: Any, count: int | None) -> None:
    """Weights of which something can be drawn; `count` different ones of each row."""
    if not np.all((weights >= 0) & (weights < np.inf)):
        raise ValueError(
            f"{name}: every weight must be finite and not negative; they lie from {weights.min()} to {weights.max()}."
        )
    least = min(np.count_nonzero(weights, axis=-1).ravel(), default=0)
    if least < (1 if count is None else count):
        raise ValueError(
            f"{name}: {1 if count is None else count} different places cannot be drawn where only {least} weights are "
            "not zero."
        )
