"""Memory that NumPy's arrays and PyTorch's tensors on the processor share, without a copy."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch

from .. import dtypes

_CPU = torch.device("cpu")


class _Lent:
    """Memory of a tensor as NumPy takes it, which holds the tensor.

    `Tensor.numpy` would mark the memory for ever: as if others could see it even when nobody does any more.
    """

    __slots__ = ("__array_interface__", "tensor")

    def __init__(self, raw: Any, type_string: str) -> None:
        steps = None
        if not raw.is_contiguous():
            size = raw.element_size()
            steps = tuple([step * size for step in raw.stride()])
        self.tensor = raw
        self.__array_interface__ = {
            "version": 3, "data": (raw.data_ptr(), False), "shape": tuple(raw.shape), "typestr": type_string,
            "strides": steps,
        }  # fmt: skip


def host_array(raw: Any) -> Any:
    """A NumPy array over the memory of a tensor; of one that is kept conjugated or negated, a copy of its values."""
    if raw.is_conj() or raw.is_neg():
        raw = raw.resolve_conj().resolve_neg()
    dtype = numpy_dtype(raw.dtype)
    if not raw.numel():
        return np.empty(tuple(raw.shape), dtype)
    array = np.asarray(_Lent(raw, dtype.str))
    return array if dtype.kind != "V" else array.view(dtype)  # bfloat16 is no dtype of NumPy's own


def on_host(array: Any) -> Any:
    """A tensor over the memory of a NumPy array; of one that cannot be written, a copy: PyTorch knows no such."""
    if not array.flags.writeable or any(step < 0 for step in array.strides):
        array = np.array(array, order="C")
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


@cache
def numpy_dtype(dtype: Any) -> Any:
    """NumPy's dtype for one of PyTorch's."""
    return dtypes.numpy_dtype(dtypes.get(dtype))


@cache
def torch_dtype(dtype: Any) -> Any:
    """PyTorch's dtype for one of NumPy's."""
    return getattr(torch, dtypes.from_numpy(dtype).name)


def host_empty(shape: tuple[int, ...], dtype: Any) -> Any:
    """A tensor on the processor with nothing in it yet, whatever PyTorch's default device is."""
    try:
        return torch.empty(shape, dtype=torch_dtype(dtype), device=_CPU)
    except RuntimeError as error:  # which is all that PyTorch says
        raise MemoryError(str(error)) from None
