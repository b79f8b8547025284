"""Native code for `Loop`: how wide its vectors are, into what its work can be cut, and what it costs."""

from __future__ import annotations

from llvmlite import ir

from ...kernels import Loop
from ..code import ITEMSIZE, Code, Emitted
from ..registers import REGISTER_BYTES
from .accumulators import kind_of
from .loop_form import simplest
from .loop_tiles import TILE, TileWriter, reads_across
from .plan import AT_ELEMENT, CHEAP, MODERATE, Plan, register_bytes
from .writer import LoopWriter

#: Nanoseconds below which work is not worth sharing: such loops have one unit, and bounds known to the optimiser.
SHARED_COST = 8000.0
#: Bytes a core moves in a nanosecond: of arrays that stay in its caches, and of larger ones.
NEAR_RATE, FAR_RATE, NEAR_BYTES = 60.0, 30.0, 1 << 20
#: How much longer arithmetic takes with half as long vectors: measured for the gates of an LSTM on a Zen 3.
NARROW = 3.0
#: Vectors as which a row is written out one by one, so that values and sums of columns stay in registers.
WRITTEN_OUT = 8


def supports(loop: Loop) -> bool:
    """Whether every dtype in the loop has a native form: all but complex ones have."""
    dtypes = [access.dtype for access in loop.reads] + [step.dtype for step in loop.steps]
    return all([dtype in ITEMSIZE for dtype in (*dtypes, *(write.access.dtype for write in loop.writes))])


def emit(module: ir.Module, name: str, loop: Loop) -> Emitted:
    """Write the function `name` for a loop into `module`."""
    plan = Plan(simplest(loop))
    cost = _cost(plan)
    shared = cost >= SHARED_COST and plan.rows * plan.columns > 0 and _dense_columns(plan)
    width = _width(plan)
    code = Code(module, name)
    across = reads_across(plan)
    if across:
        writer: LoopWriter = TileWriter(code, plan, min(width, TILE), shared, across)
    else:
        writer = LoopWriter(code, plan, width, _vectors(plan, width), shared)
    # What is written once for the only row may be what the row's parts read.
    shared = shared and writer.units() > 1 and not (writer.by_elements and plan.row_writes)
    writer.shared = shared
    writer.write()
    return Emitted(
        name,
        units=writer.units() if shared else 1,
        cost=cost,
        grain=max(1, 1024 // width) * width if shared and writer.by_elements else 1,
        scratch=writer.scratch,
        partials=_partials(plan) if shared else (),
    )


def _width(plan: Plan) -> int:
    """Lanes: a register's of the size most computed with, or several registers' where little is done to each."""
    loop = plan.loop
    size = loop.outer[-1] if plan.by_rows else loop.inner[-1] if loop.inner else 1
    computed = [step for one in plan.passes for step in one.steps if plan.level[step] == AT_ELEMENT]
    sizes = [register_bytes(loop.steps[step].dtype) for step in computed if loop.steps[step].dtype != "bool"]
    wide = sum([count == 8 for count in sizes])
    itemsize = 8 if 2 * wide > len(sizes) else min(4, max(sizes, default=1))
    lanes = REGISTER_BYTES // itemsize
    reduces = any([one.reductions for one in plan.passes]) or plan.total_writes
    if not plan.expensive():
        lanes *= 4 if plan.by_rows else 2 if reduces else 1
    while lanes > 1 and lanes // 2 >= size:
        lanes //= 2
    return lanes


def _vectors(plan: Plan, width: int) -> int:
    """As how many vectors a row is written out; 0 for a loop."""
    if plan.by_rows or len(plan.loop.inner) != 1 or not plan.loop.outer:
        return 0
    count = -(-plan.loop.inner[0] // width)
    again = len(plan.passes) > 1 or plan.column_writes
    return count if count <= (WRITTEN_OUT if again else 1) else 0


def _dense_columns(plan: Plan) -> bool:
    """Whether sums over rows fill their memory without gaps, as the results of several parts must."""
    loop = plan.loop
    for number in plan.column_writes:
        expected = 1
        for stride, size in sorted(zip(loop.writes[number].access.strides[len(loop.outer) :], loop.inner)):
            if stride != expected:
                return False
            expected *= size
    return True


def _partials(plan: Plan) -> tuple[tuple[int, int, str], ...]:
    loop = plan.loop
    found = []
    for number in (*plan.total_writes, *plan.column_writes):
        write = loop.writes[number]
        count = plan.columns if number in plan.column_writes else 1
        kind = kind_of(loop.steps[write.step].op)
        found.append((len(loop.reads) + number, count * ITEMSIZE[write.access.dtype], kind))
    return tuple(sorted(found))


def _cost(plan: Plan) -> float:
    """Nanoseconds on one thread, roughly: arithmetic at every element, and memory at what a core can move."""
    loop = plan.loop
    elements = plan.rows * plan.columns
    arithmetic = 0.0
    for one in plan.passes:
        for step in one.steps:
            op = loop.steps[step].op
            arithmetic += 0.01 if op in CHEAP else 0.15 if op in MODERATE else 0.35
    arithmetic *= NARROW if REGISTER_BYTES < 64 else 1.0
    moved = [access for access in loop.reads if any(access.strides)] + [
        loop.writes[number].access for number in plan.element_writes
    ]
    nbytes = elements * sum([ITEMSIZE[access.dtype] for access in moved])
    rate = NEAR_RATE if nbytes < NEAR_BYTES else FAR_RATE
    reductions = sum([len(one.reductions) for one in plan.passes])
    return elements * arithmetic + nbytes / rate + plan.rows * (0.5 + reductions)
