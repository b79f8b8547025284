"""Averages of the parameters over the steps of training, which often do better than the parameters themselves."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Iterable, Iterator, Mapping

import numpy as np

from .. import backends, dtypes, modes
from ..autodiff.base import make, resolved
from ..autodiff.gradients import in_lists
from ..errors import ConfigurationError, DtypeError, PullbackError, ShapeError
from ..tensors.tensor import Tensor
from ..tensors.writing import adopt, separate
from .arithmetic import arithmetic_of

__all__ = ["ExponentialMovingAverage"]

_CHUNK = 16384  # elements of a NumPy array that are updated at a time: they stay in the processor's cache


class ExponentialMovingAverage:
    """Averages that follow the parameters: each `update` moves them by (1 - decay) of the way.

    The averages start as the parameters are now, so no correction of a bias is needed. Averages of half-precision
    parameters are kept in float32, which can hold their small changes.

    Parameters
    ----------
    parameters : Module, or iterable of Tensor
        What to follow; (name, tensor) pairs will do as well. Of a module the floating-point buffers, such as the
        statistics of batch normalization, are averaged too, and other buffers are left alone.
    decay : float
        What is kept of the averages in an update.
    warmup : bool
        Whether the n-th update keeps at most (1 + n) / (10 + n), so that short trainings do not end near where they
        began. Without it this is PyTorch's average.

    Examples
    --------
    >>> import pullback as pb
    >>> w = pb.tensor([0.0], requires_grad=True)
    >>> average = pb.optim.ExponentialMovingAverage([w], decay=0.9, warmup=False)
    >>> with pb.no_grad():
    ...     w += 10.0
    >>> average.update()
    >>> with average.applied():
    ...     print(w)
    tensor([1.], requires_grad=True)
    >>> w
    tensor([10.], requires_grad=True)
    """

    def __init__(self, parameters: Any, decay: float = 0.999, warmup: bool = True) -> None:
        self._check_decay(decay)
        self.decay = float(decay)
        self.warmup = bool(warmup)
        self.updates = 0
        self._module = parameters if hasattr(parameters, "named_parameters") else None
        self._given = {} if self._module is not None else _by_name(parameters)
        self._scratch: dict[Any, Any] = {}  # by dtype
        self._is_applied = False
        self._averages = {name: _start(name, tensor) for name, tensor in self._tensors().items()}
        if not self._averages:
            raise ConfigurationError("ExponentialMovingAverage: there are no parameters to average.")

    @staticmethod
    def _check_decay(decay: Any) -> None:
        if not isinstance(decay, (int, float)) or not 0 <= decay < 1:
            raise ConfigurationError(f"ExponentialMovingAverage: decay must be in [0, 1), got {decay!r}.")

    def _tensors(self) -> dict[str, Tensor]:
        """The tensors to average, by name; a module's are looked up anew, since its buffers may be replaced."""
        return self._given if self._module is None else _of_module(self._module)

    def update(self) -> None:
        """Move the averages towards the parameters; on NumPy nothing is allocated."""
        self._refuse_while_applied("update")
        modes.refuse_in_trace("ExponentialMovingAverage.update counts its updates. Call it after the compiled step.")
        tensors = self._tensors()
        _check_match(tensors, self._averages)
        self.updates += 1
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates)) if self.warmup else self.decay
        with np.errstate(all="ignore"):
            if not self._move_together(tensors, 1 - decay):
                for name, average in self._averages.items():
                    self._move(average, tensors[name], 1 - decay)

    def _move_together(self, tensors: dict[str, Tensor], weight: float) -> bool:
        """Move all averages in a few calls, where there are functions of lists of arrays; whether that was so."""
        by_dtypes: dict[Any, list[str]] = {}
        for name, average in self._averages.items():
            if average.device != tensors[name].device:
                return False
            by_dtypes.setdefault((average.dtype, tensors[name].dtype, average.device), []).append(name)
        if in_lists(self._averages.values()) is None:
            return False
        for names in by_dtypes.values():
            raws = [self._averages[name]._raw for name in names]
            lists = backends.of(raws[0]).lists
            lists.move_towards(raws, [tensors[name]._raw for name in names], weight)
        return True

    def _move(self, average: Tensor, tensor: Tensor, weight: float) -> None:
        if average.device != tensor.device:  # the parameter was moved
            average._raw = backends.transfer(average._raw, tensor.device)
        backend = average._backend
        if backend is not backends.NUMPY:
            xp = arithmetic_of(backend)
            step = xp.multiply(xp.subtract(tensor._raw, average._raw, None), weight, None)
            average._raw = xp.add(average._raw, step, None)
            return
        raw, new = average.data_mut().reshape(-1), tensor._raw.reshape(-1)
        scratch = self._scratch.get(raw.dtype)
        if scratch is None:
            scratch = self._scratch[raw.dtype] = np.empty(_CHUNK, raw.dtype)
        for start in range(0, raw.size, _CHUNK):
            part = raw[start : start + _CHUNK]
            step = scratch[: part.size]
            np.subtract(new[start : start + _CHUNK], part, step)
            np.multiply(step, weight, step)
            np.add(part, step, part)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Evaluate with the averages: inside, the parameters have their values; afterwards their own again.

        Nothing is copied. What is written to the parameters inside is undone at the end.
        """
        self._refuse_while_applied("applied")
        tensors = self._tensors()
        _check_match(tensors, self._averages)
        kept = {name: tensor.detach() for name, tensor in tensors.items()}
        self._is_applied = True
        try:
            self.copy_to(tensors)
            yield
        finally:
            self._is_applied = False
            for name, tensor in self._tensors().items():
                if name in kept:
                    _write(tensor, kept[name])

    def copy_to(self, parameters: Any = None) -> None:
        """Write the averages into the parameters, or into other ones of the same names and shapes, for good."""
        if parameters is None:
            self._refuse_while_applied("copy_to")
            parameters = self._tensors()
        elif hasattr(parameters, "named_parameters"):
            parameters = _of_module(parameters)
        elif not isinstance(parameters, dict):
            parameters = _by_name(parameters)
        _check_match(parameters, self._averages)
        for name, tensor in parameters.items():
            average = self._averages[name].detach().to_device(tensor.device)
            _write(tensor, average if average.dtype == tensor.dtype else average.astype(tensor.dtype))

    def _refuse_while_applied(self, what: str) -> None:
        if self._is_applied:
            raise PullbackError(
                f"ExponentialMovingAverage.{what}: the parameters are the averages inside `with average.applied():`. "
                "Call it outside of the block."
            )

    def state_dict(self) -> dict[str, Any]:
        """Settings, the number of updates, and under "averages" tensors by name, which share memory until written."""
        averages = {name: average.detach() for name, average in self._averages.items()}
        return {"decay": self.decay, "warmup": self.warmup, "updates": self.updates, "averages": averages}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over `state`, which `state_dict` gave: all of it, or on an error nothing."""
        from ..autodiff.creation import tensor as new_tensor

        if set(state) != {"decay", "warmup", "updates", "averages"}:
            raise ConfigurationError(
                "ExponentialMovingAverage.load_state_dict: expected decay, warmup, updates and averages, "
                f"got {', '.join(map(str, state)) or 'nothing'}."
            )
        self._check_decay(state["decay"])
        if type(state["updates"]) is not int or state["updates"] < 0:
            raise ConfigurationError(
                f"ExponentialMovingAverage.load_state_dict: updates must be a count, got {state['updates']!r}."
            )
        averages = {name: new_tensor(value) for name, value in state["averages"].items()}
        _check_match(averages, self._averages)
        averages = {
            name: new_tensor(averages[name], dtype=mine.dtype, device=mine.device)
            for name, mine in self._averages.items()
        }
        self.decay, self.warmup, self.updates = float(state["decay"]), bool(state["warmup"]), state["updates"]
        self._averages = averages


