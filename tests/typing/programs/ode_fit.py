"""The rates of a predator-prey model, fitted through the solver (Runge-Kutta steps in a scan)."""

from typing import NamedTuple

import numpy as np

import pullback as pb
from pullback import Tensor


class Rates(NamedTuple):
    growth: Tensor
    hunting: Tensor


def field(rates: Rates, state: Tensor) -> Tensor:
    prey, predators = state[0], state[1]
    eaten = rates.hunting * prey * predators
    return pb.stack([rates.growth * prey - eaten, 0.5 * eaten - 0.8 * predators])


def runge_kutta(rates: Rates, state: Tensor, dt: float) -> Tensor:
    k1 = field(rates, state)
    k2 = field(rates, state + 0.5 * dt * k1)
    k3 = field(rates, state + 0.5 * dt * k2)
    k4 = field(rates, state + dt * k3)
    return state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def solve(rates: Rates, start: Tensor, steps: int, dt: float = 0.1) -> Tensor:
    def step(state: Tensor, _: None) -> tuple[Tensor, Tensor]:
        after = runge_kutta(rates, state, dt)
        return after, after

    _, path = pb.scan(step, start, length=steps)
    return path


def misfit(rates: Rates, start: Tensor, observed: Tensor) -> Tensor:
    path = solve(rates, start, observed.shape[0])
    return ((path - observed) ** 2).mean()


def main(rounds: int = 30) -> Rates:
    start = pb.asarray(np.array([1.0, 0.5]))
    true = Rates(pb.asarray(np.array(1.1)), pb.asarray(np.array(0.9)))
    observed = solve(true, start, 20).detach()

    rates = Rates(pb.asarray(np.array(0.8)), pb.asarray(np.array(0.6)))
    loss_and_slope = pb.value_and_grad(misfit)
    first = misfit(rates, start, observed).item()
    for _ in range(rounds):
        _, slope = loss_and_slope(rates, start, observed)
        rates = Rates(rates.growth - 0.1 * slope.growth, rates.hunting - 0.1 * slope.hunting)
    assert misfit(rates, start, observed).item() < 0.5 * first
    doubled = pb.while_loop(lambda x: x < 10.0, lambda x: 2 * x, pb.tensor(1.5))
    larger = pb.cond(doubled > 1.0, lambda x: x, lambda x: -x, doubled)
    print(larger.item())
    return rates


if __name__ == "__main__":
    print(main())
