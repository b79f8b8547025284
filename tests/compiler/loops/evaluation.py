"""Loops evaluated by NumPy, by native code, and made at random, for the tests of this folder."""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

import numpy as np
from llvmlite import ir

from pullback.targets.kernels import Access, Loop, Step, Write
from pullback.targets.llvm.code import ITEMSIZE, Emitted
from pullback.targets.llvm.loops import emit_loop as loops
from pullback.targets.llvm.runtime import jit

from ...backends.installed import optional

ml_dtypes = optional("ml_dtypes")

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_numbers = itertools.count()


def dtype_of(name: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


# -- native code ---------------------------------------------------------------------------------


class Compiled:
    """A loop's native function; called with arrays whose first elements are where the loop begins."""

    def __init__(self, loop: Loop) -> None:
        module = ir.Module("loop")
        name = f"loop{next(_numbers)}"
        self.loop = loop
        self.emitted: Emitted = loops.emit(module, name, loop)
        self.library = jit.Library([jit.compile_object(str(module))], [name], {})
        self.library.keep()
        words = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
        self.function = ctypes.CFUNCTYPE(None, *words)(self.library.addresses[name])

    def __call__(self, arrays: list[np.ndarray], begin: int = 0, end: int | None = None, part: int = 0) -> None:
        guard = 4096
        scratch = np.full(self.emitted.scratch + guard + 64, 0xAB, np.uint8)
        start = -scratch.ctypes.data % 64
        table = np.array([array.ctypes.data for array in arrays], np.int64)
        units = self.emitted.units if end is None else end
        self.function(table.ctypes.data, begin, units, part, scratch.ctypes.data + start)
        assert (scratch[start + self.emitted.scratch :] == 0xAB).all(), "wrote beyond its scratch memory"

    def in_parts(self, arrays: list[np.ndarray], cuts: list[int]) -> None:
        """Run the parts between `cuts`, and reduce what they leave."""
        emitted = self.emitted
        arrays = list(arrays)
        guarded = Guarded()
        partial = {}
        for number, nbytes, kind in emitted.partials:
            target = arrays[number]
            parts = guarded.zeros([(len(cuts) - 1) * nbytes // target.itemsize], target.dtype)
            partial[number] = (target, parts, kind)
            arrays[number] = parts
        for part, (begin, end) in enumerate(itertools.pairwise(cuts)):
            self(arrays, begin, end, part)
        guarded.check()
        for number, (target, parts, kind) in partial.items():
            reduce = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
            reduce |= {"any": np.logical_or, "all": np.logical_and}
            access = self.loop.writes[number - len(self.loop.reads)].access
            inner = access.strides[len(self.loop.outer) :]
            rows = parts.reshape(len(cuts) - 1, -1)
            if rows.shape[1] > 1:
                strides = (rows.strides[0], *(stride * target.itemsize for stride in inner))
                rows = np.lib.stride_tricks.as_strided(rows, (len(rows), *self.loop.inner), strides)
                target[...] = reduce[kind].reduce(rows, axis=0, dtype=target.dtype).reshape(target.shape)
            else:
                target[...] = reduce[kind].reduce(rows[:, 0], dtype=target.dtype)


# -- NumPy ---------------------------------------------------------------------------------------

_FUNCTIONS: dict[str, Any] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "negative": np.negative,
    "exp": np.exp, "tanh": np.tanh, "sqrt": np.sqrt, "maximum": np.maximum, "minimum": np.minimum, "where": np.where,
    "less": np.less, "greater_equal": np.greater_equal, "logical_and": np.logical_and, "square": np.square,
}  # fmt: skip
_REDUCTIONS = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "any": np.any, "all": np.all}


def computed_in(dtype: str) -> Any:
    return np.float64 if dtype in FLOATS else np.dtype(dtype)


def _extremes(dtype: np.dtype) -> tuple[Any, Any]:
    if dtype.kind == "f":
        return -np.inf, np.inf
    return (False, True) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)


def values_of(loop: Loop, reads: list[np.ndarray]) -> list[np.ndarray]:
    """Each step's values, floating-point ones in float64, with axes of size 1 where they do not vary, like `reads`."""
    shape = (*loop.outer, *loop.inner)
    inner = tuple(range(len(loop.outer), len(shape)))
    outer = tuple(range(len(loop.outer)))
    values: list[np.ndarray] = []
    for step in loop.steps:
        operands = [values[operand] for operand in step.operands]
        kind = computed_in(step.dtype)
        if step.op == "read":
            value = reads[step.index].astype(kind)
        elif step.op == "number":
            value = np.full((1,) * len(shape), step.number, kind)
        elif step.op == "position":
            along = [shape[axis] if axis == step.index else 1 for axis in range(len(shape))]
            value = np.arange(shape[step.index]).reshape(along).astype(kind)
        elif step.op == "convert":
            value = operands[0].astype(kind)
        elif "_" in step.op and step.op.split("_")[0] in ("row", "column", "total"):
            where, name = step.op.split("_")
            axes = {"row": inner, "column": outer, "total": (*outer, *inner)}[where]
            x = np.broadcast_to(operands[0], shape)
            x = x if name in ("any", "all") else x.astype(kind)
            more = {"dtype": kind} if name in ("sum", "prod") else {}
            if name in ("max", "min"):
                more["initial"] = _extremes(np.dtype(kind))[name == "min"]
            value = np.asarray(_REDUCTIONS[name](x, axis=axes, keepdims=True, **more), kind)
        elif step.op == "where":
            value = np.where(*operands).astype(kind)
        else:
            value = _FUNCTIONS[step.op](*operands).astype(kind)
        values.append(value)
    return values


