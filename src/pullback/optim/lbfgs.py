"""L-BFGS: Newton's method with a Hessian made of the last steps."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Mapping

from .. import modes
from ..autodiff import guard
from ..autodiff.creation import asarray
from ..errors import ConfigurationError, DtypeError, ShapeError
from ..functions.filled import zeros
from ..functions.manipulation import concat, reshape, stack
from ..tensors.tensor import Tensor
from . import state
from .line_search import Point, strong_wolfe
from .optimizer import Optimizer

__all__ = ["LBFGS"]

_CURVED = 1e-10  # the least y @ s of a step that is remembered: the Hessian must stay positive


class LBFGS(Optimizer):
    """L-BFGS, for losses without noise: `step` is given the function that computes loss and gradients, and calls it.

    Parameters
    ----------
    params : iterable of Tensor
        What to update, such as `model.parameters()`.
    lr : float
        The length of steps, where there is no line search.
    max_iter : int
        The most iterations in a call of `step`.
    max_eval : int, optional
        About the most calls of the function in it, by default 5/4 of `max_iter`.
    tolerance_grad : float
        A step ends where no element of the gradient is larger.
    tolerance_change : float
        A step ends where the loss or all parameters change by less.
    history_size : int
        How many changes are remembered.
    line_search_fn : str, optional
        "strong_wolfe" looks for a good length along each direction.

    Examples
    --------
    >>> import pullback as pb
    >>> w = pb.tensor([-1.0, 2.0], requires_grad=True)
    >>> optimizer = pb.optim.LBFGS([w], line_search_fn="strong_wolfe")
    >>> def loss():
    ...     optimizer.zero_grad()
    ...     value = ((1 - w[0]) ** 2 + 100 * (w[1] - w[0] ** 2) ** 2)
    ...     value.backward()
    ...     return value
    >>> for _ in range(3):
    ...     last = optimizer.step(loss)
    >>> bool(pb.abs(w - 1).max() < 1e-3)
    True
    """

    elementwise = False

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        if line_search_fn not in (None, "strong_wolfe"):
            raise ConfigurationError(f'LBFGS: line_search_fn is "strong_wolfe" or None, got {line_search_fn!r}.')
        self._memory = _Memory()
        super().__init__(
            params,
            {
                "lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
                "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change, "history_size": history_size,
                "line_search_fn": line_search_fn,
            },
        )  # fmt: skip

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        if self.param_groups:
            raise ConfigurationError("LBFGS: all parameters move together, in one group with one set of options.")
        super().add_param_group(group)

    def check_parameter(self, parameter: Any, label: str) -> None:
        if not isinstance(parameter, Tensor):
            raise DtypeError(f"LBFGS: {label} must be a tensor: the function given to `step` leaves gradients in it.")
        if parameter.dtype.name not in ("float32", "float64"):
            raise DtypeError(f"LBFGS: {label} is {parameter.dtype.name}; it needs float32 or float64.")

    # -- the iteration -----------------------------------------------------------------------------

    def step(self, grads: Any = None) -> Any:
        """Minimize the loss that the function `grads` computes, leaving gradients in `.grad`; return the first loss.

        If the function raises, the parameters are what they were before.
        """
        if not callable(grads):
            raise ConfigurationError(
                "LBFGS.step: give a function without arguments that sets the gradients to zero, computes the loss, "
                "calls `backward` on it and returns it."
            )
        first: Any = None

        def evaluate() -> tuple[float, Tensor]:
            nonlocal first
            with modes.enable_grad():
                loss = grads()
            first = loss if first is None else first
            return float(loss.item() if isinstance(loss, Tensor) else loss), self._flat_gradient()

        memory = self._memory.copy()
        with modes.no_grad():
            before = self._flat_values()
            try:
                self._minimize(evaluate, memory)
                self._refuse_overflow(memory)
            except BaseException:
                self._write(before)
                raise
        self._memory = memory
        return first

    def _refuse_overflow(self, memory: _Memory) -> None:
        made = [self._flat_values()._raw, *(x._raw for x in (memory.direction, memory.gradient) if x is not None)]
        if guard.mode()[0] != "off" and not all(map(guard.is_finite, made)):
            guard.report(
                f"LBFGS: step {memory.iterations} makes a parameter or its memory infinite or NaN. Nothing was "
                "changed. Scale the loss down, or start nearer to a minimum."
            )

    def _minimize(self, evaluate: Callable[[], tuple[float, Tensor]], memory: _Memory) -> None:
        group = self.param_groups[0]
        lr, tolerance = float(group["lr"]), group["tolerance_change"]
        loss, gradient = evaluate()
        memory.evaluations += 1
        used = 1
        if _largest(gradient) <= group["tolerance_grad"]:
            return
        for iteration in range(1, group["max_iter"] + 1):
            memory.iterations += 1
            memory.learn(gradient, group["history_size"])
            direction = memory.direction = memory.newton_direction(gradient)
            memory.gradient, memory.loss = gradient, loss
            length = lr * min(1.0, 1.0 / float(abs(gradient).sum().item())) if memory.iterations == 1 else lr
            memory.length = length
            slope = _dot(gradient, direction)
            if slope > -tolerance:
                return
            origin, previous = self._flat_values(), loss
            calls = 0
            if group["line_search_fn"] is not None:
                point, calls = self._searched(
                    evaluate, origin, direction, Point(0.0, loss, gradient, slope), length, group["max_eval"] - used
                )
                memory.length, loss, gradient = point.at, point.loss, point.gradient
                self._write(origin + direction * point.at)
            else:
                self._write(origin + direction * length)
                if iteration < group["max_iter"]:  # with a noisy loss a last look would tell nothing
                    loss, gradient = evaluate()
                    calls = 1
            used += calls
            memory.evaluations += calls
            if (
                used >= group["max_eval"]
                or _largest(gradient) <= group["tolerance_grad"]
                or _largest(direction) * abs(memory.length) <= tolerance
                or abs(loss - previous) < tolerance
            ):
                return

    def _searched(
        self, evaluate: Any, origin: Tensor, direction: Tensor, start: Point, first: float, turns: int
    ) -> tuple[Point, int]:
        def at(length: float) -> Point:
            self._write(origin + direction * length)
            loss, gradient = evaluate()
            return Point(length, loss, gradient, _dot(gradient, direction))

        return strong_wolfe(at, start, first, turns, 1e-9 / _largest(direction))

    # -- all parameters as one vector ----------------------------------------------------------------

    @property
    def _tensors(self) -> list[Tensor]:
        return self.param_groups[0]["params"]

    def _flat_values(self) -> Tensor:
        return concat([reshape(t.detach(), (-1,)) for t in self._tensors])

    def _flat_gradient(self) -> Tensor:
        parts = []
        for tensor in self._tensors:
            gradient = tensor.grad
            if gradient is None:
                gradient = zeros(tensor.shape, dtype=tensor.dtype, device=tensor.device)
            parts.append(reshape(gradient, (-1,)))
        return concat(parts)

    def _write(self, values: Tensor) -> None:
        start = 0
        for tensor in self._tensors:
            tensor[...] = reshape(values[start : start + tensor.size], tensor.shape)
            start += tensor.size

    # -- state ---------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        saved = super().state_dict()
        if self._memory.iterations:
            saved["state"] = {0: self._memory.saved()}
        return saved

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        where = "LBFGS.load_state_dict"
        options, states = state.checked_options(self, self._slots, state_dict)
        memory = _Memory()
        if states:
            size = sum(t.size for t in self._tensors)
            memory.load(where, states[min(states)], size, self._tensors[0])
        self.param_groups[0].update(options[0])
        self._memory = memory


class _Memory:
    """What is remembered between iterations: the last steps, and the gradient's changes along them."""

    def __init__(self) -> None:
        self.evaluations = self.iterations = 0
        self.pairs: list[tuple[Tensor, Tensor, float]] = []  # change of gradient y, step s, 1 / (y @ s)
        self.inverse = 1.0  # the inverse Hessian before the first correction, times the identity
        self.length = self.loss = 0.0
        self.direction: Any = None
        self.gradient: Any = None

    def copy(self) -> _Memory:
        twin = _Memory()
        twin.__dict__.update(self.__dict__, pairs=list(self.pairs))
        return twin

    def learn(self, gradient: Tensor, most: int) -> None:
        """Take in the step just made, if the loss curves upwards along it."""
        if self.iterations == 1:
            return
        change, step = gradient - self.gradient, self.direction * self.length
        curvature = _dot(change, step)
        if curvature > _CURVED:
            self.pairs.append((change, step, 1.0 / curvature))
            del self.pairs[:-most]
            self.inverse = curvature / _dot(change, change)

    def newton_direction(self, gradient: Tensor) -> Tensor:
        """Minus the gradient times the inverse Hessian, by two loops over the last steps."""
        direction = -gradient
        shares = []
        for y, s, weight in reversed(self.pairs):
            shares.append(_dot(s, direction) * weight)
            direction -= y * shares[-1]
        direction *= self.inverse
        for (y, s, weight), share in zip(self.pairs, reversed(shares)):
            direction += s * (share - _dot(y, direction) * weight)
        return direction

    def saved(self) -> dict[str, Any]:
        saved = {
            "func_evals": self.evaluations, "n_iter": self.iterations, "d": self.direction.clone(), "t": self.length,
            "H_diag": self.inverse, "prev_flat_grad": self.gradient.clone(), "prev_loss": self.loss,
        }  # fmt: skip
        if self.pairs:
            changes, steps, _ = zip(*self.pairs)
            saved["old_dirs"], saved["old_stps"] = stack(changes), stack(steps)
        return saved

    def load(self, where: str, saved: Mapping[str, Any], size: int, like: Tensor) -> None:
        missing = {"func_evals", "n_iter", "d", "t", "H_diag", "prev_flat_grad", "prev_loss"} - set(saved)
        if missing:
            raise ConfigurationError(f"{where}: the state has no {', '.join(sorted(missing))}.")

        def vectors(name: str, values: Iterable[Any]) -> list[Tensor]:
            tensors = [asarray(value).to_device(like.device) for value in values]
            for tensor in tensors:
                if tensor.shape != (size,):
                    raise ShapeError(f"{where}: {name} has {tensor.shape} where the parameters make {(size,)}.")
                if tensor.dtype != like.dtype:
                    raise DtypeError(f"{where}: {name} is {tensor.dtype.name}, the parameters are {like.dtype.name}.")
            return tensors

        self.evaluations, self.iterations = int(saved["func_evals"]), int(saved["n_iter"])
        self.length, self.inverse, self.loss = (float(saved[name]) for name in ("t", "H_diag", "prev_loss"))
        changes, steps = (vectors(name, saved.get(name, ())) for name in ("old_dirs", "old_stps"))
        self.pairs = [(y, s, 1.0 / _dot(y, s)) for y, s in zip(changes, steps)]
        (self.direction,) = vectors("d", [saved["d"]])
        (self.gradient,) = vectors("prev_flat_grad", [saved["prev_flat_grad"]])


def _dot(x: Tensor, y: Tensor) -> float:
    return (x @ y).item()


def _largest(x: Tensor) -> float:
    return abs(x).max().item()
