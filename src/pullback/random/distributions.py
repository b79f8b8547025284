"""Distributions of real numbers, and of truth values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never

import numpy as np

from .. import dtypes
from ..autodiff import base
from ..autodiff.base import values_of
from ..backends.numpy.random import gumbel, minus_log, normal_pairs, unit_of_two_words
from ..errors import ShapeError
from ..keywords import hide_others, unexpected
from .arguments import Shape, as_tensor, number, real_dtype, shape_of
from .drawing import drawn_again
from .stream import Stream

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor

_UNIFORM_BITS = {"bfloat16": 8, "float16": 11, "float32": 24}  # as many as the mantissa holds


class Distributions(Stream):
    """Numbers drawn one by one."""

    __slots__ = ()

    @drawn_again
    @hide_others
    def uniform(
        self,
        shape: Shape = (),
        low: float = 0.0,
        high: float = 1.0,
        *,
        dtype: Any = None,
        device: str | None = None,
        **other: Never,
    ) -> Tensor:
        """Numbers from `low` (included) to `high` (not included), equally likely.

        Parameters
        ----------
        shape : int or tuple of int
            The sizes of the axes; () for a single number.
        low : float
            The smallest number.
        high : float
            The bound above, which is not drawn.
        dtype : dtype, optional
            By default `pb.default_dtype()`.
        device : str, optional
            By default the current device (see `pb.device`).

        Returns
        -------
        Tensor

        Examples
        --------
        >>> import pullback as pb
        >>> x = pb.random.uniform((1000,), -1.0, 1.0)
        >>> bool((x >= -1).all()), bool((x < 1).all())
        (True, True)
        """
        if other:
            raise unexpected("uniform", other)
        shape, chosen = shape_of(shape), real_dtype("uniform", dtype)
        low, high = number("uniform", "low", low), number("uniform", "high", high)
        if not (low <= high and np.isfinite(high - low)):
            raise ValueError(f"uniform: low={low} and high={high} must be finite and low at most high.")
        if chosen.name == "float64":
            unit = self._made(shape, 2, unit_of_two_words)
        else:
            shift, scale = 32 - _UNIFORM_BITS[chosen.name], 2.0 ** -_UNIFORM_BITS[chosen.name]
            unit = self._made(shape, 1, lambda words: (words[0] >> np.uint32(shift)) * scale)
        if low == 0.0 and high == 1.0:
            return as_tensor(unit, chosen, device)
        values = (low + (high - low) * unit).astype(dtypes.numpy_dtype(chosen))
        if low < high:  # rounding must not reach the end that is not included
            end = np.asarray(high, values.dtype)
            values = np.minimum(values, np.nextafter(end, np.asarray(low, values.dtype)) if end >= high else end)
        return as_tensor(values, chosen, device)

    @drawn_again
    @hide_others
    def normal(
        self,
        shape: Shape = (),
        mean: float = 0.0,
        std: float = 1.0,
        *,
        dtype: Any = None,
        device: str | None = None,
        **other: Never,
    ) -> Tensor:
        """Numbers of the normal distribution with this `mean` and standard deviation.

        Parameters
        ----------
        shape : int or tuple of int
            The sizes of the axes; () for a single number.
        mean : float
            The middle of the distribution.
        std : float
            Its standard deviation.
        dtype : dtype, optional
            By default `pb.default_dtype()`.
        device : str, optional
            By default the current device (see `pb.device`).

        Returns
        -------
        Tensor

        Examples
        --------
        >>> import pullback as pb
        >>> pb.random.seed(0)
        >>> x = pb.random.normal((10000,), mean=2.0)
        >>> abs(x.mean().item() - 2.0) < 0.1
        True
        """
        if other:
            raise unexpected("normal", other)
        shape, chosen = shape_of(shape), real_dtype("normal", dtype)
        mean, std = number("normal", "mean", mean), number("normal", "std", std)
        if not std >= 0:
            raise ValueError(f"normal: std={std} must not be negative.")
        if chosen.name == "float64":
            values = self._made(shape, 2, lambda words: normal_pairs(unit_of_two_words(words)), whole=2)
        else:
            values = self._made(shape, 1, lambda words: normal_pairs(words[0] * 2.0**-32), whole=2)
        if mean != 0.0 or std != 1.0:
            values = mean + std * values
        return as_tensor(values, chosen, device)

    @drawn_again
    @hide_others
    def exponential(
        self,
        shape: Shape = (),
        scale: float = 1.0,
        *,
        dtype: Any = None,
        device: str | None = None,
        **other: Never,
    ) -> Tensor:
        """Numbers from 0 on with density exp(-x / scale) / scale.

        Parameters
        ----------
        shape : int or tuple of int
            The sizes of the axes; () for a single number.
        scale : float
            The mean.
        dtype : dtype, optional
            By default `pb.default_dtype()`.
        device : str, optional
            By default the current device (see `pb.device`).

        Returns
        -------
        Tensor

        Examples
        --------
        >>> import pullback as pb
        >>> bool((pb.random.exponential((100,)) >= 0).all())
        True
        """
        if other:
            raise unexpected("exponential", other)
        shape, chosen = shape_of(shape), real_dtype("exponential", dtype)
        scale = number("exponential", "scale", scale)
        if not scale >= 0:
            raise ValueError(f"exponential: scale={scale} must not be negative.")
        return as_tensor(self._made(shape, 2, minus_log) * scale, chosen, device)

    @drawn_again
    @hide_others
    def gumbel(
        self,
        shape: Shape = (),
        loc: float = 0.0,
        scale: float = 1.0,
        *,
        dtype: Any = None,
        device: str | None = None,
        **other: Never,
    ) -> Tensor:
        """Numbers of the Gumbel distribution: where the largest of many others lies.

        They are moved by `loc` and multiplied by `scale`. Added to logits they make the place of the largest sum a draw
        of `categorical`.

        Parameters
        ----------
        shape : int or tuple of int
            The sizes of the axes; () for a single number.
        loc : float
            Where the density is largest.
        scale : float
            How wide the distribution is.
        dtype : dtype, optional
            By default `pb.default_dtype()`.
        device : str, optional
            By default the current device (see `pb.device`).

        Returns
        -------
        Tensor

        Examples
        --------
        >>> import pullback as pb
        >>> x = pb.random.Generator(1).gumbel((10000,), dtype=pb.float64)
        >>> abs(float(x.mean()) - 0.5772) < 0.03
        True
        """
        if other:
            raise unexpected("gumbel", other)
        shape, chosen = shape_of(shape), real_dtype("gumbel", dtype)
        loc, scale = number("gumbel", "loc", loc), number("gumbel", "scale", scale)
        if not scale >= 0:
            raise ValueError(f"gumbel: scale={scale} must not be negative.")
        return as_tensor(loc + scale * self._made(shape, 2, gumbel), chosen, device)

    @drawn_again
    @hide_others
    def bernoulli(
        self, p: Any = 0.5, shape: Shape | None = None, *, device: str | None = None, **other: Never
    ) -> Tensor:
        """Truth values that are true with probability `p`.

        Parameters
        ----------
        p : float or array
            One probability, or one for each result.
        shape : int or tuple of int, optional
            The sizes of the axes, by default those of `p`.
        device : str, optional
            By default the current device (see `pb.device`).

        Returns
        -------
        Tensor
            Truth values.

        Examples
        --------
        >>> import pullback as pb
        >>> pb.random.bernoulli(pb.asarray([0.0, 1.0]))
        tensor([False,  True])
        """
        if other:
            raise unexpected("bernoulli", other)
        if isinstance(p, base.Tensor):
            device = p.device if device is None else device
            p = values_of(p)
        chances = np.asarray(p, np.float64)
        if not np.all((chances >= 0) & (chances <= 1)):
            raise ValueError("bernoulli: every p must lie between 0 and 1.")
        shape = chances.shape if shape is None else shape_of(shape)
        try:
            chances = np.broadcast_to(chances, shape)
        except ValueError:
            raise ShapeError(f"bernoulli: p has shape {chances.shape}, which does not fit shape {shape}.") from None
        unit = self._made(shape, 1, lambda words: words[0] * 2.0**-32)
        return as_tensor(unit < chances, dtypes.bool_, device)
