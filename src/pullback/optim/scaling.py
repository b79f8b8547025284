"""Loss scaling: gradients too small for float16 are made larger on the way back, and small again for the step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, Mapping

import numpy as np

from .. import modes, tree
from ..autodiff import guard
from ..autodiff.apply import new_node
from ..autodiff.base import make, resolved
from ..autodiff.forward import Dual
from ..autodiff.gradients import Gradients
from ..autodiff.graph import Leaf
from ..autodiff.recipe import Recipe
from ..errors import ConfigurationError, DtypeError, GradientError
from ..operations import OPERATIONS
from ..tensors.tensor import Tensor

if TYPE_CHECKING:
    from ..typing import A

__all__ = ["LossScaler"]

_LARGEST = float(np.finfo(np.float32).max)
_SETTINGS = ("scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker")  # PyTorch's names

# A walk from a scaled loss may overflow: the scaler sees it and takes a smaller scale, so the guard does not raise.
_SCALED = Recipe.of_function(OPERATIONS["positive"], (True,), (), lambda g: (g,))
guard.unguarded.add(_SCALED)


class LossScaler:
    """Scales losses so that float16 gradients neither vanish nor overflow; skips a step when they do overflow.

    A skipped step leaves parameters and the optimizer's state as they were. The names and the defaults are those of
    PyTorch's `GradScaler`.

    `pb.guard` does not look at a walk from a scaled loss, unless inside a `with pb.guard(...)` block: an overflow there
    is no error. So scale last: `scaler.scale(loss / 4).backward()`.

    Parameters
    ----------
    init_scale : float
        The factor to begin with.
    growth_factor : float
        What it is multiplied by after `growth_interval` steps without overflow.
    backoff_factor : float
        What it is multiplied by after a step with overflow.
    growth_interval : int
        How many steps without overflow make it grow.
    enabled : bool
        With False everything passes through unchanged.

    Examples
    --------
    >>> import pullback as pb
    >>> w = pb.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = pb.optim.SGD([w], lr=0.1)
    >>> scaler = pb.optim.LossScaler()
    >>> with pb.autocast("float16"):
    ...     loss = (w * w).sum()
    >>> scaler.scale(loss).backward()
    >>> scaler.step(optimizer)
    True
    >>> scaler.update()
    >>> w
    tensor([0.8, 1.6], requires_grad=True)
    """

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self.enabled = enabled
        self._found: dict[Any, _Found] = {}  # by optimizer, since the last `update`
        self._set(dict(zip(_SETTINGS, (init_scale, growth_factor, backoff_factor, growth_interval, 0))))

    def _set(self, settings: Mapping[str, Any]) -> None:
        scale, growth, backoff, interval, tracker = (settings[name] for name in _SETTINGS)
        for name, value, low, high, expected in (
            ("scale", scale, 0.0, _LARGEST, "positive and finite in float32"),
            ("growth_factor", growth, 1.0, _LARGEST, "greater than 1"),
            ("backoff_factor", backoff, 0.0, 1.0 - 2.0**-53, "between 0 and 1"),
            ("growth_interval", interval, 0.0, _LARGEST, "at least 1"),
            ("_growth_tracker", tracker, -1.0, _LARGEST, "at least 0"),
        ):
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not low < value <= high:
                raise ConfigurationError(f"LossScaler: {name} must be {expected}, got {value!r}.")
        self._scale = float(scale)
        self.growth_factor = float(growth)
        self.backoff_factor = float(backoff)
        self.growth_interval = int(interval)
        self._growth_tracker = int(tracker)

    def get_scale(self) -> float:
        """The factor that losses are multiplied by now; 1 if not enabled."""
        return self._scale if self.enabled else 1.0

    def scale(self, losses: A) -> A:
        """A loss, or a tree of `losses`, times the scale."""
        return tree.map(self._scaled, losses) if self.enabled else losses

    def traced_by(self, trace: Any) -> None:
        """What a trace notes of a scaler that a function uses: the scale belongs to the program."""
        trace.note_attribute(self, "_scale")

    def _scaled(self, loss: Any) -> Any:
        if not isinstance(loss, Tensor):
            raise DtypeError(f"LossScaler.scale: expected a tensor, got {type(loss).__name__}: {loss!r:.60}")
        modes.note_use(self)
        with np.errstate(over="ignore"):
            scaled = loss * self._scale
        if isinstance(scaled, Dual) or scaled._node is None:
            return scaled
        return make(scaled._raw, new_node(_SCALED, (scaled._node,), ()))

    def unscale_(self, optimizer: Any, grads: Any = None) -> None:
        """Divide the gradients of the optimizer's parameters by the scale, in place, for example to clip them.

        `grads` is what `optimizer.step` takes: None for the parameters' `.grad`, a `pb.Gradients`, or a list of
        tensors or NumPy arrays. Without this call `step` does it.

        >>> import pullback as pb
        >>> w = pb.tensor([3.0, 4.0], requires_grad=True)
        >>> optimizer, scaler = pb.optim.SGD([w], lr=1.0), pb.optim.LossScaler()
        >>> grads = pb.backward(scaler.scale((w * w).sum() / 2))
        >>> scaler.unscale_(optimizer, grads)
        >>> grads.clip_global_norm(1.0)
        tensor(5.)
        >>> scaler.step(optimizer, grads)
        True
        """
        if not self.enabled:
            return
        if optimizer in self._found:
            done = "stepped" if self._found[optimizer].stepped else "unscaled"
            raise GradientError(f"unscale_: this optimizer was {done} already since the last `scaler.update()`.")
        gradients = list(_gradients_of(optimizer, grads))
        for gradient in gradients:
            _check_can_be_unscaled(gradient)
        factor = 1.0 / self._scale
        raws = []
        with modes.no_grad(), np.errstate(all="ignore"):
            for gradient in gradients:
                gradient *= factor
                raws.append(resolved(gradient)._raw if isinstance(gradient, Tensor) else gradient)
            self._found[optimizer] = _Found(bool(gradients), not guard.all_finite(raws))

    def step(self, optimizer: Any, grads: Any = None) -> bool:
        """`optimizer.step(grads)`, with unscaled gradients, unless one is not finite; whether the step was taken."""
        if callable(grads):
            raise DtypeError("LossScaler.step: a function cannot be given; compute the gradients before.")
        if not self.enabled:
            optimizer.step(grads)
            return True
        if optimizer in self._found and self._found[optimizer].stepped:
            raise GradientError("step: this optimizer was stepped already since the last `scaler.update()`.")
        if optimizer not in self._found:
            self.unscale_(optimizer, grads)
        found = self._found[optimizer]
        if not found.any_gradient:
            del self._found[optimizer]
            raise GradientError("LossScaler.step: no parameter has a gradient. Call `scaler.scale(loss).backward()`.")
        if not found.overflow:
            optimizer.step(grads)
        found.stepped = True
        return not found.overflow

    def update(self) -> None:
        """Adapt the scale to what the steps since the last call found; to be called once after them."""
        if not self.enabled:
            return
        if not any(found.any_gradient for found in self._found.values()):
            raise GradientError("LossScaler.update: nothing was stepped or unscaled since the last update.")
        if any(found.overflow for found in self._found.values()):
            self._scale *= self.backoff_factor
            self._growth_tracker = 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker == self.growth_interval:
                grown = self._scale * self.growth_factor
                self._scale = grown if grown <= _LARGEST else self._scale
                self._growth_tracker = 0
        self._found.clear()

    def forget(self) -> None:
        """Drop what was found since the last `update`, after an error between `unscale_` and `update`."""
        self._found.clear()

    def state_dict(self) -> dict[str, Any]:
        """Scale, settings and the count of steps, as Python numbers, under PyTorch's names; empty if not enabled."""
        if not self.enabled:
            return {}
        values = (self._scale, self.growth_factor, self.backoff_factor, self.growth_interval, self._growth_tracker)
        return dict(zip(_SETTINGS, values))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave, here or in PyTorch."""
        if not self.enabled:
            return
        if set(state) != set(_SETTINGS):
            raise ConfigurationError(
                f"LossScaler.load_state_dict: expected {', '.join(_SETTINGS)}, got {', '.join(state) or 'nothing'}. "
                "A scaler that is not enabled saves nothing."
            )
        self._set(state)
        self.forget()


class _Found:
    """What was seen in an optimizer's gradients since the last update."""

    __slots__ = ("any_gradient", "overflow", "stepped")

    def __init__(self, any_gradient: bool, overflow: bool) -> None:
        self.any_gradient = any_gradient
        self.overflow = overflow
        self.stepped = False


def _gradients_of(optimizer: Any, grads: Any) -> Iterator[Any]:
    """The gradients that the optimizer would use."""
    if isinstance(grads, (list, tuple)):
        yield from [gradient for gradient in grads if gradient is not None]
        return
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if not isinstance(parameter, Tensor):
                raise DtypeError("unscale_: the parameters are NumPy arrays, which hold no gradients: pass a list.")
            if isinstance(grads, Gradients):
                gradient = grads.get(parameter)
            else:
                gradient = parameter.grad if isinstance(resolved(parameter)._node, Leaf) else None
            if gradient is not None:
                yield gradient


def _check_can_be_unscaled(gradient: Any) -> None:
    if not isinstance(gradient, (Tensor, np.ndarray)):
        raise DtypeError(f"unscale_: gradients are tensors or NumPy arrays, got {type(gradient).__name__}.")
    if gradient.dtype == np.float16:
        raise DtypeError(
            "unscale_: a gradient is float16, too narrow to be unscaled. Keep the parameters in float32 and compute "
            "in float16 inside `with pb.autocast():`."
        )
