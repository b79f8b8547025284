"""Every kind of array NumPy can make: refused with the same class of error, or right, eagerly and compiled alike."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

import pullback as pb


class Special(np.ndarray):
    """Somebody's own kind of array."""


def unaligned() -> Any:
    array = np.zeros(25, np.uint8)[1:].view(np.float64)
    array[:] = [1, 2, 3]
    return array


def read_only() -> Any:
    array = np.array([1.0, 2.0, 3.0])
    array.flags.writeable = False
    return array


FIELD = np.dtype({"names": ["a"], "formats": ["f8"], "offsets": [1], "itemsize": 9})
REFUSED: dict[str, Callable[[], Any]] = {
    "object": lambda: np.array([1.0, 2.0, 3.0], object),
    "object of anything": lambda: np.array([None, "text", object()], object),
    "longdouble": lambda: np.array([1, 2, 3], np.longdouble),
    "clongdouble": lambda: np.array([1, 2, 3], np.clongdouble),
    "timedelta64": lambda: np.array([1, 2, 3], "m8[s]"),
    "datetime64": lambda: np.array([1, 2, 3], "M8[s]"),
    "structured": lambda: np.zeros(3, [("a", "f8"), ("b", "i4")]),
    "record": lambda: np.rec.array(np.zeros(3, [("a", "f8")])),
    "string": lambda: np.array(["1", "2", "3"]),
    "bytes": lambda: np.array([b"1", b"2", b"3"]),
    "void": lambda: np.zeros(3, "V4"),
    "masked": lambda: np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]),
    "masked nowhere": lambda: np.ma.array([1.0, 2.0, 3.0]),
    "longdouble scalar": lambda: np.longdouble(2.5),
    "timedelta scalar": lambda: np.timedelta64(1, "s"),
    "structured scalar": lambda: np.zeros(1, [("a", "f8")])[0],
}
if hasattr(np.dtypes, "StringDType"):
    REFUSED["variable string"] = lambda: np.array(["1", "2", "3"], np.dtypes.StringDType())
TAKEN: dict[str, Callable[[], Any]] = {
    "another order of bytes": lambda: np.array([1, 2, 3], ">f8"),
    "integers in another order": lambda: np.array([1, 2, 3], ">i4"),
    "halves in another order": lambda: np.array([1, 2, 3], ">f2"),
    "unaligned": unaligned,
    "field of a structured one": lambda: np.ones(3, FIELD)["a"],
    "read-only": read_only,
    "matrix": lambda: np.array([[1.0, 2.0], [3.0, 4.0]]).view(np.matrix),
    "subclass": lambda: np.array([1.0, 2.0, 3.0]).view(Special),
    "recarray of numbers": lambda: np.array([1.0, 2.0, 3.0]).view(np.recarray),
    "strides of zero": lambda: np.broadcast_to(np.array([1.0, 2.0, 3.0])[:, None], (3, 4)),
    "negative strides": lambda: np.arange(6.0)[::-2],
    "Fortran's order": lambda: np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "no axes": lambda: np.array(2.5),
    "no elements": lambda: np.zeros((0, 3)),
    "33 axes": lambda: np.full((1,) * 32 + (3,), 2.0),
    "64 axes": lambda: np.full((1,) * 64, 2.0),
    "long long": lambda: np.array([1, 2, 3], np.ulonglong),
    "NumPy scalar": lambda: np.float32(2.5),
}


def doubled(x: Any) -> Any:
    return pb.multiply(x, 2.0)


def squares(x: Any) -> Any:
    return pb.sum(pb.square(x))


def overwritten(x: Any, a: Any) -> Any:
    y = x + 0
    y[...] = a
    return y


