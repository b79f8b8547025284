"""A model is trained, and between the steps something is changed at random: compiled it comes out as eagerly."""

from __future__ import annotations

from typing import Any, Callable, Iterator

import numpy as np
import pytest

import pullback as pb

STEPS = 14


class World:
    """A model, an optimizer, a step, and ways to change them, each chosen by a random number."""

    def __init__(self, seed: int, wrap: Callable[[Any], Any]) -> None:
        pb.random.seed(seed)
        self.rng = np.random.default_rng(seed)
        self.model = pb.nn.Sequential(
            pb.nn.Linear(3, 4), pb.nn.LayerNorm(4), pb.nn.Tanh(), pb.nn.Dropout(0.2), pb.nn.Linear(4, 2)
        )
        self.factor = pb.tensor([0.5, -0.5], requires_grad=True)  # not the optimizer's at first
        parameters = list(self.model.parameters())
        optimizers: list[Callable[[], Any]] = [
            lambda: pb.optim.SGD(parameters, 0.05, momentum=0.9),
            lambda: pb.optim.AdamW(parameters, 0.02),
            lambda: pb.optim.SGD(parameters, 0.05),
        ]
        self.optimizer = optimizers[seed % 3]()
        self.plain_step = [self.with_gradients, self.with_zeroed, self.with_none][int(self.rng.integers(3))]
        self.step = wrap(lambda x, y: self.plain_step(x, y))
        self.evaluated = wrap(lambda x: self.model(x).sum())
        self.saved: Any = None
        self.clones: list[pb.Tensor] = []

    # -- steps -------------------------------------------------------------------------------------

    def loss(self, x: Any, y: Any) -> Any:
        return ((self.model(x) * self.factor - y) ** 2).mean()

    def with_gradients(self, x: Any, y: Any) -> Any:
        loss = self.loss(x, y)
        gradients = pb.backward(loss)
        gradients.clip_global_norm(1.0)
        self.optimizer.step(gradients)
        return loss

    def with_zeroed(self, x: Any, y: Any) -> Any:
        self.optimizer.zero_grad()
        loss = self.loss(x, y)
        loss.backward()
        self.optimizer.step()
        return loss

    def with_none(self, x: Any, y: Any) -> Any:
        for parameter in self.model.parameters():
            parameter.grad = None
        loss = self.loss(x, y)
        loss.backward()
        self.optimizer.step()
        return loss

    # -- changes -----------------------------------------------------------------------------------

    def changes(self) -> list[Callable[[], Any]]:
        number = int(self.rng.integers(1 << 30))
        one = list(self.model.parameters())[number % 6]
        group = self.optimizer.param_groups[0]
        return [
            lambda: self.plain_step(*self.batch()),
            lambda: self.model.train(bool(number % 2)),
            lambda: self.model.freeze(("0.*", "1.*", "4.*", "4.bias")[number % 4]),
            lambda: self.model.unfreeze(),
            self.save,
            self.load,
            lambda: group.update(lr=(0.1, 0.01, 0.001)[number % 3]),
            lambda: group.update(weight_decay=(0.0, 0.1)[number % 2]),
            self.add_group,
            lambda: one.data_mut().__imul__(0.9),
            lambda: setattr(one, "grad", None),
            lambda: setattr(one, "grad", pb.ones(one.shape) * 0.1),
            lambda: self.clones.append(one.clone()),
            lambda: self.factor.set_requires_grad(bool(number % 2)),
            lambda: setattr(self.model[3], "p", (0.0, 0.5)[number % 2]),
            lambda: self.model.__setitem__(2, (pb.nn.ReLU(), pb.nn.GELU())[number % 2]),
            lambda: self.factor.requires_grad and self.factor.register_hook(lambda g: g * 0.5),
            self.evaluate,
        ]

    def save(self) -> None:
        self.saved = self.model.state_dict(), self.optimizer.state_dict()

    def load(self) -> None:
        if self.saved is not None:
            self.model.load_state_dict(self.saved[0])
            if len(self.saved[1]["param_groups"]) == len(self.optimizer.param_groups):
                self.optimizer.load_state_dict(self.saved[1])

    def add_group(self) -> None:
        if len(self.optimizer.param_groups) == 1:
            self.optimizer.add_param_group({"params": [self.factor]})

    def evaluate(self) -> None:
        result = self.evaluated(self.batch()[0])
        if result.requires_grad:
            result.backward()

    def batch(self) -> tuple[pb.Tensor, pb.Tensor]:
        x, y = self.rng.standard_normal((5, 3)), self.rng.standard_normal((5, 2))
        return pb.tensor(x.astype(np.float32)), pb.tensor(y.astype(np.float32))

    def run(self) -> Iterator[tuple[str, Any]]:
        """Change, step, and look at everything, some times over."""
        for number in range(STEPS):
            changes = self.changes()
            chosen = int(self.rng.integers(len(changes)))
            changes[chosen]()
            here = f"step {number} after change {chosen}"
            try:
                loss = self.step(*self.batch())
            except pb.GradientError:  # all may be frozen by now
                loss = "nothing to differentiate"
            yield f"loss of {here}", loss
            for name, tensor in [*self.model.named_parameters(), ("factor", self.factor)]:
                yield f"{name}, {here}", tensor
                yield f"gradient of {name}, {here}", tensor.grad
            for clone in self.clones:
                yield f"a clone, {here}", clone
        yield "offset", pb.random.get_state()["offset"]


def seen(world: World) -> list[tuple[str, Any]]:
    return [(what, np.array(x.detach().numpy()) if isinstance(x, pb.Tensor) else x) for what, x in world.run()]


def check(seed: int, verify: bool = False) -> None:
    expected = seen(World(seed, lambda function: function))
    with pb.compiled(verify=verify):
        found = seen(World(seed, pb.compile))
    for (what, ours), (_, theirs) in zip(found, expected, strict=True):
        assert type(ours) is type(theirs), f"seed {seed}: {what}"
        if isinstance(theirs, np.ndarray):
            np.testing.assert_allclose(ours, theirs, rtol=2e-3, atol=3e-4, err_msg=f"seed {seed}: {what}")
        else:
            assert ours == theirs, f"seed {seed}: {what}"


@pytest.mark.filterwarnings("ignore:pb.compile")
@pytest.mark.parametrize("seed", range(6))
def test_some_changes(seed: int) -> None:
    check(seed)


@pytest.mark.filterwarnings("ignore:pb.compile")
def test_changes_beside_the_eager_run() -> None:
    check(6, verify=True)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:pb.compile")
@pytest.mark.parametrize("first", range(100, 400, 50))
def test_many_changes(first: int) -> None:
    for seed in range(first, first + 50):
        check(seed)
