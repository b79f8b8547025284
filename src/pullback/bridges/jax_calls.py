"""Calls of JAX functions: `jax.vjp` runs them and pulls cotangents back."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import DtypeError, GradientError
from .foreign import Call, NoForwardModeError, PulledCall, PushedCall

Function = Callable[[list[Any]], list[Any]]


class JaxCall(Call):
    """One run of `function`, from a list of JAX arrays to another one. It is pure, so its pull runs it again."""

    def __init__(self, name: str, function: Function) -> None:
        self.name = name
        self._function = function
        self._pull: Any = None
        self._outputs: list[tuple[Any, Any]] = []  # shape and dtype

    def run(self, raws: Sequence[Any]) -> tuple[Any, ...]:
        try:
            if any(self.needs):
                self._of_tracked = _of_tracked(self._function, list(raws), self.needs)
                tracked = [raw for raw, needed in zip(raws, self.needs) if needed]
                outputs, self._pull = jax.vjp(self._of_tracked, *tracked)
            else:
                outputs = self._function(list(raws))
        except jax.errors.TracerArrayConversionError as error:
            raise GradientError(
                f"{self.name}: the function turns a JAX array into a NumPy array, where its gradient would be lost. "
                "Write it with jax.numpy's functions; one that is written with NumPy's needs no bridge: call it on "
                "Pullback's tensors."
            ) from error
        self._outputs = [(out.shape, out.dtype) for out in outputs]
        self.tracked = tuple([any(self.needs) and _is_floating(out.dtype) for out in outputs])
        return tuple(outputs)

    def pull(self, cotangents: tuple[Any, ...]) -> tuple[Any, ...]:
        given = [g for g in cotangents if g is not None]
        try:
            return self._pull(self._filled(given, [g is not None for g in cotangents]))
        except (TypeError, ValueError, NotImplementedError) as error:
            raise GradientError(f"{self.name}: JAX has no gradient here: {error}") from error

    def pulled(self, given: tuple[bool, ...]) -> PulledCall:
        count = sum(given)

        def function(inputs: list[Any]) -> list[Any]:
            _, pull = jax.vjp(self._of_tracked, *inputs[count:])
            return list(pull(self._filled(inputs[:count], given)))

        return _PulledJaxCall(f"gradient of {self.name}", function, sum(self.needs))

    def pushed(self, moving: tuple[bool, ...]) -> PushedCall:
        return _PushedJaxCall(self.name, self._function, moving)

    def _filled(self, given: Sequence[Any], where: Sequence[bool]) -> tuple[Any, ...]:
        """A cotangent for every output: zeros where there is none."""
        rest = iter(given)
        return tuple(
            [
                next(rest) if there else _no_cotangent(shape, dtype)
                for there, (shape, dtype) in zip(where, self._outputs)
            ]
        )


class _PulledJaxCall(JaxCall, PulledCall):
    def __init__(self, name: str, function: Function, count: int) -> None:
        super().__init__(name, function)
        self.found = (True,) * count


class _PushedJaxCall(JaxCall, PushedCall):
    """`jax.jvp` of a function."""

    def __init__(self, name: str, inner: Function, moving: tuple[bool, ...]) -> None:
        def function(inputs: list[Any]) -> list[Any]:
            primals, tangents = inputs[: len(moving)], inputs[len(moving) :]
            of_moving = _of_tracked(inner, primals, moving)
            try:
                outputs, pushed = jax.jvp(of_moving, [x for x, moves in zip(primals, moving) if moves], tangents)
            except (TypeError, NotImplementedError) as error:
                if isinstance(error, NotImplementedError) or "custom_vjp" in str(error):
                    raise NoForwardModeError(f"{name}: JAX has no forward mode here: {error}") from error
                raise
            self.has_tangent = tuple([_is_floating(out.dtype) for out in outputs])
            return [*outputs, *[t for t, has_tangent in zip(pushed, self.has_tangent) if has_tangent]]

        super().__init__(f"tangent of {name}", function)


def _of_tracked(function: Function, raws: list[Any], needs: tuple[bool, ...]) -> Callable[..., tuple[Any, ...]]:
    """`function` of its tracked inputs alone; those are not held."""
    kept = [None if needed else raw for raw, needed in zip(raws, needs)]

    def of_tracked(*tracked: Any) -> tuple[Any, ...]:
        rest = iter(tracked)
        return tuple(function([next(rest) if needed else raw for raw, needed in zip(kept, needs)]))

    return of_tracked


def _is_floating(dtype: Any) -> bool:
    return jnp.issubdtype(dtype, jnp.inexact)


def _no_cotangent(shape: Any, dtype: Any) -> Any:
    return jnp.zeros(shape, dtype) if _is_floating(dtype) else np.zeros(shape, jax.dtypes.float0)


def check_output(name: str, path: str, out: Any) -> None:
    """Refuse results that are no JAX arrays."""
    if not isinstance(out, jax.Array):
        hint = ""
        if isinstance(out, (np.ndarray, np.generic)):
            hint = " A function that is written with NumPy's functions needs no bridge: call it on Pullback's tensors."
        where = f"result{path}" if path else "the result"
        raise DtypeError(
            f"{name}: {where} is of type {type(out).__name__}; expected JAX arrays, in any of JAX's pytrees.{hint}"
        )
