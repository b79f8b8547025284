"""`save` and `load`: tensors by name, in a file that every library can read."""

from __future__ import annotations

import os
from typing import Any, Mapping, Never

import numpy as np

from .. import backends
from ..autodiff.base import values_of
from ..errors import DtypeError
from ..keywords import hide_others, unexpected
from ..tensors.tensor import Tensor
from .safetensors import read_arrays, write_arrays

__all__ = ["load", "save"]


def save(tensors: Mapping[str, Any], path: str | os.PathLike[str], metadata: Mapping[str, str] | None = None) -> None:
    """Write tensors or arrays of any library, by name, to a safetensors file; whole or not at all.

    Parameters
    ----------
    tensors : mapping of str to array
        Tensors or arrays of any library, by name, such as `model.state_dict()`.
    path : str or path
        Where to write. A file that is there is replaced only when the new one is complete.
    metadata : mapping of str to str, optional
        Other strings to keep in the file's head.

    Examples
    --------
    >>> import pullback as pb, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "weights.safetensors")
    >>> pb.save({"weight": pb.eye(2)}, path)
    >>> pb.load(path)
    {'weight': tensor([[1., 0.],
           [0., 1.]])}
    """
    if not isinstance(tensors, Mapping):
        write = "Write `model.state_dict()`"
        if isinstance(tensors, (str, os.PathLike)):
            write = "The path comes second: `pb.save(tensors, path)`"
        raise DtypeError(f"save: expected tensors by name, got {type(tensors).__name__}. {write}.")
    write_arrays(path, {name: as_numpy(name, value) for name, value in tensors.items()}, metadata)


@hide_others
def load(
    path: str | os.PathLike[str], device: str | None = None, *, mmap: bool = False, **other: Never
) -> dict[str, Tensor]:
    """The tensors of a safetensors file, by name, in memory of their own.

    With `mmap=True` they are views of the file on the "numpy" device, read from the disk when used and without a second
    copy in memory, for files that nobody writes to: what is changed in the file changes in the tensors, and one that is
    cut off ends the process. (`pb.save` replaces a file by a new one; that is no such change.)

    Parameters
    ----------
    path : str or path
        A safetensors file, of any program.
    device : str, optional
        Where the tensors go, by default "numpy".
    mmap : bool
        Whether to leave the values in the file until they are used.

    Returns
    -------
    dict of str to Tensor
        The tensors by name, such as `model.load_state_dict` takes; they require no gradient.

    Raises
    ------
    FileFormatError
        If the file is cut off, damaged or of another format.

    Examples
    --------
    >>> import pullback as pb, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "weights.safetensors")
    >>> pb.save({"weight": pb.ones(2)}, path)
    >>> pb.load(path)["weight"], pb.load(path, mmap=True)["weight"]
    (tensor([1., 1.]), tensor([1., 1.]))
    """
    if other:
        raise unexpected("load", other)
    from ..autodiff.creation import asarray

    arrays, _ = read_arrays(path, mmap)
    return {name: asarray(array, device=device or "numpy") for name, array in arrays.items()}


def as_numpy(name: str, value: Any) -> Any:
    """A tensor or an array of any library as a NumPy array, sharing memory where that can be."""
    if isinstance(value, Tensor):
        return np.asarray(values_of(value))
    backend: Any = backends.of(value)
    if backend is None:
        write = ""
        if isinstance(value, (Mapping, list, tuple)):
            write = " Write `pb.train.write_checkpoint(path, state)` for what is more than tensors by name."
        raise DtypeError(f"{name}: expected a tensor or an array, got {type(value).__name__}.{write}")
    return np.asarray(backend.to_numpy(value))