def _by_name(parameters: Iterable[Any]) -> dict[str, Tensor]:
    """Tensors or (name, tensor) pairs as tensors by name."""
    if isinstance(parameters, (Tensor, Mapping)) or not isinstance(parameters, Iterable):
        raise DtypeError(
            f"ExponentialMovingAverage: expected a module, tensors or (name, tensor) pairs, "
            f"got {type(parameters).__name__}. Write `[w, b]`."
        )
    pairs = [(str(p[0]), p[1]) if isinstance(p, tuple) else (str(i), p) for i, p in enumerate(parameters)]
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ConfigurationError("ExponentialMovingAverage: two parameters have the same name.")
    return found


def _of_module(module: Any) -> dict[str, Tensor]:
    buffers = {name: buffer for name, buffer in module.named_buffers() if buffer.dtype.kind == "float"}
    return {**dict(module.named_parameters()), **buffers}


def _start(name: str, tensor: Any) -> Tensor:
    """The average of a parameter before the first update: an array of its own with the parameter's values."""
    if not isinstance(tensor, Tensor) or tensor.dtype.kind != "float" or not tensor.is_leaf:
        given = f"{tensor.dtype.name} tensor" if isinstance(tensor, Tensor) else type(tensor).__name__
        raise DtypeError(f"ExponentialMovingAverage: {name} must be a floating-point variable, it is a {given}.")
    tensor = resolved(tensor)
    backend = tensor._backend
    if tensor.dtype.itemsize == 2:
        return make(backend.xp.astype(tensor._raw, backend.raw_dtype(dtypes.float32)), None)
    return make(backend.copy(tensor._raw), None)


def _check_match(tensors: Mapping[str, Tensor], averages: Mapping[str, Tensor]) -> None:
    """Refuse tensors that do not have the averages' names and shapes."""
    if tensors.keys() != averages.keys():
        missing = ", ".join(sorted(averages.keys() - tensors.keys())[:5]) or "none"
        others = ", ".join(sorted(tensors.keys() - averages.keys())[:5]) or "none"
        raise ConfigurationError(
            f"ExponentialMovingAverage: other tensors than those averaged; missing: {missing}; unexpected: {others}."
        )
    for name, tensor in tensors.items():
        if tensor.shape != averages[name].shape:
            raise ShapeError(
                f"ExponentialMovingAverage: {name} has shape {tensor.shape}, its average {averages[name].shape}."
            )


def _write(tensor: Tensor, value: Tensor) -> None:
    """Give a parameter other values without copying them: who writes to one of the two copies first."""
    tensor = resolved(tensor)
    with modes.no_grad():
        adopt(tensor, resolved(value))
        separate(tensor)
