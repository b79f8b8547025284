"""PyTorch tensors as a backend. Pullback records the graph; PyTorch's own autograd takes no part."""

from __future__ import annotations

from sys import getrefcount
from typing import Any, Callable, Mapping, Sequence

import numpy as np
import torch

from .. import dtypes
from ..errors import DeviceError, DtypeError, GradientError
from . import torch_finite, torch_kernels, torch_lists, torch_memory, torch_namespace
from .heap import keep_freed_memory
from .numpy.ownership import SOLE
from .standard import Later, StandardBackend
from .standard_indexing import basic_index
from .torch_unsigned import on_bits


class TorchBackend(StandardBackend):
    """PyTorch on the CPU and on each GPU: "torch:cpu", "torch:cuda:0", ..."""

    adds_in_place = True
    keeps_as_declared = False

    def __init__(self) -> None:
        super().__init__(torch_namespace, "torch", (torch.Tensor,), {"cpu": torch.device("cpu")})
        self.inexact = frozenset(raw for raw, dtype in self._dtypes.items() if dtype.kind in ("float", "complex"))
        keep_freed_memory()
        if _ALONE[0] >= 0:  # who uses memory is counted
            self.lists = torch_lists
        dtypes.REAL.update(raw for raw, dtype in self._dtypes.items() if dtype.kind == "float")

    def kernels(self) -> Mapping[str, Any]:
        def native(x: Any, index: Any) -> Any:
            """`index` in torch's terms: arrays and lists on the device of `x`."""
            found: list[Any] = []
            for part in index if isinstance(index, tuple) else (index,):
                if isinstance(part, (list, np.ndarray, torch.Tensor)):
                    array = np.asarray(part) if isinstance(part, list) else part
                    found.extend(_positions(torch.as_tensor(array, device=x.device)))
                else:
                    found.append(part)
            return tuple(found)

        def getitem(x: Any, index: Any) -> Any:
            if _steps_forward(index):
                try:
                    return x[index]
                except IndexError:  # said in NumPy's words below
                    pass
            basic = basic_index(index, tuple(x.shape))
            if basic is None:
                return x[_places(x, index) if _steps_back(index) else native(x, index)]
            forward, flipped = _ascending(basic, tuple(x.shape))
            part = x[forward]
            return torch_namespace.flip(part, axis=flipped) if flipped else part

        def named(x: Any, value: Any, index: Any) -> tuple[Any, Any]:
            """The part of `x` that a basic index names, as a view, and `value` in its order; None without one."""
            if _steps_forward(index):
                return x[index], value
            basic = basic_index(index, tuple(x.shape))
            if basic is None:
                return None, value
            forward, flipped = _ascending(basic, tuple(x.shape))
            part = x[forward]
            if flipped and isinstance(value, torch.Tensor):
                value = torch_namespace.flip(torch.broadcast_to(value, part.shape), axis=flipped)
            return part, value

        def place(value: Any, shape: Any, index: Any) -> Any:
            out = torch.zeros(shape, dtype=value.dtype, device=value.device)
            part, value = named(out, value, index)
            if part is None:
                return index_add(out, value, index)
            part.copy_(value)
            return out

        def place_into(total: Any, value: Any, index: Any) -> None:
            part, value = named(total, value, index)
            if part is None:
                total += place(value, total.shape, index)
            else:
                part += value

        def _places(x: Any, index: Any) -> Any:
            """The positions along every axis, for an index that mixes arrays with slices that step back."""
            where = np.unravel_index(
                np.arange(x.numel()).reshape(x.shape)[tuple(_host(part) for part in index)], tuple(x.shape)
            )
            return tuple(torch.as_tensor(part, device=x.device) for part in where)

        def setitem(x: Any, value: Any, index: Any) -> Any:
            if isinstance(value, torch.Tensor):
                value = self.xp.astype(value, x.dtype)
            if not _steps_back(index) and not _may_repeat(index):
                out = self.copy(x)
                out[native(x, index)] = value
                return out
            places = torch.arange(x.numel(), device=x.device).reshape(x.shape)
            where = getitem(places, index)
            if where.numel() == 0:
                return self.copy(x)
            value = torch.as_tensor(value, dtype=x.dtype, device=x.device)
            extra = max(value.ndim - where.ndim, 0)
            values = torch.broadcast_to(value.reshape(value.shape[extra:]), where.shape).reshape(-1)
            # Of several values for one place the last one stays, whatever the order in which a GPU writes.
            last = torch.full((x.numel(),), -1, device=x.device)
            last.scatter_reduce_(0, where.reshape(-1), torch.arange(where.numel(), device=x.device), "amax")
            flat = torch.where(last >= 0, values[last.clamp(min=0)], x.reshape(-1))
            return flat.reshape(x.shape)

        def index_add(x: Any, value: Any, index: Any) -> Any:
            out = x.clone(memory_format=torch.contiguous_format)
            part, value = named(out, value, index)
            if part is not None:
                part += value
                return out
            places = torch.arange(x.numel(), device=x.device).reshape(x.shape)
            where = getitem(places, index)
            if not isinstance(value, torch.Tensor):
                value = torch.full((), value, dtype=x.dtype, device=x.device)
            added = torch.broadcast_to(value.to(x.dtype), where.shape).reshape(-1)
            return out.reshape(-1).index_add_(0, where.reshape(-1), added).reshape(x.shape)

        return {
            "getitem": getitem,
            "setitem": on_bits(setitem),
            "index_add": on_bits(index_add),
            "place": on_bits(place),
            "place_into": place_into,
            **torch_kernels.kernels(Later(self)),
        }

    def direct(self, operation: Any, function: Any, kernel: Any) -> Any:
        return torch_kernels.direct(operation, function, kernel)

    def rules(self, general: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
        return torch_kernels.rules(general)

    # -- devices -----------------------------------------------------------------------------------

    def devices(self) -> tuple[str, ...]:
        return ("torch:cpu", *(f"torch:cuda:{i}" for i in range(torch.cuda.device_count())))

    def full_device_name(self, device: str) -> str:
        label = device.partition(":")[2] or "cpu"
        try:
            found = torch.device(label)
        except RuntimeError:
            found = None
        if found is not None and found.type == "cuda" and found.index is None:
            found = torch.device("cuda", 0)
        if found is None or (name := f"torch:{found}") not in self.devices():
            raise DeviceError(f"unknown device {device!r}; torch has {', '.join(map(repr, self.devices()))}.")
        return name

    def device_object(self, device: str) -> Any:
        return torch.device(self.full_device_name(device).removeprefix("torch:"))

    def device_of(self, raw: Any) -> str:
        device = raw.device
        name = _NAMES.get(device)
        if name is None:
            name = _NAMES[device] = f"torch:{device}"
        return name

    # -- arrays ------------------------------------------------------------------------------------

    def asarray(self, data: Any, dtype: dtypes.DType | None, device: str, copy: bool | None) -> Any:
        if isinstance(data, torch.Tensor) and data.requires_grad:
            raise GradientError(
                "this torch tensor requires a gradient of PyTorch's, which would be lost: pass `t.detach()`."
            )
        if isinstance(data, torch.Tensor) and data.layout != torch.strided:
            raise DtypeError("Pullback has no sparse arrays, and this is one of torch's: pass `t.to_dense()`.")
        return super().asarray(data, dtype, device, copy)

    def _from_host(self, data: Any, dtype: Any, device: Any) -> Any:
        wanted = self._dtypes[dtype] if dtype is not None else dtypes.from_numpy(data.dtype)
        if wanted.name == "bfloat16":
            return torch.as_tensor(np.array(data, np.float32), device=device).to(torch.bfloat16)
        return torch.as_tensor(np.array(data, dtypes.numpy_dtype(wanted)), device=device)

    def adopt(self, raw: Any, source: Any, device: str, copy: bool | None) -> Any:
        """Memory on a GPU is shared through DLPack; what is on the host goes by way of NumPy."""
        where = self.device_object(device)
        if where.type == "cuda" and hasattr(raw, "__dlpack_device__") and int(raw.__dlpack_device__()[0]) == 2:
            shared = torch.from_dlpack(raw)
            return self.copy(shared) if copy else shared.to(where)
        return super().adopt(raw, source, device, copy)

    def _moved(self, raw: Any, device: Any) -> Any:
        return raw.to(device)

    def to_numpy(self, raw: Any) -> Any:
        return torch_memory.host_array(raw if raw.is_cpu else raw.detach().cpu())

    def is_on_device(self, raw: Any) -> bool:
        return raw.device.type != "cpu"

    def finite(self, raws: Sequence[Any]) -> list[bool]:
        return torch_finite.finite(raws)

    def finite_later(self, raws: Sequence[Any]) -> Callable[[], list[bool]]:
        return torch_finite.finite_later(raws)

    def is_exclusive(self, holder: Any, attribute: str) -> bool:
        if getrefcount(getattr(holder, attribute)) != SOLE:  # as `is_sole_holder`, without a call
            return False
        raw = getattr(holder, attribute)
        return raw._use_count() == 1 and _users(raw) == _ALONE

    def standing(self, owned: Sequence[Any], others: Sequence[Any]) -> Any:
        """Something that says whether tensors are as they were, and those owned still nobody else's."""
        from .torch_standing import Standing

        return Standing(owned, others)

    def write(self, name: str, raw: Any, other: Any) -> bool:
        return torch_kernels.write(name, raw, other)

    def copy(self, raw: Any) -> Any:
        return raw.clone(memory_format=torch.contiguous_format)

    host_array = staticmethod(torch_memory.host_array)
    on_host = staticmethod(torch_memory.on_host)
    host_empty = staticmethod(torch_memory.host_empty)

    def is_contiguous(self, raw: Any) -> bool:
        return raw.is_contiguous()

    def bytes_of(self, raw: Any) -> int:
        return raw.nbytes

    def buffer_of(self, raw: Any) -> tuple[int, int]:
        storage = raw.untyped_storage()
        return storage.data_ptr() or id(raw), storage.nbytes()


_NAMES: dict[Any, str] = {}  # of devices


def _steps_forward(index: Any) -> bool:
    """Whether `index` has plain numbers and slices alone, which torch takes as NumPy does."""
    seen = False
    for part in index if type(index) is tuple else (index,):
        if type(part) is slice:
            if part.step is not None or type(part.start) not in _BOUNDS or type(part.stop) not in _BOUNDS:
                return False
        elif part is Ellipsis:
            if seen:
                return False
            seen = True
        elif type(part) is not int and part is not None:
            return False
    return True


_BOUNDS = (int, type(None))


def _steps_back(index: Any) -> bool:
    parts = index if isinstance(index, tuple) else (index,)
    return any(isinstance(part, slice) and part.step is not None and part.step < 0 for part in parts)


def _may_repeat(index: Any) -> bool:
    """Whether a place can be named twice: there is an array or a list of integers in `index`."""
    parts = index if isinstance(index, tuple) else (index,)
    arrays = [part for part in parts if isinstance(part, (list, np.ndarray, torch.Tensor))]
    return any(
        str(getattr(part, "dtype", None) or np.asarray(part).dtype).rpartition(".")[2] != "bool" for part in arrays
    )


def _positions(part: Any) -> tuple[Any, ...]:
    """An index as torch takes it everywhere: positions as int64, and no masks without elements."""
    if part.dtype == torch.bool:
        return (part,) if part.numel() else torch.nonzero(part, as_tuple=True)
    return (part if part.dtype == torch.int64 or part.is_floating_point() else part.to(torch.int64),)


def _host(part: Any) -> Any:
    return part.cpu().numpy() if isinstance(part, torch.Tensor) else part


def _ascending(index: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[tuple[Any, ...], list[int]]:
    """A basic index whose slices step forward, and the result's axes to flip: torch has no negative steps."""
    parts, flipped = [], []
    axis = place = 0
    for part in index:
        if isinstance(part, slice):
            chosen = range(shape[axis])[part]
            if chosen.step < 0:
                part = slice(chosen[-1], chosen[0] + 1, -chosen.step)
                flipped.append(place)
        parts.append(part)
        axis += part is not None
        place += not isinstance(part, int)
    return tuple(parts), flipped


_count = torch._C._storage_Use_Count


def _users(raw: Any) -> tuple[int, int, bool]:
    """How many use a tensor's storage, how many hold the Python object that stands for it, and whether all are counted.

    Memory of other libraries, which cannot be resized, and that of several processes has users that are not. (Of a
    GPU's memory PyTorch always says that processes share it.)
    """
    storage = raw.untyped_storage()
    is_counted = storage.resizable() and not (raw.is_cpu and storage.is_shared())
    return _count(storage._cdata), getrefcount(storage), is_counted


def _count_alone() -> tuple[int, int, bool]:
    """What `_users` gives for a storage that one tensor has for itself; what it never gives, if others are not seen.

    The interpreter may count differently once it has run the same instructions often.
    """
    raw = torch.empty(2)
    alone = {_users(raw) for _ in range(64)}
    view = raw[:1]
    with_view = _users(raw)
    del view
    storage = raw.untyped_storage()
    with_storage = _users(raw)
    del storage
    (count, references, is_counted), *others = alone
    is_seen = with_view[0] > count and with_storage[1] > references and is_counted and not others
    return (count, references, True) if is_seen else (-1, -1, True)


_ALONE = _count_alone()

BACKEND = TorchBackend()