#: The same thing eagerly and compiled. Each is given the array.
WAYS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "asarray": (lambda a: pb.asarray(a) * 1.0, lambda a: pb.compile(lambda: pb.asarray(a) * 1.0)()),
    "argument": (doubled, lambda a: pb.compile(doubled)(a)),
    "in a tree": (
        lambda a: doubled({"a": [a]}["a"][0]),
        lambda a: pb.compile(lambda t: doubled(t["a"][0]))({"a": [a]}),
    ),
    "of a tensor": (lambda a: doubled(pb.asarray(a)), lambda a: pb.compile(doubled)(pb.asarray(a))),
    "captured": (lambda a: pb.ones(()) + doubled(a), lambda a: pb.compile(lambda x: x + doubled(a))(pb.ones(()))),
    "operand": (lambda a: pb.ones(()) * a, lambda a: pb.compile(lambda x: x * a)(pb.ones(()))),
    "compared": (lambda a: pb.ones(()) < a, lambda a: pb.compile(lambda x: x < a)(pb.ones(()))),
    "written": (
        lambda a: overwritten(pb.zeros(np.shape(a)), a),
        lambda a: pb.compile(lambda x: overwritten(x, a))(pb.zeros(np.shape(a))),
    ),
    "grad": (pb.grad(squares), lambda a: pb.compile(pb.grad(squares))(a)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", REFUSED)
def test_what_no_tensor_holds_is_refused_with_a_typed_error(kind: str, way: str) -> None:
    for run in WAYS[way]:
        if kind.startswith("masked") and way in ("operand", "compared") and run is WAYS[way][0]:
            continue  # what NumPy's masked arrays make of a tensor: tests/tensor
        with pytest.raises((pb.DtypeError, TypeError) if kind.startswith("masked") else pb.DtypeError):
            run(REFUSED[kind]())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", TAKEN)
def test_what_tensors_hold_is_right_eagerly_and_compiled(kind: str, way: str) -> None:
    eager, compiled = WAYS[way]
    try:
        expected = eager(TAKEN[kind]())
    except pb.DtypeError:  # of integers there is no gradient
        assert way == "grad" and np.asarray(TAKEN[kind]()).dtype.kind in "iu"
        with pytest.raises(pb.DtypeError):
            compiled(TAKEN[kind]())
        return
    found = compiled(TAKEN[kind]())
    assert found.shape == expected.shape and found.dtype == expected.dtype
    assert np.array_equal(np.asarray(found), np.asarray(expected))


@pytest.mark.parametrize("kind", REFUSED)
def test_a_program_for_numbers_refuses_what_is_given_later(kind: str) -> None:
    compiled = pb.compile(doubled)
    plain = np.ones(np.shape(REFUSED[kind]()))
    for _ in range(3):
        compiled(plain)
    with pytest.raises(pb.DtypeError):
        compiled(REFUSED[kind]())
    assert np.asarray(compiled(plain)).max(initial=2.0) == 2.0


@pytest.mark.parametrize(
    "kind", [kind for kind in TAKEN if kind not in ("read-only", "strides of zero", "no elements")]
)
def test_what_is_written_to_a_captured_array_is_seen(kind: str) -> None:
    array = TAKEN[kind]()
    if not isinstance(array, np.ndarray):
        return
    compiled = pb.compile(lambda x: x + doubled(array))
    for value in (1, 2, 3, 4):
        array[...] = value
        assert np.unique(np.asarray(compiled(pb.zeros(())))).tolist() == [2.0 * value]


def test_a_memory_map_is_an_array(tmp_path: Any) -> None:
    array = np.memmap(tmp_path / "numbers", np.float32, "w+", shape=(4,))
    compiled = pb.compile(doubled)
    for value in (1, 2, 3):
        array[:] = value
        assert np.asarray(compiled(array)).tolist() == [2.0 * value] * 4
    assert compiled.traces == 1


def test_an_array_of_a_subclass_given_twice_is_one() -> None:
    array = np.array([1.0, 2.0]).view(Special)
    compiled = pb.compile(lambda x, y: x * y)
    assert np.asarray(compiled(array, array)).tolist() == [1, 4]
    assert np.asarray(compiled(array, array + 1)).tolist() == [2, 6]


@pytest.mark.parametrize("x", [2.0, 2.0 + 1.0j])
def test_gradients_by_python_numbers(x):
    """They are tensors: their values are known only when the program runs."""
    compiled = pb.compile(pb.grad(lambda x: abs(x) ** 2))
    for number in (x, 2 * x):
        np.testing.assert_allclose(compiled(number).numpy(), pb.grad(lambda x: abs(x) ** 2)(number))
