"""NumPy arrays from outside that change: as operands, masks, indices, and read as values."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Callable, Iterator

import numpy as np

import pullback as pb

from ..harness import X, attempt, case, changes


def pair() -> Any:
    return np.array([1.0, 2.0], np.float32)


def fill(*values: Any) -> Callable[[Any], None]:
    """A change: an array gets these values."""
    return lambda a: np.copyto(a, np.array(values, a.dtype), casting="unsafe")


CHANGED = fill(5.0, -6.0), fill(1.0, 2.0)

# -- operands ------------------------------------------------------------------------------------

changes("array_as_an_operand", pair, lambda a: lambda x: x * a, *CHANGED)
changes("array_as_an_operand_on_the_left", pair, lambda a: lambda x: a - x, *CHANGED)
changes("array_in_a_function", pair, lambda a: lambda x: pb.maximum(x, a), *CHANGED)
changes("array_multiplied_first", pair, lambda a: lambda x: (a * 2) * x, *CHANGED)
changes("array_through_numpys_functions", pair, lambda a: lambda x: x * np.sqrt(np.abs(a)), *CHANGED)
changes("array_as_a_tensor", pair, lambda a: lambda x: x * pb.tensor(a), *CHANGED)
changes("array_as_a_borrowed_tensor", pair, lambda a: lambda x: x * pb.asarray(a), *CHANGED)
changes("array_stacked", pair, lambda a: lambda x: x * np.stack([a, a + 1]), *CHANGED)
changes("array_viewed", pair, lambda a: lambda x: x * a[::-1], *CHANGED)
changes("array_reshaped", pair, lambda a: lambda x: x * a.reshape(2, 1), *CHANGED)
changes("array_converted", pair, lambda a: lambda x: x * a.astype(np.float64), *CHANGED)
changes("array_in_where", pair, lambda a: lambda x: pb.where(a > 0, x, -x), *CHANGED)
changes("array_in_numpys_where", pair, lambda a: lambda x: x * np.where(a > 0, 1.0, -1.0).astype(np.float32), *CHANGED)
changes("array_item_as_a_factor", pair, lambda a: lambda x: a[0] * x, *CHANGED)
changes("array_of_one_number", lambda: np.array(2.0, np.float32), lambda a: lambda x: x * a, fill(3.0), fill(2.0))
changes("array_broadcast", lambda: np.ones((3, 1), np.float32), lambda a: lambda x: x * a, lambda a: a.fill(2.0))
changes(
    "array_in_a_matrix_product", lambda: np.eye(2, dtype=np.float32), lambda a: lambda x: a @ x, lambda a: a.fill(2.0)
)
changes("array_of_integers", lambda: np.array([1, 2]), lambda a: lambda x: x * a, fill(5, 6))
changes(
    "array_in_a_list",
    lambda: [pair(), pair()],
    lambda c: lambda x: x * c[0] + c[1],
    lambda c: c[1].fill(9.0),
    lambda c: c.reverse(),
)
changes(
    "array_in_an_attribute",
    lambda: SimpleNamespace(a=pair()),
    lambda c: lambda x: x * c.a,
    lambda c: c.a.fill(3.0),
    lambda c: setattr(c, "a", pair()),
)
changes(
    "array_replaced_by_another_shape",
    lambda: [pair()],
    lambda c: lambda x: x * c[0],
    lambda c: c.__setitem__(0, np.ones((3, 2), np.float32)),
)
changes(
    "array_replaced_by_another_dtype",
    lambda: [pair()],
    lambda c: lambda x: x * c[0],
    lambda c: c.__setitem__(0, c[0].astype(np.float64)),
)
changes(
    "array_replaced_by_an_equal_one_that_changes",
    lambda: [pair()],
    lambda c: lambda x: x * c[0],
    lambda c: c.__setitem__(0, pair()),
    lambda c: c[0].fill(7.0),
)

# -- masks and indices ---------------------------------------------------------------------------

changes(
    "array_as_a_mask",
    lambda: np.array([True, False]),
    lambda m: lambda x: x[m],
    fill(True, True),
    fill(False, True),
    fill(False, False),
)
changes("array_as_a_mask_from_a_comparison", pair, lambda a: lambda x: x[a > 0], *CHANGED)
changes("array_as_an_index", lambda: np.array([0, 1]), lambda i: lambda x: x[i], fill(1, 1), fill(0, 1))
changes("array_as_indices_of_take", lambda: np.array([0, 1]), lambda i: lambda x: pb.take(x, i, axis=0), fill(1, 0))
changes("array_item_as_an_index", lambda: np.array([0, 1]), lambda i: lambda x: x[i[0]], fill(1, 1), fill(0, 0))
changes("array_item_as_a_slice", lambda: np.array([1, 2]), lambda i: lambda x: x[: i[0]], fill(2, 2), fill(0, 0))
changes(
    "array_of_positions_that_are_written",
    lambda: np.array([0]),
    lambda i: lambda x: pb.put_along_axis(x, i, 9.0, axis=0),
    fill(1),
)
changes(
    "array_of_nonzero_places", lambda: np.array([1.0, 0.0]), lambda a: lambda x: x[np.nonzero(a)[0]], fill(1.0, 1.0)
)
changes(
    "array_of_labels", lambda: np.array([0, 1]), lambda y: lambda x: pb.cross_entropy(pb.stack([x, -x]), y), fill(1, 1)
)

# -- values --------------------------------------------------------------------------------------

changes("array_value_by_float", pair, lambda a: lambda x: x * float(a[0]), *CHANGED)
changes("array_value_by_item", pair, lambda a: lambda x: x * a[1].item(), *CHANGED)
changes("array_value_in_a_choice", pair, lambda a: lambda x: x if a.sum() > 0 else -x, *CHANGED)
changes("array_value_by_numpys_sum", pair, lambda a: lambda x: x * float(np.sum(a)), *CHANGED)
changes("array_value_by_max", pair, lambda a: lambda x: x * int(a.max()), *CHANGED)
changes("array_value_by_tolist", pair, lambda a: lambda x: sum(x * n for n in a.tolist()), *CHANGED)
changes("array_value_by_iteration", pair, lambda a: lambda x: sum(x * float(n) for n in a), *CHANGED)
changes("array_value_by_any", pair, lambda a: lambda x: x if (a < 0).any() else -x, *CHANGED)
changes("array_value_by_array_equal", pair, lambda a: lambda x: x if np.array_equal(a, [1.0, 2.0]) else -x, *CHANGED)
changes("array_value_by_allclose", pair, lambda a: lambda x: x if np.allclose(a, 1.5, atol=1.0) else -x, *CHANGED)
changes("array_value_by_tobytes", pair, lambda a: lambda x: x * len(set(a.tobytes())), fill(0.0, 0.0))
changes("array_value_by_argmax", pair, lambda a: lambda x: x[int(np.argmax(a))], *CHANGED)
changes(
    "array_value_in_a_shape",
    lambda: np.array([2, 1]),
    lambda a: lambda x: pb.broadcast_to(x, (*a.tolist(), 2)),
    fill(1, 3),
)
changes(
    "array_value_in_a_range", lambda: np.array([2, 0]), lambda a: lambda x: sum((x for _ in range(a[0])), x), fill(4, 0)
)
changes("array_value_formatted", pair, lambda a: lambda x: x * len(f"{a[0]:.0f}"), fill(1000.0, 0.0))
changes(
    "array_value_as_a_key", lambda: np.array([0, 1]), lambda a: lambda x: x * {0: 2.0, 1: 3.0}[int(a[0])], fill(1, 1)
)
changes(
    "array_value_by_a_vectorized_function",
    pair,
    lambda a: lambda x: x * float(np.vectorize(lambda n: n + 1)(a)[0]),
    *CHANGED,
)
changes("array_value_by_einsum", pair, lambda a: lambda x: x * float(np.einsum("i,i->", a, a)), *CHANGED)
changes(
    "array_scalar_in_a_list",
    lambda: [np.float32(2.0)],
    lambda c: lambda x: x * c[0],
    lambda c: c.__setitem__(0, np.float32(3.0)),
    lambda c: c.__setitem__(0, np.float64(3.0)),
)


# -- memory --------------------------------------------------------------------------------------


@case
def array_resized(compiled: Any) -> Iterator[Any]:
    a = np.ones(2, np.float32)
    f = compiled(lambda x: x.sum() * a)
    yield f(X)
    a.resize(5, refcheck=False)
    yield f(X)
    a.resize(2, refcheck=False)
    yield f(X)


@case
def array_reshaped_in_place(compiled: Any) -> Iterator[Any]:
    a = np.arange(4.0, dtype=np.float32)
    f = compiled(lambda x: x.sum() * a)
    yield f(X)
    a.resize((2, 2), refcheck=False)
    yield f(X)
    a.resize((4,), refcheck=False)
    yield f(X)


@case
def array_whose_base_changes(compiled: Any) -> Iterator[Any]:
    base = np.arange(6.0, dtype=np.float32)
    view = base[1::2][:2]
    f, g = compiled(lambda x: x * view), compiled(lambda x: x * float(view[0]))
    for _ in range(3):
        yield f(X)
        yield g(X)
        base += 1


@case
def array_over_a_bytearray(compiled: Any) -> Iterator[Any]:
    memory = bytearray(np.array([1.0, 2.0], np.float32).tobytes())
    a = np.frombuffer(memory, np.float32)
    f = compiled(lambda x: x * a)
    yield f(X)
    memory[:4] = np.float32(5.0).tobytes()
    yield f(X)


@case
def array_and_a_tensor_that_borrows_it(compiled: Any) -> Iterator[Any]:
    a = pair()
    borrowed = pb.asarray(a)
    f = compiled(lambda x: x * borrowed + a)
    yield f(X)
    a[0] = 5.0
    yield f(X)


@case
def array_with_fields(compiled: Any) -> Iterator[Any]:
    rows = np.array([(1.0, 2), (3.0, 4)], dtype=[("scale", "f4"), ("count", "i8")])
    f = compiled(lambda x: x * rows["scale"] + int(rows["count"][0]))
    yield f(X)
    rows["scale"][0] = 5.0
    yield f(X)
    rows["count"][0] = 7
    yield f(X)
    rows[0] = (1.0, 2)
    yield f(X)


@case
def array_of_objects(compiled: Any) -> Iterator[Any]:
    things = np.array([2.0, [3.0], None], dtype=object)
    f = compiled(lambda x: x * things[0] + things[1][0])
    yield f(X)
    things[0] = 5.0
    yield f(X)
    things[1][0] = 7.0
    yield f(X)


@case
def array_of_strings(compiled: Any) -> Iterator[Any]:
    names = np.array(["relu", "none"])
    f = compiled(lambda x: -x if names[0] == "relu" else x)
    yield f(X)
    names[0] = "tanh"
    yield f(X)


@case
def array_of_two_views_that_overlap(compiled: Any) -> Iterator[Any]:
    base = np.arange(3.0, dtype=np.float32)
    first, second = base[:2], base[1:]
    f = compiled(lambda x: x * first + second)
    yield f(X)
    first[1] = 9.0
    yield f(X)


@case
def array_made_read_only(compiled: Any) -> Iterator[Any]:
    a = pair()

    def run(x: Any) -> Any:
        return x * 2 if a.flags.writeable else x * 3

    f = compiled(run)
    yield f(X)
    a.flags.writeable = False
    yield f(X)


@case
def array_large_as_an_operand(compiled: Any) -> Iterator[Any]:
    a = np.ones((2000, 2), np.float32)
    f = compiled(lambda x: (x * a).sum())
    yield f(X)
    a[1234] = 5.0
    yield f(X)
    a[...] = 1.0
    yield f(X)


@case
def array_large_indexed_by_a_tensor(compiled: Any) -> Iterator[Any]:
    a = np.zeros((2000, 2), np.float32)
    f = compiled(lambda i: pb.asarray(a)[i])
    yield f(pb.tensor([3, 7]))
    a[7] = 1.0
    yield f(pb.tensor([3, 7]))


@case
def array_large_replaced(compiled: Any) -> Iterator[Any]:
    a = np.ones((2000, 2), np.float32)
    f = compiled(lambda x: (x * a).sum())
    yield f(X)
    a = a * 2
    yield f(X)


@case(refused=True)
def array_large_of_which_the_shape_is_read(compiled: Any) -> Iterator[Any]:
    held = [np.ones((2000, 2), np.float32)]
    f = compiled(lambda x: x * len(held[0]) + held[0].shape[1])
    yield f(X)
    held[0] = np.ones((3, 2000), np.float32)
    yield f(X)


@case
def array_memory_mapped(compiled: Any) -> Iterator[Any]:
    a = pair().view(np.memmap)
    f = compiled(lambda x: x * a)
    yield f(X)
    a[0] = 5.0
    yield f(X)


@case
def array_masked(compiled: Any) -> Iterator[Any]:
    a = np.ma.array([1.0, 2.0], mask=[False, True])
    f = compiled(lambda x: x * float(a.sum()))
    yield f(X)
    a.mask = [False, False]
    yield f(X)


@case
def array_broken_then_right(compiled: Any) -> Iterator[Any]:
    held = [np.ones(3, np.float32)]
    f = compiled(lambda x: x * held[0])
    yield attempt(f, X)
    held[0] = pair()
    yield f(X)
    held[0] = np.ones(3, np.float32)
    yield attempt(f, X)


for _name, _read in {
    "summed": lambda a: lambda x: x * float(a.sum()),
    "compared": lambda a: lambda x: x if a.any() else -x,
    "as_a_mask": lambda a: lambda x: x.sum() * np.arange(2000)[a[:, 0] > 0].astype(np.float32),
    "listed": lambda a: lambda x: x * a.ravel().tolist()[1000],
}.items():
    changes(f"array_large_{_name}", lambda: np.zeros((2000, 2)), _read, lambda a: a.fill(1.0), refused=True)
