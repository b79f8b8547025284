"""A cross-entropy and the product that makes its logits are one instruction wherever nothing else needs the logits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.compiler.passes import linear_cross_entropy
from pullback.compiler.passes.dead_code import without_dead_code
from pullback.compiler.passes.joined_losses import with_joined_losses
from pullback.compiler.program import Instruction, Program, Value

from ..programs import Builder, assert_same_meaning

_ROWS, _WIDTH, _CLASSES = 6, 3, 7


@pytest.fixture(autouse=True, params=[1, 4, 100])
def _rows_at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_cross_entropy, "CHUNK_BYTES", request.param * _CLASSES * 8)
    monkeypatch.setattr(linear_cross_entropy, "MULTIPLE", 1)


class _Step(Builder):
    """A linear layer, its loss and its gradient, as they are traced."""

    def __init__(
        self, axes: int = 3, bias: bool = False, turned: bool = False, weight: bool = False, reduction: str = "mean",
        smoothing: float = 0.0, dtype: Any = np.float64, logits_dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.axes, self.turned, self.dtype = axes, turned, np.dtype(dtype)
        self.shape = (2, 3, _WIDTH)[3 - axes :] if axes == 3 else (_ROWS, _WIDTH)
        self.x = self.numbers(*self.shape)
        self.matrix = self.numbers(*((_WIDTH, _CLASSES) if turned else (_CLASSES, _WIDTH)))
        self.bias = self.numbers(_CLASSES) if bias else None
        self.weight = self.input(self.random.uniform(0.5, 2, _CLASSES)) if weight else None
        target = self.random.integers(0, _CLASSES, _ROWS)
        target[2] = -100
        self.target = self.input(target)
        other = self.matrix if turned else self.make("permute_dims", self.matrix, (1, 0))
        self.product = self.logits = self.make("matmul", self.x, other)
        if self.bias is not None:
            self.logits = self.make("add", self.logits, self.bias)
        if axes == 3:
            self.logits = self.make("reshape", self.logits, (_ROWS, _CLASSES))
        if logits_dtype is not None:
            self.logits = self.make("astype", self.logits, np.dtype(logits_dtype))
        self.options = (-100, reduction, smoothing)
        args = (self.logits, self.target, self.weight, *self.options)
        self.loss, self.lse, self.normalizer = self.make_all("cross_entropy", *args)

    def numbers(self, *shape: int) -> Value:
        return self.input(self.random.standard_normal(shape).astype(self.dtype))

    def gradient(self, g: Value | None = None) -> Value:
        """The gradient of the logits."""
        g = self.input(self.random.standard_normal(self.loss.shape).astype(self.loss.dtype)) if g is None else g
        args = (g, self.logits, self.target, self.weight, self.lse, self.normalizer, *self.options)
        return self.make("cross_entropy_gradient", *args)

    def gradients(self, slope: Value) -> list[Value]:
        """Those of x, of the matrix and of the bias."""
        slope = slope if slope.dtype == self.dtype else self.make("astype", slope, self.dtype)
        rows = self.make("reshape", slope, (*self.shape[:-1], _CLASSES)) if self.axes == 3 else slope
        flat = self.make("reshape", self.x, (_ROWS, _WIDTH)) if self.axes == 3 else self.x
        turn = lambda value: self.make("permute_dims", value, (1, 0))
        made = [self.make("matmul", rows, turn(self.matrix) if self.turned else self.matrix)]
        made.append(self.make("matmul", *((turn(flat), slope) if self.turned else (turn(slope), flat))))
        return made if self.bias is None else [*made, self.make("sum", rows, (-3, -2)[3 - self.axes :], False)]


def ops(program: Program) -> list[str]:
    return [one.op for one in program.instructions]


def is_joined(program: Program) -> bool:
    found = ops(program)
    assert "linear_cross_entropy" in found or "cross_entropy" in found
    assert not {"linear_cross_entropy", "cross_entropy"} <= set(found)
    return "linear_cross_entropy" in found


@pytest.mark.parametrize("axes", [2, 3])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("form", ["", "bias turned", "weight", "bias weight smooth", "turned smooth"])
def test_a_loss_and_its_gradients_are_one_instruction(axes: int, reduction: str, form: str) -> None:
    b = _Step(axes, "bias" in form, "turned" in form, "weight" in form, reduction, 0.2 * ("smooth" in form))
    made = b.gradients(b.gradient())
    program = b.program([b.loss, *made, b.normalizer])
    joined = with_joined_losses(program)
    assert is_joined(joined) and not {"matmul", "cross_entropy_gradient"} & set(ops(joined))
    assert not any(value.size == _ROWS * _CLASSES for one in joined.instructions for value in one.results)
    assert_same_meaning(program, joined, b.given())
    alone = b.program([b.loss])
    assert is_joined(with_joined_losses(alone))
    assert_same_meaning(alone, with_joined_losses(alone), b.given())


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_gradients_that_nobody_needs_are_not_made(kept: int) -> None:
    b = _Step(bias=True)
    made = b.gradients(b.gradient())
    joined = with_joined_losses(without_dead_code(b.program([made[kept]])))
    (one,) = [one for one in joined.instructions if one.op == "linear_cross_entropy"]
    assert len(one.results) == 2
    assert_same_meaning(b.program([made[kept]]), joined, b.given())


def test_rows_that_do_not_count_at_all_have_a_mean_of_zero() -> None:
    for form in (False, True):
        b = _Step(weight=form)
        b.arrays[b.target][...] = -100
        made = b.gradients(b.gradient())
        program = b.program([b.loss, *made])
        assert is_joined(with_joined_losses(program))
        assert_same_meaning(program, with_joined_losses(program), b.given())


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("logits", ["float32", None])
def test_products_of_half_precision_with_a_loss_in_single_precision(dtype: str, logits: str | None) -> None:
    kind = pytest.importorskip("ml_dtypes").bfloat16 if dtype == "bfloat16" else dtype
    b = _Step(bias=True, dtype=kind, logits_dtype=logits)
    program = b.program([b.loss, *b.gradients(b.gradient())])
    assert is_joined(with_joined_losses(program))
    assert_same_meaning(program, with_joined_losses(program), b.given())


def test_a_cotangent_that_comes_later_is_made_earlier() -> None:
    b = _Step()
    g = b.input(np.asarray(0.3))
    twice = b.make("add", b.make("square", b.loss), 1.0)  # of the loss, and before the cotangent
    g = b.make("multiply", b.make("square", g), 5.0)
    program = b.program([twice, *b.gradients(b.gradient(g)), b.loss])
    assert is_joined(with_joined_losses(program))
    assert_same_meaning(program, with_joined_losses(program), b.given())


def test_several_losses_of_a_program() -> None:
    b = _Step()
    made = [b.loss, *b.gradients(b.gradient())]
    other = b.make("matmul", b.make("reshape", b.make("square", b.x), (_ROWS, _WIDTH)), b.input(np.ones((_WIDTH, 5))))
    loss, *_ = b.make_all("cross_entropy", other, b.input(np.arange(_ROWS) % 5), None, -100, "sum", 0.0)
    program = b.program([*made, loss])
    joined = with_joined_losses(program)
    assert ops(joined).count("linear_cross_entropy") == 2 and "cross_entropy" not in ops(joined)
    assert_same_meaning(program, joined, b.given())


def _used_elsewhere(b: _Step, what: str) -> list[Value]:
    """Something of a step that a joined one does not have, and what is made of it."""
    if what == "cotangent":
        return b.gradients(b.gradient(b.make("exp", b.loss)))
    slope = b.gradient()
    made = b.gradients(slope)
    if what in ("logits", "product", "lse"):
        return [*made, getattr(b, what)]
    if what == "square of lse":
        return [*made, b.make("square", b.lse)]
    if what == "square of logits":
        return [*made, b.make("square", b.logits)]
    if what == "gradient":
        return [*made, slope]
    if what == "square of the gradient":
        return [*made, b.make("square", slope)]
    if what == "product of gradients":
        return [*made, b.make("matmul", b.make("permute_dims", slope, (1, 0)), slope)]
    if what == "another target":
        b.target = b.input(np.zeros(_ROWS, np.int64))
        return [*made, *b.gradients(b.gradient())]
    assert what == "sum over classes"
    return [*made, b.make("sum", slope, (-1,), False)]


@pytest.mark.parametrize(
    "what",
    ["logits", "product", "lse", "square of lse", "square of logits", "gradient", "square of the gradient",
     "product of gradients", "another target", "sum over classes", "cotangent"],
)  # fmt: skip
def test_what_is_needed_whole_stays(what: str) -> None:
    b = _Step(bias=True)
    program = b.program([b.loss, *_used_elsewhere(b, what)])
    assert with_joined_losses(program) is program


def test_what_is_rounded_on_the_way_stays() -> None:
    b = _Step(dtype=np.float32, logits_dtype=np.float16)
    program = b.program([b.loss])
    assert with_joined_losses(program) is program


def test_sums_in_single_precision_of_what_is_half_elsewhere_stay() -> None:
    b = _Step(axes=2, dtype=np.float16, logits_dtype=np.float32)
    slope = b.gradient()
    program = b.program([b.loss, *b.gradients(slope), b.make("sum", slope, (-2,), False)])
    assert with_joined_losses(program) is program


def test_an_operation_of_the_users_own_keeps_its_place() -> None:
    b = _Step()
    g = Value((), np.float64)
    b.instructions.append(Instruction("call_custom", (b.make("square", b.x),), (g,)))
    b.arrays[g] = np.asarray(2.0)
    program = b.program([b.loss, *b.gradients(b.gradient(g))])
    assert with_joined_losses(program) is program


def test_chunks_are_as_large_as_they_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_cross_entropy, "CHUNK_BYTES", 1 << 28)
    monkeypatch.setattr(linear_cross_entropy, "MULTIPLE", 128)
    rows = linear_cross_entropy.rows_at_once
    assert rows(8192, 50304, np.dtype(np.float16)) == 2048
    assert rows(8192, 50304, np.dtype(np.float32)) == 1280  # of at most 1170, in whole tiles
    assert rows(1000, 1024, np.dtype(np.float32)) == 1000
    assert rows(3, 1 << 27, np.dtype(np.float32)) == rows(3, 1 << 30, np.dtype(np.float32)) == 1
    assert rows(200, 1 << 20, np.dtype(np.float32)) == 50
