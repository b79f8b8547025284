"""Kernels that map an operation over arrays, compiled here alone: vectors first, then scalars for what is left."""

from __future__ import annotations

import ctypes
import functools
from typing import Any, Callable

import llvmlite.binding as binding
import numpy as np
from llvmlite import ir

from pullback.targets.llvm.code import I64, ITEMSIZE, STORED, Code, load, store, vector
from pullback.targets.llvm.mathematics.operations import convert, scalar_operation

_SIGNATURE = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
)  # fmt: skip
Body = Callable[[ir.IRBuilder, list[Any]], Any]


def _target(processor: str) -> Any:
    """A new one each time: an engine ends the life of its own."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    features = "" if processor else binding.get_host_cpu_features().flatten()
    target = binding.Target.from_default_triple()
    return target.create_target_machine(
        cpu=processor or binding.get_host_cpu_name(), features=features, opt=3, jit=True
    )  # fmt: skip


def _read(b: ir.IRBuilder, pointer: Any, index: Any, width: int, dtype: str) -> Any:
    value = load(b, pointer, index, width, ITEMSIZE[dtype])
    return b.trunc(value, vector(ir.IntType(1), width)) if dtype == "bool" else value


def _write(b: ir.IRBuilder, value: Any, pointer: Any, index: Any, width: int, dtype: str) -> None:
    if dtype == "bool":
        value = b.zext(value, vector(STORED["bool"], width))
    store(b, value, pointer, index, ITEMSIZE[dtype])


def written(body: Body, operand_dtypes: tuple[str, ...], dtype: str, width: int) -> ir.Module:
    """A module with the function `mapped`: out[i] = body(operands[i])."""
    module = ir.Module("mapped")
    code = Code(module, "mapped")
    pointers = [code.pointer(i, kind) for i, kind in enumerate((*operand_dtypes, dtype))]
    b = code.b
    whole = b.mul(b.sdiv(code.end, I64(width)), I64(width))
    for start, stop, step in ((code.begin, whole, width), (whole, code.end, 1)):
        with code.loop(start, stop, step) as (index,):
            operands = [_read(b, p, index, step, kind) for p, kind in zip(pointers, operand_dtypes)]
            _write(b, body(b, operands), pointers[-1], index, step, dtype)
    code.end_function()
    return module


def build(body: Body, operand_dtypes: tuple[str, ...], dtype: str, width: int, processor: str = "") -> tuple[Any, Any]:
    """The engine (to be kept alive) and the compiled function, for a processor by LLVM's name or for this one."""
    target = _target(processor)
    parsed = binding.parse_assembly(str(written(body, operand_dtypes, dtype, width)))
    parsed.verify()
    options = binding.create_pipeline_tuning_options()
    options.speed_level = 2
    options.loop_vectorization = options.slp_vectorization = False  # scalars are to stay scalars
    passes = binding.create_pass_builder(target, options)
    passes.getModulePassManager().run(parsed, passes)
    engine = binding.create_mcjit_compiler(parsed, target)
    engine.finalize_object()
    return engine, _SIGNATURE(engine.get_function_address("mapped"))


@functools.cache
def _operation(op: str, operand_dtypes: tuple[str, ...], dtype: str, width: int) -> tuple[Any, Any]:
    def body(b: ir.IRBuilder, operands: list[Any]) -> Any:
        return scalar_operation(b, op, operands, dtype, list(operand_dtypes))

    return build(body, operand_dtypes, dtype, width)


@functools.cache
def _conversion(source: str, target: str, width: int) -> tuple[Any, Any]:
    return build(lambda b, operands: convert(b, operands[0], source, target), (source,), target, width)


def run(function: Any, arrays: list[Any], dtype: str) -> Any:
    """The function on arrays of one length."""
    arrays = [np.ascontiguousarray(array) for array in arrays]
    out = np.empty(arrays[0].shape, dtype)
    table = np.array([array.ctypes.data for array in (*arrays, out)], np.int64)
    function(table.ctypes.data, 0, out.size, 0, None)
    return out


def lanes_of(dtypes: tuple[str, ...]) -> int:
    """As many lanes as one register of 64 bytes has of the widest dtype."""
    return 64 // max(4, *(ITEMSIZE[dtype] for dtype in dtypes))


def mapped(op: str, *arrays: Any, dtype: str | None = None, width: int = 0) -> Any:
    """out[i] = op(*arrays[i]), in vectors and, for the last elements, in scalars."""
    kinds = tuple(array.dtype.name for array in arrays)
    dtype = dtype or kinds[-1]
    return run(_operation(op, kinds, dtype, width or lanes_of((*kinds, dtype)))[1], list(arrays), dtype)


def converted(array: Any, dtype: str, width: int = 0) -> Any:
    kind = array.dtype.name
    return run(_conversion(kind, dtype, width or lanes_of((kind, dtype)))[1], [array], dtype)
