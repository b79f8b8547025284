"""Reductions in Triton's language: of blocks, and of the parts that several programs have of one."""

from __future__ import annotations

from ...kernels import Step
from ...llvm.loops.loop_form import TOTAL
from .blocks import Blocks
from .scalar_code import computed_in, stored, type_name

_FINISHED_AT_ONCE = 256, 8  # parts and columns that the second kernel adds up at a time
_LEAST = {8: -(2**7), 16: -(2**15), 32: -(2**31), 64: -(2**63)}


def is_in_parts(blocks: Blocks) -> bool:
    """Whether several programs have parts of something that is gathered."""
    return bool(blocks.accumulated) and (blocks.kind == "long" or _parts(blocks) > 1)


def _parts(blocks: Blocks) -> int:
    """How many programs have a part of something: of a total all of them, of a column those of its stripes."""
    ops = [blocks.loop.steps[blocks.loop.writes[n].step].op for n in blocks.accumulated]
    return blocks.programs if any(op in TOTAL for op in ops) else blocks.stripes


def parts_of(blocks: Blocks) -> list[tuple[str, int]]:
    """The dtype and number of elements of each array of parts."""
    found = []
    for number_ in blocks.accumulated:
        step = blocks.loop.steps[blocks.loop.writes[number_].step]
        # every stripe has a part of all columns; of a total, every program has one
        count = blocks.stripes * blocks.columns if step.op == "column_sum" else blocks.programs
        found.append((accumulated_in(step), count))
    return found


def accumulated_in(step: Step) -> str:
    """The dtype in which a reduction is gathered."""
    return "int32" if is_of_truths(step) else computed_in(step.dtype)


def is_of_truths(step: Step) -> bool:
    """Whether it is asked if any element, or every one, is true."""
    return step.dtype == "bool" or step.op.endswith(("_any", "_all"))


def is_gathered(step: Step) -> bool:
    """Whether a step is known only when the loop has ended."""
    return step.op in TOTAL or step.op == "column_sum"


def _kind_of(step: Step) -> str:
    kind = step.op.partition("_")[2]
    if step.dtype == "bool":
        return {"max": "any", "sum": "any", "min": "all", "prod": "all"}.get(kind, kind)
    return kind


def neutral(step: Step) -> str:
    """The number that changes nothing in a reduction."""
    kind, dtype = _kind_of(step), accumulated_in(step)
    if kind in ("sum", "any"):
        return "0"
    if kind in ("prod", "all"):
        return "1"
    if dtype.startswith("float"):
        return 'float("-inf")' if kind == "max" else 'float("inf")'
    bits = int(dtype.lstrip("uint"))
    if dtype.startswith("u"):
        return "0" if kind == "max" else str(2**bits - 1)
    return str(_LEAST[bits] if kind == "max" else -_LEAST[bits] - 1)


def along(step: Step, value: str, axis: int) -> str:
    """A reduction of a block along an axis."""
    kind, is_float = _kind_of(step), accumulated_in(step).startswith("float")
    if kind == "sum":
        return f"tl.sum({value}, {axis}, keep_dims=True)"
    if kind == "prod":
        return f"tl.reduce({value}, {axis}, f.product, keep_dims=True)"
    if kind in ("max", "min") and is_float:
        return f"tl.reduce({value}, {axis}, f.{'larger' if kind == 'max' else 'smaller'}, keep_dims=True)"
    return f"tl.{'max' if kind in ('max', 'any') else 'min'}({value}, {axis}, keep_dims=True)"


def combined(step: Step, a: str, b: str) -> str:
    """Two parts of a reduction together."""
    kind, is_float = _kind_of(step), accumulated_in(step).startswith("float")
    if kind == "sum":
        return f"({a} + {b})"
    if kind == "prod":
        return f"({a} * {b})"
    name = "max" if kind in ("max", "any") else "min"
    if is_float:
        return f"f.{'larger' if name == 'max' else 'smaller'}({a}, {b})"
    return f"tl.{name}imum({a}, {b})"


def told(step: Step, value: str) -> str:
    """A reduction's result from what was gathered."""
    return f"({value} != 0)" if is_of_truths(step) else value


def finish_text(blocks: Blocks) -> str:
    """A kernel that puts the parts of each result together, in their order."""
    loop = blocks.loop
    names = [f"r{i}" for i in range(len(loop.reads))] + [f"w{i}" for i in range(len(loop.writes))]
    names += [f"p{n}" for n in blocks.accumulated]
    lines = ["@triton.jit", f"def finish({', '.join(names)}):", "    program = tl.program_id(0)"]
    first_program = 0
    for n in blocks.accumulated:
        write = loop.writes[n]
        step = loop.steps[write.step]
        high, wide = _FINISHED_AT_ONCE
        is_column = step.op == "column_sum"
        count, columns = (blocks.stripes, blocks.columns) if is_column else (blocks.programs, 1)
        wide = wide if is_column else 1
        high = high if is_column else 1024
        row, column, one, all_ = f"row{n}", f"column{n}", f"one{n}", f"all{n}"
        body = [
            f"{column} = (program - {first_program}) * {wide} + tl.arange(0, {wide})[None, :]",
            f"{all_} = tl.full(({high}, {wide}), {neutral(step)}, {type_name(accumulated_in(step))})",
            f"for start{n} in range(0, {count}, {high}):",
            f"    {row} = start{n} + tl.arange(0, {high})[:, None]",
            f"    is_there{n} = ({row} < {count}) & ({column} < {columns})",
            f"    {one} = tl.load(p{n} + {row}.to(tl.int64) * {columns} + {column}, mask=is_there{n}, other=0)",
            f"    {one} = tl.where(is_there{n}, {one}, {neutral(step)})",
            f"    {all_} = {combined(step, all_, one)}.to({type_name(accumulated_in(step))})",
            f"result{n} = {stored(told(step, along(step, all_, 0)), '', write.access.dtype)}",
        ]
        first = len(loop.outer)
        offset, rest = [], column
        for axis in range(len(loop.inner) - 1, -1, -1):
            stride = write.access.strides[first + axis]
            at = rest if axis == 0 else f"({rest} % {max(loop.inner[axis], 1)})"
            rest = f"({rest} // {max(loop.inner[axis], 1)})"
            if stride and is_column:
                offset.append(f"{at} * {stride}")
        body.append(f"tl.store(w{n} + ({' + '.join(offset) or f'{column} * 0'}), result{n}, mask={column} < {columns})")
        last_program = first_program + -(-columns // wide)
        lines.append(f"    if (program >= {first_program}) & (program < {last_program}):")
        first_program = last_program
        lines += ["        " + one for one in body]
    return "\n".join(lines) + "\n"


def finishing_programs(blocks: Blocks) -> int:
    """How many programs the second kernel has."""
    ops = [blocks.loop.steps[blocks.loop.writes[n].step].op for n in blocks.accumulated]
    return sum([-(-blocks.columns // _FINISHED_AT_ONCE[1]) if op == "column_sum" else 1 for op in ops])
