"""Random programs with clones, views and writes in place: values and gradients are those of pure functional code."""

from __future__ import annotations

import random

import numpy as np
import pytest

import pullback as pb

SIZE = 4


class Functional:
    """The reference: every write makes a new array."""

    def start(self, values):
        return np.array(values)

    def clone(self, x):
        return x.copy()

    def view(self, x, index):
        return x[index].copy()

    def combine(self, kind, x, y):
        return {"add": np.add, "sub": np.subtract, "mul": np.multiply}[kind](x, y)

    def apply(self, kind, x):
        return {"sin": np.sin, "tanh": np.tanh, "square": np.square, "exp": lambda v: np.exp(0.1 * v)}[kind](x)

    def update(self, kind, x, y):
        return self.combine(kind, x, y)

    def assign(self, x, index, value):
        out = x.copy()
        out[index] = value
        return out


class InPlace(Functional):
    """The same on tensors, writing in place."""

    def start(self, values):
        return values

    def clone(self, x):
        return x.clone()

    def view(self, x, index):
        return x[index]

    def combine(self, kind, x, y):
        return x + y if kind == "add" else x - y if kind == "sub" else x * y

    def apply(self, kind, x):
        return pb.exp(0.1 * x) if kind == "exp" else getattr(pb, kind)(x)

    def update(self, kind, x, y):
        if kind == "add":
            x += y
        elif kind == "sub":
            x -= y
        else:
            x *= y
        return x

    def assign(self, x, index, value):
        x[index] = value
        return x


def program(seed: int):
    """A list of instructions on numbered variables; variables 0 and 1 are the inputs and are not written."""
    rng = random.Random(seed)
    indices = [slice(0, 2), slice(2, 4), slice(None, None, 2), slice(None, None, -2)]
    lengths = [SIZE, SIZE]  # of the variables so far
    code = []
    for _ in range(rng.randint(6, 18)):
        action = rng.choice(["clone", "view", "combine", "apply", "update", "update", "assign", "assign"])
        i = rng.randrange(len(lengths))
        same = [k for k, n in enumerate(lengths) if n == lengths[i]]
        if action == "clone":
            code.append(("clone", i))
            lengths.append(lengths[i])
        elif action == "view" and lengths[i] == SIZE:
            code.append(("view", i, rng.choice(indices)))
            lengths.append(2)
        elif action == "combine":
            code.append(("combine", rng.choice(["add", "sub", "mul"]), i, rng.choice(same)))
            lengths.append(lengths[i])
        elif action == "apply":
            code.append(("apply", rng.choice(["sin", "tanh", "square", "exp"]), i))
            lengths.append(lengths[i])
        elif action == "update" and i > 1:
            code.append(("update", rng.choice(["add", "sub", "mul"]), i, rng.choice([*same, 0.5])))
        elif action == "assign" and i > 1 and lengths[i] == SIZE:
            index = rng.choice([*indices, 1, np.array([True, False, True, False]), np.array([3, 0])])
            length = 1 if isinstance(index, int) else 2
            sources = [k for k, n in enumerate(lengths) if n == 2] if length == 2 else []
            code.append(("assign", i, index, rng.choice([*sources, 0.25])))
    return code


def run(machine, code, inputs):
    variables = [machine.start(x) for x in inputs]
    for instruction in code:
        name, *rest = instruction
        if name == "clone":
            variables.append(machine.clone(variables[rest[0]]))
        elif name == "view":
            variables.append(machine.view(variables[rest[0]], rest[1]))
        elif name == "combine":
            variables.append(machine.combine(rest[0], variables[rest[1]], variables[rest[2]]))
        elif name == "apply":
            variables.append(machine.apply(rest[0], variables[rest[1]]))
        elif name == "update":
            other = rest[2] if isinstance(rest[2], float) else variables[rest[2]]
            variables[rest[1]] = machine.update(rest[0], variables[rest[1]], other)
        else:
            value = rest[2] if isinstance(rest[2], float) else variables[rest[2]]
            variables[rest[0]] = machine.assign(variables[rest[0]], rest[1], value)
    total = 0.0
    for k, variable in enumerate(variables):
        total = total + ((k + 1) * variable * variable).sum()
    return total


@pytest.mark.parametrize("seed", range(150))
def test_writing_in_place_is_functional(seed):
    code = program(seed)
    rng = np.random.default_rng(seed)
    inputs = [rng.uniform(0.3, 1.2, SIZE) for _ in range(2)]
    tensors = [pb.tensor(x, requires_grad=True) for x in inputs]
    # the inputs are variables: programs work on results, which may be written
    loss = run(InPlace(), code, [t * 1.0 for t in tensors])
    expected = run(Functional(), code, inputs)
    assert loss.item() == pytest.approx(expected, rel=1e-12)
    loss.backward()
    direction = [rng.standard_normal(SIZE) for _ in inputs]
    step = 1e-5
    ends = [
        run(Functional(), code, [x + s * d for x, d in zip(inputs, direction)])
        for s in (-2 * step, -step, step, 2 * step)
    ]
    numeric = (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * step)
    analytic = sum(0.0 if t.grad is None else float((t.grad.numpy() * d).sum()) for t, d in zip(tensors, direction))
    assert analytic == pytest.approx(numeric, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("seed", range(0, 150, 10))
def test_forward_mode_agrees(seed):
    code = program(seed)
    rng = np.random.default_rng(seed)
    inputs = tuple(rng.uniform(0.3, 1.2, SIZE) for _ in range(2))
    direction = tuple(rng.standard_normal(SIZE) for _ in inputs)
    f = lambda a, b: run(InPlace(), code, [a * 1.0, b * 1.0])
    _, tangent = pb.jvp(f, inputs, direction)
    gradients = pb.grad(f, argnums=(0, 1))(*inputs)
    assert float(tangent) == pytest.approx(sum(float((g * d).sum()) for g, d in zip(gradients, direction)), rel=1e-9)
