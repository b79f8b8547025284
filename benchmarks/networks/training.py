"""Training steps of a network by each system: forward, backward, and an update by gradient descent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

import numpy as np

from .. import peers

Step = Callable[[], Any]
Arrays = dict[str, np.ndarray]
RATE = 1e-2


class Network(Protocol):
    """A module of this folder: the same network for each system, under the names of the torch modules."""

    __name__: str

    def data(self) -> tuple[np.ndarray, np.ndarray]:
        """The batch, and what it should give."""

    def pullback(self) -> Any:
        """A module whose call with the batch and its target gives the loss."""

    def torch(self) -> Any:
        """The same as a torch module."""

    def jax(self, parameters: Any, buffers: Any, x: Any, y: Any) -> tuple[Any, Any]:
        """The loss for a dictionary of parameters, and the new buffers."""


def eager(network: Any) -> dict[str, Step]:
    makers = {"pullback": partial(pullback, network), "torch": partial(torch, network)}
    return checked(_name(network), makers)


def compiled(network: Any) -> dict[str, Step]:
    makers = {
        "pullback": partial(pullback, network, compiled=True),
        "torch": partial(torch, network),
        "torch.compile": partial(torch, network, compiled=True),
        "jax": partial(jax, network),
    }
    return checked(_name(network), makers)


def checked(name: str, makers: Mapping[str, Callable[[], Step]]) -> dict[str, Step]:
    """A step of each system that is installed; raises if their losses are not the same."""
    made = {system: make() for system, make in makers.items() if peers.is_installed(system.partition(".")[0])}
    losses = {system: np.array([float(step().item()) for _ in range(4)]) for system, step in made.items()}
    peers.check_equal(losses, name, 1e-3)
    return made


def _name(network: Network) -> str:
    return network.__name__.rpartition(".")[2]


def _model(network: Network) -> tuple[Any, Arrays]:
    """Pullback's module, and the values from which every system begins."""
    import pullback as pb

    pb.random.seed(0)
    model = network.pullback()
    return model, {name: np.array(tensor.numpy()) for name, tensor in model.state_dict().items()}


def pullback(network: Network, compiled: bool = False) -> Step:
    import pullback as pb

    model, _ = _model(network)
    optimizer = pb.optim.SGD(model.parameters(), RATE)
    x, y = map(pb.asarray, network.data())

    def step(x: Any, y: Any) -> Any:
        loss = model(x, y)
        optimizer.step(pb.backward(loss))
        return loss

    return partial(pb.compile(step) if compiled else step, x, y)


def torch(network: Network, compiled: bool = False) -> Step:
    import torch

    model = network.torch()
    model.load_state_dict({name: torch.tensor(array) for name, array in _model(network)[1].items()})
    optimizer = torch.optim.SGD(model.parameters(), RATE)
    x, y = map(torch.tensor, network.data())
    loss_of = torch.compile(model) if compiled else model

    def step() -> Any:
        optimizer.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def jax(network: Network) -> Step:
    import jax
    import jax.numpy as jnp

    model, arrays = _model(network)
    trained = {name for name, _ in model.named_parameters()}
    parameters = {name: jnp.array(array) for name, array in arrays.items() if name in trained}
    buffers = {name: jnp.array(array) for name, array in arrays.items() if name not in trained}
    x, y = map(jnp.array, network.data())

    def update(parameters: Any, buffers: Any, x: Any, y: Any) -> Any:
        (loss, new), gradients = jax.value_and_grad(network.jax, has_aux=True)(parameters, buffers, x, y)
        return jax.tree.map(lambda p, g: p - RATE * g, parameters, gradients), new, loss

    run = jax.jit(update, donate_argnums=(0, 1))
    state = [parameters, buffers]

    def step() -> Any:
        *state[:], loss = run(*state, x, y)
        return jax.block_until_ready(loss)

    return step
