"""Mixed precision: inside a block, each operation computes in the precision that suits it.

Matrix products run in half precision, what loses digits or overflows there in float32. Tensors are converted by the
recorded `astype`, so parameters stay float32 and so do their gradients.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Callable, Self
from weakref import WeakKeyDictionary

from .. import dtypes, modes
from ..errors import DtypeError
from ..operations import OPERATIONS, Operation
from . import base
from .apply import record
from .base import SCALAR_OR_ABSENT, make
from .forward import Dual
from .graph import Leaf
from .tables import TENSORS

if TYPE_CHECKING:
    pass

_CAST = frozenset(("float16", "bfloat16", "float32"))
_WIDE = frozenset(("float64", "complex64", "complex128"))


class Policy:
    """What `autocast` does to an operation's inputs."""

    __slots__ = ("dtype", "halves")

    def __init__(self, dtype: dtypes.DType, halves: WeakKeyDictionary[Leaf, tuple[Any, Any]]) -> None:
        self.dtype = dtype
        # By variable: its array, and that in half precision. Holding the array makes every write to the variable copy
        # it first, so that an entry whose array is still the variable's has its values.
        self.halves = halves

    def cast(self, operation: Operation, inputs: tuple[Any, ...], static: tuple[Any, ...]) -> tuple[Any, ...]:
        """The inputs in the precision that the operation computes in."""
        kind = operation.autocast
        if kind == "given":
            return inputs
        if operation.converts is None:
            return self._cast(kind, inputs)
        count = operation.converts(*static)
        return (*self._cast(kind, inputs[:count]), *inputs[count:])

    def _cast(self, kind: str, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        found: set[str] = set()
        for x in inputs:
            if type(x) is base.Tensor or isinstance(x, Dual):
                found.add(x.dtype.name)
            elif type(x) not in SCALAR_OR_ABSENT:
                return inputs  # `apply` makes a tensor of an array, another operation of one on quantized weights
        if kind == "half":
            target = self.dtype
            if not found.isdisjoint(_WIDE):  # who passes float64 wants its digits
                return inputs
        else:
            target = dtypes.float32
            if kind == "widest" and len(found & _CAST) < 2:
                return inputs
        if found.isdisjoint(_CAST - {target.name}):
            return inputs
        return tuple([self._converted(x, target) for x in inputs])

    def _converted(self, x: Any, dtype: dtypes.DType) -> Any:
        if not (type(x) is base.Tensor or isinstance(x, Dual)) or x.dtype is dtype or x.dtype.name not in _CAST:
            return x
        backend = x._backend
        leaf = x._node
        mode = modes.current() or modes.DEFAULT
        # who wants to know of operations gets to know of this one, and a program makes equal halves once
        seen = mode.checkpointing is not None or mode.tapes or mode.tracing is not None
        if type(leaf) is not Leaf or type(x) is not base.Tensor or dtype is not self.dtype or seen:
            return TENSORS.astype(x, backend.raw_dtype(dtype))
        entry = self.halves.get(leaf)
        if entry is None or entry[0] is not x._raw or backend.dtype_of(entry[1]) is not dtype:
            safe = backend.is_exclusive(x, "_raw") or not backend.writable  # nobody can write to it behind our back
            result = TENSORS.astype(x, backend.raw_dtype(dtype))
            if safe:
                self.halves[leaf] = (x._raw, result._raw)
            return result
        # Each use has a node of its own: the gradients of several uses are added up in float32, and walking one
        # loss does not release what another one needs.
        if not mode.recording:
            return make(entry[1], None)
        static = (backend.raw_dtype(dtype),)
        return make(entry[1], record(backend, OPERATIONS["astype"], (x._raw,), (leaf,), static, (entry[1],)))


class _WithoutDevice:
    """Refuses the device that PyTorch's `autocast` begins with; a class of its own, so that `help` shows `__init__`."""

    def __new__(cls, *args: Any, **keywords: Any) -> Self:
        if "device_type" in keywords or (args and str(args[0]).partition(":")[0] in ("cpu", "cuda", "mps", "xpu")):
            dtype = keywords.get("dtype", args[1] if len(args) > 1 and not isinstance(args[1], bool) else "float16")
            raise TypeError(f'autocast() takes no device. Write `pb.autocast("{dtypes.get(dtype).name}")`.')
        return object.__new__(cls)


class autocast(_WithoutDevice):
    """Compute in mixed precision inside: matrix products in `dtype`, sums and losses in float32.

    A context manager and a decorator. The forward computation belongs inside, the optimizer's step outside; `backward`
    may be called in either place and computes in the precisions that were chosen on the way there. Parameters stay
    float32, and get float32 gradients. With "float16" scale the loss (`pb.optim.LossScaler`), or small gradients become
    zero; "bfloat16" needs no scaling.

    Linear layers, convolutions, attention and other products take `dtype`; powers, exponentials, logarithms,
    reductions, softmax, norms, losses, decompositions and special functions float32; what is left the widest of its
    inputs. An operation on float64 or complex numbers is left alone, and so are writing in place and operations made by
    `pb.custom_op`.

    Parameters
    ----------
    dtype : dtype
        "float16" or "bfloat16".
    enabled : bool
        With False nothing is converted inside, also in an outer block.

    Examples
    --------
    >>> import pullback as pb
    >>> weight = pb.ones((2, 3)).set_requires_grad(True)
    >>> with pb.autocast("float16"):
    ...     hidden = pb.linear(pb.ones((1, 3)), weight)
    ...     loss = pb.mse_loss(hidden, pb.zeros((1, 2)))
    >>> hidden.dtype, loss.dtype
    (pullback.float16, pullback.float32)
    >>> loss.backward()
    >>> weight.grad.dtype
    pullback.float32
    """

    def __init__(self, dtype: Any = "float16", enabled: bool = True) -> None:
        self.dtype = dtypes.get(dtype)
        self.enabled = enabled
        if self.dtype not in (dtypes.float16, dtypes.bfloat16):
            raise DtypeError(f"autocast: dtype must be float16 or bfloat16, got {self.dtype.name}.")
        self._tokens: list[Any] = []

    def __enter__(self) -> None:
        policy = None
        if self.enabled:
            outer = (modes.current() or modes.DEFAULT).autocast
            policy = Policy(self.dtype, WeakKeyDictionary() if outer is None else outer.halves)
        self._tokens.append(modes.enter(autocast=policy))

    def __exit__(self, *exc: object) -> None:
        modes.leave(self._tokens.pop())

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(fn)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.dtype, self.enabled):
                return fn(*args, **kwargs)

        return wrapped
