"""The NumPy backend: the default, and the reference for every other one."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any, Mapping

import numpy as np

from ... import dtypes
from ...errors import DeviceError, DtypeError
from ..protocol import Backend, Kernels
from . import elementwise, indexing, linear, native, precision, reductions, shape
from .ownership import is_sole_owner

#: Kernels of modules that are imported when one of them is used.
_LATER = {
    "activations": "blockwise relu leaky_relu elu gelu sigmoid silu softplus log_sigmoid softmax log_softmax logsumexp",
    "attention": "attention attention_gradient rotate_pairs rotary_embedding",
    "convolution": "convolution biased_convolution convolution_input_gradient convolution_weight_gradient",
    "fft": "fft ifft rfft irfft",
    "linalg": "inv solve cholesky det slogdet eigh eigvalsh eig eigvals svd svdvals qr pinv matrix_rank cofactor "
    "cofactor_product vector_norm cross lu matrix_exp",
    "losses": "cross_entropy cross_entropy_gradient soft_cross_entropy binary_cross_entropy_with_logits mse_loss "
    "l1_loss huber_loss",
    "normalization": "layer_norm reciprocal_deviation rms_norm batch_norm multiply_add dropout dropout_mask embedding",
    "pooling": "max_pool max_pool_indices pool_gather pool_scatter resample",
    "scan": "ssm_scan ssm_scan_gradient",
    "sorting": "sort argsort running_indices nonzero searchsorted unique isin",
}
_FORMULAS = f"{__name__.rpartition('.')[0]}.portable.special"
_MODULE_OF = {name: module for module, names in _LATER.items() for name in names.split()}

_ndarray = np.ndarray


class NumpyKernels(Kernels):
    """NumPy's kernels, those of networks and of linear algebra only once they are used."""

    def __getattr__(self, name: str) -> Any:
        module = _MODULE_OF.get(name)
        if module is None:
            kernel = super().__getattr__(name)
            if kernel.func.__module__ == _FORMULAS:
                module = "special"  # has every one of those formulas, on blocks
        if module is not None:
            kernel = getattr(import_module(f".{module}", __name__), name)
        if name in native.KERNELS:
            kernel = native.sized(("kernel", name), kernel, *native.KERNELS[name])
        self.__dict__[name] = kernel
        return kernel

    def defines(self, name: str) -> bool:
        """Whether there is a kernel of that name, and not only one made of others."""
        kernel = native.plain_kernel(getattr(self, name, None))
        return kernel is not None and not (type(kernel) is partial and kernel.args[:1] == (self,))


class NumpyBackend(Backend):
    name = "numpy"
    array_types = (np.ndarray, np.generic)
    adds_in_place = True

    def __init__(self) -> None:
        self.xp = NumpyKernels(
            *(vars(module) for module in (elementwise, reductions, shape, indexing, linear, precision))
        )
        for name in native.KERNELS.keys() & self.xp.__dict__.keys():
            self.xp.__dict__[name] = native.sized(
                ("kernel", name), self.xp.__dict__[name], *native.KERNELS[name]
            )  # fmt: skip

    def devices(self) -> tuple[str, ...]:
        return ("numpy",)

    def full_device_name(self, device: str) -> str:
        if device in ("numpy", "numpy:cpu"):
            return "numpy"
        raise DeviceError(f"unknown device {device!r}; NumPy has only 'numpy'.")

    def device_of(self, raw: Any) -> str:
        return "numpy"

    def dtype_of(self, raw: Any) -> dtypes.DType:
        return dtypes.from_numpy(raw.dtype)

    def raw_dtype(self, dtype: dtypes.DType) -> Any:
        return dtypes.numpy_dtype(dtype)

    def asarray(self, data: Any, dtype: dtypes.DType | None, device: str, copy: bool | None) -> Any:
        self.full_device_name(device)
        if isinstance(data, _ndarray):
            data = self.plain(data)
        wanted = None if dtype is None else self.raw_dtype(dtype)
        if wanted is None and isinstance(data, (_ndarray, np.generic)) and not data.dtype.isnative:
            wanted = data.dtype.newbyteorder("=")  # what else holds arrays (files, other libraries) has one order
        raw = np.array(data, dtype=wanted, copy=copy)
        dtypes.from_numpy(raw.dtype)  # refuses strings and objects
        return raw

    def plain(self, array: Any) -> Any:
        """An array, or one of a subclass, as nothing but an array over the same memory."""
        if type(array) is not _ndarray:
            if hasattr(array, "mask"):
                raise DtypeError(
                    "a masked array would lose its mask. Write `np.where(x.mask, 0.0, x.data)`, or another value for 0."
                )
            array = array.view(_ndarray)
        dtypes.from_numpy(array.dtype)
        return array

    def to_numpy(self, raw: Any) -> Any:
        return raw

    def is_floating(self, raw: Any) -> bool:
        return raw.dtype.kind in "fc" or dtypes.from_numpy(raw.dtype).kind == "float"

    def scalar_for(self, value: Any, like: Any) -> Any:
        # bfloat16 is no dtype of NumPy's own, and next to it Python's floats count as float64
        return np.asarray(value, like.dtype) if type(value) is float and like.dtype.kind == "V" else value

    def is_complex(self, raw: Any) -> bool:
        return raw.dtype.kind == "c"

    def from_scalar(self, value: Any) -> Any:
        return value if type(value) is _ndarray else np.asarray(value)

    def rules(self, general: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
        """The table's, where they are several passes over memory with native code for large arrays."""
        replaced: dict[str, dict[str, Any]] = {}
        for (name, key), (measured, least) in native.RULES.items():
            replaced.setdefault(name, {})[key] = native.sized(("rule", name, key), general[name][key], measured, least)
        return replaced

    is_exclusive = staticmethod(is_sole_owner)

    def host_array(self, raw: Any) -> Any:
        return raw

    def on_host(self, array: Any) -> Any:
        return array

    def host_empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        return np.empty(shape, dtype)

    def copy(self, raw: Any) -> Any:
        return np.array(raw, order="C")

    def is_contiguous(self, raw: Any) -> bool:
        return raw.flags.c_contiguous

    def bytes_of(self, raw: Any) -> int:
        return raw.nbytes

    def buffer_of(self, raw: Any) -> tuple[int, int]:
        while isinstance(raw.base, _ndarray):
            raw = raw.base
        return id(raw), raw.nbytes

    def read_only(self, raw: Any) -> Any:
        view = raw.view()
        view.flags.writeable = False
        return view
