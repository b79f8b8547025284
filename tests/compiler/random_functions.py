"""Random functions of tensors, each from a seed: elementwise, broadcasting, reductions, products, indexing, control.

A function is a list of steps over a growing list of values, so that the same one can run eagerly and compiled. Values
stay of moderate size, and functions are smooth where they are differentiated, almost surely.
"""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

import pullback as pb

Step = Callable[[list[Any]], Any]
DEEPEST = 30


class RandomFunction:
    """`arguments` to start from, and a function of them that gives a scalar."""

    def __init__(self, seed: int, dtype: Any = np.float64) -> None:
        self.rng = np.random.default_rng(seed)
        self.dtype = np.dtype(dtype)
        rows, columns = int(self.rng.integers(1, 6)), int(self.rng.integers(1, 7))
        shapes = [(rows, columns), (columns,), (rows, 1), (), (columns, int(self.rng.integers(1, 5)))]
        count = int(self.rng.integers(1, len(shapes) + 1))
        self.arguments = [self._numbers(shape) for shape in shapes[:count]]
        self.steps: list[tuple[str, Step]] = []
        self._shapes = [a.shape for a in self.arguments]
        depth = int(self.rng.integers(1, DEEPEST + 1))
        while len(self.steps) < depth:
            self._add()

    def __call__(self, *tensors: Any) -> Any:
        values = list(tensors)
        for _, step in self.steps:
            values.append(step(values))
        total = 0.0
        for value, weight in zip(values[-4:], (1.0, 0.5, 0.25, 2.0)):
            total = total + pb.mean(pb.tanh(value)) * weight
        return total

    def __repr__(self) -> str:
        return " ; ".join(name for name, _ in self.steps)

    def _numbers(self, shape: tuple[int, ...]) -> np.ndarray:
        return np.asarray(self.rng.uniform(-1.5, 1.5, shape)).astype(self.dtype)

    # -- choosing steps ----------------------------------------------------------------------------

    def _pick(self, fits: Callable[[tuple[int, ...]], bool] = lambda shape: True) -> int | None:
        """The number of a value, rather a late one, whose shape fits."""
        candidates = [i for i, shape in enumerate(self._shapes) if fits(shape)]
        if not candidates:
            return None
        return candidates[max(self.rng.integers(0, len(candidates), 2))]

    def _add(self) -> None:
        makers = [
            self._unary, self._unary, self._unary, self._binary, self._binary, self._binary, self._where, self._reduce,
            self._reduce, self._matmul, self._reshape, self._transpose, self._slice, self._take, self._join,
            self._normalise, self._write, self._control,
        ]  # fmt: skip
        made = makers[int(self.rng.integers(len(makers)))]()
        if made is None:
            return
        name, step, shape = made
        if int(np.prod(shape, dtype=int)) <= 600:
            self.steps.append((name, step))
            self._shapes.append(tuple(shape))

    def _unary(self) -> Any:
        i = self._pick()
        functions: dict[str, Callable[[Any], Any]] = {
            "tanh": pb.tanh, "sin": pb.sin, "cos": pb.cos, "exp": lambda x: pb.exp(x * 0.3 - 0.5),
            "log": lambda x: pb.log(x * x + 1.0),
            "sqrt": lambda x: pb.sqrt(x * x + 0.5),
            "square": lambda x: x * x * 0.5,
            "sigmoid": pb.sigmoid, "silu": pb.silu, "gelu": pb.gelu, "relu": pb.relu, "abs": lambda x: abs(x),
            "reciprocal": lambda x: 1 / (2.0 + x * x), "pow": lambda x: (x * x + 1.0) ** 1.5, "negative": lambda x: -x,
            "cube": lambda x: x**3 * 0.2, "erf": pb.erf, "softplus": pb.softplus, "atan": pb.atan, "expm1": pb.expm1,
            "log1p": lambda x: pb.log1p(x * x), "round trip": lambda x: x.astype(pb.float64).astype(x.dtype),
            "sinh": lambda x: pb.sinh(0.3 * x), "detach": lambda x: x * x.detach(),
        }  # fmt: skip
        name = list(functions)[int(self.rng.integers(len(functions)))]
        function = functions[name]
        # keep what functions like expm1 make of moderate size
        return f"{name}({i})", lambda v: pb.tanh(function(v[i])) if name == "expm1" else function(v[i]), self._shapes[i]

    def _binary(self) -> Any:
        i = self._pick()
        j = self._pick(lambda shape: _broadcast(shape, self._shapes[i]) is not None)
        shape = _broadcast(self._shapes[i], self._shapes[j])
        functions: dict[str, Callable[[Any, Any], Any]] = {
            "add": lambda x, y: x + y, "subtract": lambda x, y: x - 0.5 * y, "multiply": lambda x, y: x * pb.tanh(y),
            "divide": lambda x, y: x / (1.5 + y * y), "maximum": pb.maximum, "minimum": pb.minimum,
            "hypot": lambda x, y: pb.hypot(x, y + 3.0), "atan2": lambda x, y: pb.atan2(x, 2.0 + y * y),
            "logaddexp": pb.logaddexp,
            "power": lambda x, y: (1.1 + x * x) ** pb.tanh(y),
            "scalar": lambda x, y: 2 - x * 3 + y,
        }  # fmt: skip
        name = list(functions)[int(self.rng.integers(len(functions)))]
        function = functions[name]
        return f"{name}({i}, {j})", lambda v: function(v[i], v[j]), shape

    def _where(self) -> Any:
        i = self._pick()
        j = self._pick(lambda shape: _broadcast(shape, self._shapes[i]) is not None)
        shape = _broadcast(self._shapes[i], self._shapes[j])
        limit = float(self.rng.uniform(-0.5, 0.5))
        return f"where({i}, {j})", lambda v: pb.where(v[i] > limit, v[i] * 2, pb.sqrt(v[j] * v[j] + 0.1)), shape

    def _reduce(self) -> Any:
        i = self._pick(lambda shape: len(shape) > 0)
        if i is None:
            return None
        shape = self._shapes[i]
        axes: Any = None
        if self.rng.random() < 0.8:
            count = int(self.rng.integers(1, len(shape) + 1))
            axes = tuple(int(a) for a in self.rng.permutation(len(shape))[:count])
        keep = bool(self.rng.random() < 0.5)
        over = range(len(shape)) if axes is None else axes
        out = tuple(1 if a in over else n for a, n in enumerate(shape) if keep or a not in over)
        functions: dict[str, Callable[..., Any]] = {
            "sum": lambda x: pb.sum(x, axis=axes, keepdims=keep) * 0.3,
            "mean": lambda x: pb.mean(x, axis=axes, keepdims=keep),
            "max": lambda x: pb.max(x, axis=axes, keepdims=keep), "min": lambda x: pb.min(x, axis=axes, keepdims=keep),
            "logsumexp": lambda x: pb.logsumexp(x, axis=axes, keepdims=keep),
            "var": lambda x: pb.var(x, axis=axes, keepdims=keep),
            "prod": lambda x: pb.prod(pb.tanh(x) + 0.1, axis=axes, keepdims=keep),
        }  # fmt: skip
        name = list(functions)[int(self.rng.integers(len(functions)))]
        function = functions[name]
        return f"{name}({i}, {axes}, {keep})", lambda v: function(v[i]), out

    def _matmul(self) -> Any:
        i = self._pick(lambda shape: len(shape) >= 1)
        if i is None:
            return None
        k = self._shapes[i][-1]
        j = self._pick(lambda shape: len(shape) == 2 and k in shape)
        if j is None:
            return None
        flip = self._shapes[j][0] != k
        out = self._shapes[i][:-1] + (self._shapes[j][0 if flip else 1],)
        return f"matmul({i}, {j})", lambda v: v[i] @ (v[j].mT if flip else v[j]) * 0.4, out

    def _reshape(self) -> Any:
        i = self._pick(lambda shape: len(shape) > 0)
        if i is None:
            return None
        shape, size = self._shapes[i], int(np.prod(self._shapes[i], dtype=int))
        options = [(size,), (1, *shape), (*shape, 1), shape[::-1]] + [
            (d, size // d) for d in (2, 3, 4) if size % d == 0
        ]
        out = options[int(self.rng.integers(len(options)))]
        return f"reshape({i}, {out})", lambda v: pb.reshape(v[i], out), out

    def _transpose(self) -> Any:
        i = self._pick(lambda shape: len(shape) > 1)
        if i is None:
            return None
        order = tuple(int(a) for a in self.rng.permutation(len(self._shapes[i])))
        return (
            f"permute({i}, {order})",
            lambda v: pb.permute_dims(v[i], order),
            tuple(self._shapes[i][a] for a in order),
        )

    def _slice(self) -> Any:
        i = self._pick(lambda shape: len(shape) > 0 and min(shape) > 0)
        if i is None:
            return None
        index: list[Any] = []
        for n in self._shapes[i]:
            kind = int(self.rng.integers(4))
            if kind == 0:
                index.append(int(self.rng.integers(-n, n)))
            elif kind == 1:
                index.append(slice(None, None, -1 if self.rng.random() < 0.5 else 2))
            elif kind == 2:
                start = int(self.rng.integers(0, n))
                index.append(slice(start, start + 1 + int(self.rng.integers(0, n - start))))
            else:
                index.append(slice(None))
        if self.rng.random() < 0.2:
            index.append(None)
        chosen = tuple(index)
        return f"slice({i}, {chosen})", lambda v: v[i][chosen], np.empty(self._shapes[i])[chosen].shape

    def _take(self) -> Any:
        i = self._pick(lambda shape: len(shape) > 0 and min(shape) > 0)
        if i is None:
            return None
        shape = self._shapes[i]
        axis = int(self.rng.integers(len(shape)))
        indices = self.rng.integers(-shape[axis], shape[axis], int(self.rng.integers(1, 6)))
        kind = int(self.rng.integers(3))
        if kind == 0:
            out = (*shape[:axis], len(indices), *shape[axis + 1 :])
            return f"take({i}, {axis})", lambda v: pb.take(v[i], pb.asarray(indices), axis=axis), out
        if kind == 1:
            picked = indices % shape[0]
            return f"rows({i})", lambda v: v[i][picked], (len(picked), *shape[1:])
        along = self.rng.integers(0, shape[axis], shape)
        return f"along({i}, {axis})", lambda v: pb.take_along_axis(v[i], pb.asarray(along), axis=axis), shape

    def _join(self) -> Any:
        i = self._pick(lambda shape: len(shape) > 0)
        if i is None:
            return None
        shape = self._shapes[i]
        axis = int(self.rng.integers(len(shape)))
        j = self._pick(lambda s: len(s) == len(shape) and all(a == axis or s[a] == shape[a] for a in range(len(s))))
        other = self._shapes[j]
        if shape == other and self.rng.random() < 0.4:
            return f"stack({i}, {j})", lambda v: pb.stack([v[i], v[j]], axis=axis), (*shape[:axis], 2, *shape[axis:])
        out = (*shape[:axis], shape[axis] + other[axis], *shape[axis + 1 :])
        return f"concat({i}, {j})", lambda v: pb.concat([v[i], v[j]], axis=axis), out

    def _normalise(self) -> Any:
        i = self._pick(lambda shape: len(shape) > 0)
        if i is None:
            return None
        n = self._shapes[i][-1]
        functions: dict[str, Callable[[Any], Any]] = {
            "softmax": lambda x: pb.softmax(x, axis=-1), "log_softmax": lambda x: pb.log_softmax(x, axis=-1) * 0.3,
            "layer_norm": lambda x: pb.layer_norm(x, n, eps=0.1),
            "cumulative_sum": lambda x: pb.cumulative_sum(x, axis=-1) * 0.3,
            "flip": lambda x: pb.flip(x, axis=-1),
            "roll": lambda x: pb.roll(x, 1, axis=-1),
            "sort": lambda x: pb.sort(x, axis=-1),
            "tril": lambda x: pb.tril(x) if len(x.shape) > 1 else x, "tile": lambda x: x,
        }  # fmt: skip
        name = list(functions)[int(self.rng.integers(len(functions)))]
        function = functions[name]
        return f"{name}({i})", lambda v: function(v[i]), self._shapes[i]

    def _write(self) -> Any:
        i = self._pick(lambda shape: len(shape) > 0 and shape[0] > 0)
        if i is None:
            return None
        row = int(self.rng.integers(self._shapes[i][0]))

        def written(v: list[Any]) -> Any:
            copy = v[i] * 1.0
            copy[row] = copy[row] * 0.5 + 0.1
            copy += 0.05
            return copy

        return f"write({i}, {row})", written, self._shapes[i]

    def _control(self) -> Any:
        i = self._pick()
        kind = int(self.rng.integers(3))
        if kind == 0:
            chosen = lambda v: pb.cond(pb.mean(v[i]) > 0.1, lambda x: pb.sin(x) * 2, lambda x: x * x * 0.5, v[i])
            return f"cond({i})", chosen, self._shapes[i]
        if kind == 1:
            j = self._pick(lambda shape: len(shape) > 0 and 0 < shape[0] < 8)
            if j is None:
                return None

            def scanned(v: list[Any]) -> Any:
                start = pb.zeros_like(v[j][0])
                return pb.scan(lambda h, x: (pb.tanh(h * 0.5 + x), h + x * 0.1), start, v[j])[1]

            return f"scan({j})", scanned, self._shapes[j]

        def looped(v: list[Any]) -> Any:
            return pb.while_loop(
                lambda s: pb.mean(s[0] * s[0]) > 0.2,
                lambda s: (s[0] * 0.6, s[1] + 1.0),
                (v[i], pb.zeros_like(v[i])),
                max_steps=5,
            )[0]  # fmt: skip

        return f"while({i})", looped, self._shapes[i]


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        return None


def derivatives(function: Callable[..., Any], directions: list[np.ndarray]) -> Callable[..., Any]:
    """A function that gives the value of `function`, its gradients, and the product of its Hessian and `directions`."""

    def computed(*arguments: Any) -> Any:
        tensors = [argument.detach().set_requires_grad(True) for argument in arguments]
        value = function(*tensors)
        grads = pb.backward(value, create_graph=True)
        first = [grads.get(t) for t in tensors]
        slope: Any = 0.0
        for gradient, u in zip(first, directions):
            if gradient is not None:
                slope = slope + pb.sum(gradient * pb.asarray(u))
        plain = [None if gradient is None else gradient.detach() for gradient in first]
        if not getattr(slope, "requires_grad", False):
            return value.detach(), plain, []
        second = pb.backward(slope)
        return value.detach(), plain, [second.get(t) for t in tensors]

    return computed
