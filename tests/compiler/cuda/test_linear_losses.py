"""Linear layers with a cross-entropy over many classes, compiled for the CUDA target, in Triton's interpreter."""

from __future__ import annotations

from typing import Any, Callable, Iterator

import numpy as np
import pytest

import pullback as pb
from pullback import nn, targets
from pullback.compiler.passes import linear_cross_entropy
from pullback.compiler.tracing import kernels
from pullback.errors import NumericalInstabilityError
from pullback.targets.custom_kernels import CrossEntropy, Scatter
from pullback.targets.kernels import Product

from .interpreted import torch

_ROWS, _WIDTH, _CLASSES = (2, 5), 6, 37
_AT_ONCE = 4  # rows: chunks of 4, 4 and 2


@pytest.fixture(autouse=True)
def _on_the_target(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(targets._MODULES, "torch:cpu", "cuda.target")
    monkeypatch.setattr(kernels, "_MANY_CLASSES", _CLASSES)
    monkeypatch.setattr(linear_cross_entropy, "CHUNK_BYTES", _AT_ONCE * _CLASSES * 8)
    monkeypatch.setattr(linear_cross_entropy, "MULTIPLE", 1)
    with np.errstate(all="ignore"):
        yield


def numbers(*shape: int, dtype: str = "float64", grad: bool = True, seed: int = 0) -> Any:
    array = np.random.default_rng([seed, *shape]).standard_normal(shape)
    return pb.asarray(torch.from_numpy(array).to(getattr(torch, dtype))).set_requires_grad(grad)


def labels() -> Any:
    made = np.random.default_rng(5).integers(0, _CLASSES, _ROWS)
    made[1, 2] = -100
    return pb.asarray(torch.from_numpy(made))


def array(value: Any) -> np.ndarray:
    return np.asarray(value.detach().tolist(), np.float64)


def chunks(step: Any) -> int:
    """How many chunks of rows a compiled function's losses have."""
    return sum(use.times for use in step.kernels if isinstance(use.kernel, CrossEntropy))


def checked(function: Callable[..., Any], *args: Any, joined: int = 3, tolerance: float = 1e-12) -> Any:
    """A compiled function that gives what the function gives, with a loss in so many chunks."""
    step = pb.compile(function)
    for got, expected in zip(step(*args), function(*args)):
        np.testing.assert_allclose(array(got), array(expected), rtol=tolerance, atol=tolerance)
    assert chunks(step) == joined
    return step


def flat(logits: Any) -> Any:
    return logits.reshape(-1, _CLASSES)


SPELLINGS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "linear": lambda h, w, b: flat(pb.linear(h, w)),
    "linear with bias": lambda h, w, b: flat(pb.linear(h, w, b)),
    "operators": lambda h, w, b: flat(h @ w.T + b),
    "rows first": lambda h, w, b: h.reshape(-1, _WIDTH) @ w.T,
    "turned": lambda h, w, b: h.reshape(-1, _WIDTH) @ (w.T * 1.5) + b,
}
OPTIONS: dict[str, dict[str, Any]] = {
    "sum": {"reduction": "sum"}, "ignored": {"ignore_index": 3}, "smoothed": {"label_smoothing": 0.2},
    "weighted": {"weight": True}, "both": {"weight": True, "label_smoothing": 0.1, "reduction": "sum"},
}  # fmt: skip


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_losses_and_gradients_are_those_of_the_eager_function(spelling: str) -> None:
    _check(spelling, {})


@pytest.mark.parametrize("options", OPTIONS)
def test_every_option_of_the_loss(options: str) -> None:
    _check("linear with bias", OPTIONS[options])


def _check(spelling: str, options: dict[str, Any]) -> None:
    h, w, b = numbers(*_ROWS, _WIDTH), numbers(_CLASSES, _WIDTH), numbers(_CLASSES)
    given = dict(options)
    if "weight" in given:
        given["weight"] = pb.asarray(torch.rand(_CLASSES, dtype=torch.float64))
    y = labels()

    def step(h: Any, w: Any, b: Any) -> list[Any]:
        loss = 3 * pb.cross_entropy(SPELLINGS[spelling](h, w, b), y.reshape(-1), **given)
        grads = pb.backward(loss)
        return [loss, *[grads[one] for one in (h, w, b) if one in grads]]

    if given.get("ignore_index") == 3:  # then -100 is no class, and an error
        with pytest.raises(IndexError):
            pb.compile(step)(h, w, b)[0].item()
        y = pb.asarray(torch.from_numpy(np.where(y.numpy() < 0, 3, y.numpy())))
    checked(step, h, w, b)


def test_losses_of_single_rows_with_weights_of_their_own() -> None:
    h, w, y, own = numbers(*_ROWS, _WIDTH), numbers(_CLASSES, _WIDTH), labels(), numbers(10, grad=False)

    def step(h: Any, w: Any) -> list[Any]:
        losses = pb.cross_entropy(flat(pb.linear(h, w)), y.reshape(-1), reduction="none")
        grads = pb.backward((losses * own).sum())
        return [losses, grads[h], grads[w]]

    checked(step, h, w)


