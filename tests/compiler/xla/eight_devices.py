"""Run by `test_sharding.py` in a process with eight devices: prints, as JSON, what each way of computing gives."""

from __future__ import annotations

import json
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import pullback as pb

GENERATOR = np.random.default_rng(0)
X = GENERATOR.standard_normal((16, 4)).astype(np.float32)
W = GENERATOR.standard_normal((4, 3)).astype(np.float32)


def loss_of(w: Any, x: Any) -> Any:
    return (pb.tanh(x @ w) ** 2).mean()


def gradient(w: Any, x: Any) -> Any:
    """From arrays of JAX's to one."""
    variable = pb.asarray(w).detach().set_requires_grad(True)
    return pb.backward(loss_of(variable, pb.asarray(x)))[variable]._raw


def trained(w: Any, x: Any) -> tuple[Any, Any]:
    """Some compiled steps: the weights, and how they are spread."""
    variable = pb.asarray(w).detach().set_requires_grad(True)
    optimizer = pb.optim.AdamW([variable], 0.1)

    @pb.compile
    def step(x: Any) -> Any:
        shift = pb.tensor([[0.1 * i] * 4 for i in range(300)]).mean(0)  # too large to be written into the program
        loss = loss_of(variable, x + shift)
        optimizer.step(pb.backward(loss))
        return loss

    for _ in range(3):
        step(pb.asarray(x))
    assert step.traces == 1
    return variable._raw, len(variable._raw.devices())


def main() -> None:
    mesh = Mesh(np.array(jax.devices()), ("data",))
    rows, whole = NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec())
    w, x = jax.device_put(W, whole), jax.device_put(X, rows)

    def local(w: Any, x: Any) -> Any:
        return jax.lax.pmean(gradient(w, x), "data")

    spread = jax.shard_map(
        local, mesh=mesh, in_specs=(PartitionSpec(), PartitionSpec("data")), out_specs=PartitionSpec()
    )
    compiled = pb.compile(loss_of)

    def inside(w: Any, x: Any) -> Any:
        """A compiled function in a program of the user's own: JAX sees its operations."""
        variable = pb.asarray(w).detach().set_requires_grad(True)
        return pb.backward(compiled(variable, pb.asarray(x)))[variable]._raw

    one = jax.devices()[0]
    gradients = {
        "one device": gradient(jax.device_put(W, one), jax.device_put(X, one)),
        "operation by operation": gradient(w, x),
        "jit": jax.jit(gradient)(w, x),
        "shard_map": jax.jit(spread)(w, x),
        "a compiled function inside jit": jax.jit(inside)(w, x),
    }
    alone, devices_alone = trained(jax.device_put(W, one), jax.device_put(X, one))
    together, devices = trained(w, x)
    found = {
        "count": jax.device_count(),
        "device": pb.asarray(x).device,
        "gradients": {name: np.asarray(array).tolist() for name, array in gradients.items()},
        "weights": [np.asarray(alone).tolist(), np.asarray(together).tolist()],
        "devices": [devices_alone, devices],
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