def expected_in(target: np.ndarray, value: np.ndarray) -> np.ndarray:
    """What `target` is to hold, whose axes are of size 1 where a reduction went over them."""
    index = tuple([slice(0, 1) if size == 1 else slice(None) for size in target.shape])
    return np.broadcast_to(value[index], target.shape).astype(target.dtype)


# -- random loops --------------------------------------------------------------------------------


def strides_of(view: np.ndarray) -> tuple[int, ...]:
    """Strides in elements for a loop's access: zeros where the view has but one index."""
    return tuple([0 if size == 1 else stride // view.itemsize for size, stride in zip(view.shape, view.strides)])


class Guarded:
    """Arrays in memory with bytes before and behind that nothing may change."""

    MARGIN = 512

    def __init__(self) -> None:
        self.memory: list[np.ndarray] = []

    def zeros(self, shape: list[int], dtype: np.dtype) -> np.ndarray:
        nbytes = int(np.prod(shape, dtype=int)) * dtype.itemsize
        memory = np.full(nbytes + 2 * self.MARGIN, 0xEE, np.uint8)
        self.memory.append(memory)
        array = memory[self.MARGIN : self.MARGIN + nbytes].view(dtype).reshape(shape)
        array[...] = 0
        return array

    def check(self) -> None:
        for memory in self.memory:
            assert (memory[: self.MARGIN] == 0xEE).all(), "wrote before an array"
            assert (memory[-self.MARGIN :] == 0xEE).all(), "wrote behind an array"


def random_view(rng: np.random.Generator, shape: tuple[int, ...], plain: bool, guarded: Guarded) -> Any:
    """A function from a dtype to a view of that shape in fresh memory: axes in any order, backwards, with gaps."""
    order = list(range(len(shape)))
    if not plain and rng.random() < 0.5:
        rng.shuffle(order)
    gaps = [1 if plain else int(rng.choice([1, 1, 1, 1, 2])) for _ in shape]
    signs = [1 if plain else int(rng.choice([1, 1, 1, 1, 1, -1])) for _ in shape]

    def made(dtype: np.dtype) -> np.ndarray:
        memory = guarded.zeros([shape[axis] * gaps[axis] for axis in order], dtype)
        cut = memory[(..., *[slice(None, None, gaps[axis]) for axis in order])]
        view = cut.transpose(np.argsort(order)) if order else cut
        return view[(..., *[slice(None, None, sign) for sign in signs])]

    return made


class RandomLoop:
    """A loop, arrays for it, and what its writes must hold afterwards."""

    def __init__(
        self, rng: np.random.Generator, dtypes: tuple[str, ...], plain: bool = False, big: bool = False
    ) -> None:
        sizes = [1, 2, 3, 4, 5, 8, 15, 16, 17, 33, 64, 70, 130]
        if rng.random() < 0.08:
            sizes = [0, 1, 3]
        while True:
            outer = tuple(int(n) for n in rng.choice(sizes, rng.integers(0, 4)))
            inner = tuple(int(n) for n in rng.choice(sizes, rng.integers(0, 3)))
            if np.prod(outer + inner) <= (60000 if big else 6000):
                break
        self.rng, self.shape, self.outer, self.inner = rng, outer + inner, outer, inner
        self.dtypes, self.plain = dtypes, plain
        self.guarded = Guarded()
        self.reads: list[np.ndarray] = []
        self.steps: list[Step] = []
        self.values: list[np.ndarray] = []
        for _ in range(rng.integers(1, 4)):
            self._add_read()
        for _ in range(rng.integers(1, 9)):
            self._add_step()
        self._add_writes()

    def _add_read(self) -> None:
        rng, dtype = self.rng, str(self.rng.choice(self.dtypes))
        shape = tuple([n if rng.random() < 0.8 else 1 for n in self.shape])
        view = random_view(rng, shape, self.plain, self.guarded)(dtype_of(dtype))
        high = 3
        low = 0 if dtype.startswith("u") or dtype == "bool" else -2
        view[...] = rng.integers(low, 2 if dtype == "bool" else high, shape).astype(view.dtype)
        self.reads.append(view)
        self._grow(Step("read", (), dtype, len(self.reads) - 1))

    def _grow(self, step: Step) -> bool:
        """Add a step if its values are small enough for floating-point arithmetic to be exact."""
        loop = Loop(self.outer, self.inner, (), (*self.steps, step), ())
        with np.errstate(all="ignore"):
            values = values_of(loop, self.reads)
            value = values[-1]
            if step.op.endswith("prod") and step.dtype in FLOATS:  # in any order, also with a zero last
                factors = np.broadcast_to(values[step.operands[0]], self.shape)
                value = np.prod(np.maximum(np.abs(factors), 1))
        limit = 200 if step.dtype in ("bfloat16", "float16") else 2**22
        if step.dtype in FLOATS and value.size and not np.all(np.abs(value) < limit):
            return False
        self.steps.append(step)
        return True

    def _pick(self, dtype: str | None = None) -> int:
        usable = [
            number for number, step in enumerate(self.steps)
            if step.op != "column_sum" and not step.op.startswith("total") and dtype in (None, step.dtype)
        ]  # fmt: skip
        return int(self.rng.choice(usable)) if usable else -1

    def _add_step(self) -> None:
        rng = self.rng
        draw = rng.random()
        x = self._pick()
        dtype = self.steps[x].dtype
        if draw < 0.06:
            self._grow(Step("number", (), dtype, number=1 if dtype == "bool" else 2))
        elif draw < 0.14 and self.shape:
            self._grow(Step("position", (), "int64", int(rng.integers(len(self.shape)))))
        elif draw < 0.24:
            self._grow(Step("convert", (x,), str(rng.choice(self.dtypes))))
        elif draw < 0.55:
            name = str(rng.choice(["sum", "max", "min", "any", "all", "prod"], p=[0.4, 0.2, 0.1, 0.1, 0.1, 0.1]))
            where = str(rng.choice(["row", "row", "column", "total"]))
            if where == "column":
                name = "sum"
            made = (
                "bool" if name in ("any", "all") else "int64" if name in ("sum", "prod") and dtype == "bool" else dtype
            )
            self._grow(Step(f"{where}_{name}", (x,), made))
        elif draw < 0.62:
            self._grow(Step("less", (x, self._pick(dtype)), "bool"))
        elif draw < 0.7 and self._pick("bool") >= 0:
            self._grow(Step("where", (self._pick("bool"), x, self._pick(dtype)), dtype))
        elif dtype != "bool":
            op = str(rng.choice(["add", "subtract", "multiply", "maximum"]))
            self._grow(Step(op, (x, self._pick(dtype)), dtype))

    def _add_writes(self) -> None:
        rng = self.rng
        reductions = [n for n, step in enumerate(self.steps) if step.op == "column_sum" or step.op[:5] == "total"]
        chosen = [self._pick() for _ in range(rng.integers(0 if reductions else 1, 4))] + reductions
        rows = len(self.outer)
        self.targets: list[np.ndarray] = []
        self.writes: list[Write] = []
        taken: set[int] = set()
        for step in chosen:
            op, dtype = self.steps[step].op, self.steps[step].dtype
            shape = self.shape
            if op[:5] == "total":
                shape = (1,) * len(shape)
            elif op == "column_sum":
                shape = (1,) * rows + self.inner
            elif self._of_rows(step) and rng.random() < 0.7:
                shape = self.outer + (1,) * len(self.inner)
            over = [
                n for n, read in enumerate(self.reads)
                if n not in taken and read.dtype == dtype_of(dtype) and read.shape == shape
            ]  # fmt: skip
            if over and rng.random() < 0.4:
                n = int(rng.choice(over))
                taken.add(n)
                target = self.reads[n]
            else:
                target = random_view(rng, shape, self.plain, self.guarded)(dtype_of(dtype))
            self.targets.append(target)
            self.writes.append(Write(step, Access(dtype, strides_of(target))))

    def _of_rows(self, step: int) -> bool:
        one = self.steps[step]
        if one.op.startswith("row_"):
            return True
        if one.op == "read":
            return not any(strides_of(self.reads[one.index])[len(self.outer) :])
        if one.op == "position":
            return one.index < len(self.outer)
        return all(self._of_rows(operand) for operand in one.operands)

    def loop(self) -> Loop:
        accesses = tuple(
            [Access(name_of(read.dtype), strides_of(read)) for read in self.reads],
        )
        return Loop(self.outer, self.inner, accesses, tuple(self.steps), tuple(self.writes))

    def check(self, run: Any) -> None:
        """Run it, and compare all that it wrote."""
        loop = self.loop()
        with np.errstate(all="ignore"):
            values = values_of(loop, self.reads)
            expected = [expected_in(t, values[write.step]) for t, write in zip(self.targets, loop.writes)]
        run(loop, [*self.reads, *self.targets])
        self.guarded.check()
        for target, right, write in zip(self.targets, expected, loop.writes):
            np.testing.assert_array_equal(
                target.astype(np.float64), right.astype(np.float64), err_msg=f"{write}\n{loop}", strict=True
            )


def name_of(dtype: np.dtype) -> str:
    assert dtype.name in ITEMSIZE
    return dtype.name