@pytest.mark.parametrize("frozen", ["h", "w"])
def test_what_is_frozen_gets_no_product(frozen: str) -> None:
    h, w, y = numbers(*_ROWS, _WIDTH, grad=frozen != "h"), numbers(_CLASSES, _WIDTH, grad=frozen != "w"), labels()

    def step(h: Any, w: Any) -> list[Any]:
        loss = pb.cross_entropy(flat(pb.linear(h, w)), y.reshape(-1))
        return [loss, pb.backward(loss)[w if frozen == "h" else h]]

    compiled = checked(step, h, w)
    assert sum(use.times for use in compiled.kernels if isinstance(use.kernel, Product)) == 6


def test_a_loss_alone_has_neither_logits_nor_gradients() -> None:
    h, w, y = numbers(*_ROWS, _WIDTH, grad=False), numbers(_CLASSES, _WIDTH, grad=False), labels()
    step = checked(lambda h, w: [pb.cross_entropy(flat(pb.linear(h, w)), y.reshape(-1))], h, w)
    assert sum(use.times for use in step.kernels if isinstance(use.kernel, Product)) == 3
    with pb.no_grad():
        checked(lambda h, w: [pb.cross_entropy(flat(pb.linear(h, w)), y.reshape(-1))], h, w)


def test_what_is_needed_whole_is_made_whole() -> None:
    h, w, y = numbers(*_ROWS, _WIDTH), numbers(_CLASSES, _WIDTH), labels()
    along = numbers(_CLASSES, _WIDTH, grad=False, seed=3)

    def with_logits(h: Any, w: Any) -> list[Any]:
        logits = flat(pb.linear(h, w))
        loss = pb.cross_entropy(logits, y.reshape(-1))
        return [loss, logits.detach(), pb.backward(loss)[w]]

    def of_the_loss(h: Any, w: Any) -> list[Any]:
        loss = pb.cross_entropy(flat(pb.linear(h, w)), y.reshape(-1))
        return [loss, pb.backward(pb.exp(loss))[w]]

    def second_order(h: Any, w: Any) -> list[Any]:
        loss = lambda w: pb.cross_entropy(flat(pb.linear(h.detach(), w)), y.reshape(-1))
        return [*pb.hvp(loss, (w.detach(),), (along,))]

    for function in (with_logits, of_the_loss, second_order):
        checked(function, h, w, joined=0)


def test_a_gradient_of_which_nothing_is_read() -> None:
    h, w, y = numbers(*_ROWS, _WIDTH), numbers(_CLASSES, _WIDTH), labels()

    def step(h: Any, w: Any) -> list[Any]:
        of = lambda h, w: pb.cross_entropy(flat(pb.linear(h, w)), y.reshape(-1))
        loss, (of_h, of_w) = pb.value_and_grad(of, argnums=(0, 1))(h.detach(), w.detach())
        return [loss, of_h, of_w[:, :0]]

    checked(step, h, w)


def test_a_loss_that_is_used_twice() -> None:
    h, w, y = numbers(*_ROWS, _WIDTH), numbers(_CLASSES, _WIDTH), labels()

    def step(h: Any, w: Any) -> list[Any]:
        loss = pb.cross_entropy(flat(pb.linear(h, w)), y.reshape(-1))
        total = loss * 2.0 + loss
        grads = pb.backward(total)
        return [loss, total, grads[h], grads[w]]

    checked(step, h, w)


def test_two_batches_of_one_step() -> None:
    h, w, y = numbers(*_ROWS, _WIDTH), numbers(_CLASSES, _WIDTH), labels()

    def step(h: Any, w: Any) -> list[Any]:
        losses = [pb.cross_entropy(pb.linear(part, w), target) for part, target in zip(h, y)]
        grads = pb.backward((losses[0] + losses[1]) / 2)
        return [*losses, grads[h], grads[w]]

    checked(step, h, w, joined=4)


def test_one_chunk_of_logits_is_in_memory_at_a_time() -> None:
    h, w, b = numbers(60, _WIDTH), numbers(_CLASSES, _WIDTH), numbers(_CLASSES)
    y = pb.asarray(torch.zeros(60, dtype=torch.int64))

    def step(h: Any, w: Any, b: Any) -> list[Any]:
        loss = pb.cross_entropy(pb.linear(h, w, b), y)
        grads = pb.backward(loss)
        return [loss, grads[h], grads[w], grads[b]]

    compiled = checked(step, h, w, b, joined=15)
    chunk, of_weight, of_rows = 8 * _AT_ONCE * _CLASSES, 8 * _CLASSES * _WIDTH, 8 * 60 * _WIDTH
    assert compiled.memory["arena"] < 2 * chunk + of_weight + of_rows + 4 * 8 * 60 < 8 * 60 * _CLASSES


class _Model(nn.Module):
    """Words to the words that follow, with one table for both."""

    def __init__(self, is_tied: bool, dtype: str) -> None:
        super().__init__()
        self.table = nn.Parameter(numbers(_CLASSES, _WIDTH, dtype=dtype).detach() * 0.3)
        self.norm = nn.Parameter(numbers(_WIDTH, dtype=dtype, seed=1).detach())
        self.head = self.table if is_tied else nn.Parameter(numbers(_CLASSES, _WIDTH, dtype=dtype, seed=2).detach())

    def forward(self, words: Any) -> Any:
        return pb.linear(pb.tanh(pb.embedding(words, self.table) * self.norm), self.head)


@pytest.mark.parametrize("is_tied", [True, False])
def test_training_steps_are_those_of_the_eager_model(is_tied: bool) -> None:
    words = pb.asarray(torch.from_numpy(np.random.default_rng(7).integers(0, _CLASSES, _ROWS)))
    y = labels()

    def trained(compile: bool) -> tuple[list[float], Any, Any]:
        model = _Model(is_tied, "float64")
        optimizer = pb.optim.AdamW(model.parameters(), lr=0.05)

        def step(words: Any, y: Any) -> Any:
            loss = pb.cross_entropy(flat(model(words)), y.reshape(-1))
            optimizer.step(pb.backward(loss))
            return loss

        run = pb.compile(step) if compile else step
        return [run(words, y).item() for _ in range(4)], model, run

    ours, model, step = trained(True)
    theirs, eager, _ = trained(False)
    assert chunks(step) == 3
    assert any(use.kernel.onto for use in step.kernels if isinstance(use.kernel, Scatter)) is is_tied
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    np.testing.assert_allclose(array(model.table), array(eager.table), rtol=1e-10, atol=1e-12)
    assert ours[-1] < ours[0]


@pytest.mark.filterwarnings("ignore:All-NaN slice encountered")  # of the interpreter
def test_an_alarm_changes_nothing_and_names_the_line() -> None:
    h, w, y = numbers(*_ROWS, _WIDTH, dtype="float32"), numbers(_CLASSES, _WIDTH, dtype="float32"), labels()
    optimizer = pb.optim.SGD([w], 0.1, momentum=0.9)

    @pb.compile
    def step(h: Any) -> Any:
        logits = flat(pb.linear(h, w))
        loss = pb.cross_entropy(logits, y.reshape(-1))
        optimizer.step(pb.backward(loss))
        return loss

    step(h)
    assert chunks(step) > 1
    before = w.tolist()
    bad = h.detach() * 1.0
    with pb.no_grad():
        bad[1, 4, 0] = np.nan
    with pytest.raises(NumericalInstabilityError, match=r"test_linear_losses\.py"):
        step(bad).item()
    assert w.tolist() == before
    step(h)
    assert np.isfinite(w.tolist()).all() and w.tolist() != before


def test_a_class_that_there_is_not_is_the_eager_error() -> None:
    h, w = numbers(*_ROWS, _WIDTH), numbers(_CLASSES, _WIDTH)

    def step(h: Any, y: Any) -> Any:
        loss = pb.cross_entropy(flat(pb.linear(h, w)), y.reshape(-1))
        return [loss, pb.backward(loss)[w]]

    y = labels()
    compiled = checked(step, h, y)
    wrong = pb.asarray(torch.full(_ROWS, _CLASSES))
    for function in (step, compiled):
        with pytest.raises(IndexError):
            function(h, wrong)[0].item()  # what is wrong is heard of when something is read


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_is_no_worse_than_whole_logits(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    h, w, b, y = numbers(*_ROWS, _WIDTH), numbers(_CLASSES, _WIDTH), numbers(_CLASSES), labels()

    def step(h: Any, w: Any, b: Any) -> list[Any]:
        loss = pb.cross_entropy(flat(pb.linear(h, w, b)), y.reshape(-1))
        grads = pb.backward(loss)
        return [loss, grads[h], grads[w], grads[b]]

    narrow = [one.detach().astype(dtype).set_requires_grad(True) for one in (h, w, b)]
    exact = step(*[one.detach().astype("float64").set_requires_grad(True) for one in narrow])
    monkeypatch.setattr(linear_cross_entropy, "CHUNK_BYTES", _AT_ONCE * _CLASSES * 2)
    compiled = pb.compile(step)
    ours = compiled(*narrow)
    assert chunks(compiled) == 3
    assert any(use.kernel.wide == "float32" for use in compiled.kernels if isinstance(use.kernel, Product))
    for one, theirs, true in zip(ours, step(*narrow), exact):
        assert one.dtype == theirs.dtype
        error, of_whole = (np.linalg.norm(array(x) - array(true)) for x in (one, theirs))
        assert error <= (2.5 if dtype == "bfloat16" else 1.1) * of_whole  # the interpreter cuts bfloat16 off


def test_autocast_multiplies_in_half_precision() -> None:
    shapes = ((*_ROWS, _WIDTH), (_CLASSES, _WIDTH), (_CLASSES,))
    h, w, b = (numbers(*shape, dtype="float32") for shape in shapes)
    y = labels()

    def step(h: Any, w: Any, b: Any) -> list[Any]:
        with pb.autocast("bfloat16"):
            loss = pb.cross_entropy(flat(pb.linear(h, w, b)), y.reshape(-1))
        grads = pb.backward(loss)
        return [loss, grads[h], grads[w], grads[b]]

    checked(step, h, w, b, joined=1, tolerance=2e-2)
