"""A trace changes nothing outside of it: not while it runs, not when it fails, not when it is interrupted anywhere."""

from __future__ import annotations

import sys
from typing import Any, Callable

import numpy as np
import pytest

import pullback as pb
from pullback import modes
from pullback.autodiff.graph import Leaf
from pullback.compiler.calling.arguments import Arguments
from pullback.compiler.calling.specialize import specialize
from pullback.compiler.tracing.trace import Trace
from tests.backends.installed import needs_llvmlite


class Everything:
    """What a function may touch outside of it, and a function that touches all of it."""

    def __init__(self, retain_graph: bool = False) -> None:
        self.retain_graph = retain_graph
        pb.random.seed(1)
        self.model = pb.nn.Sequential(pb.nn.Linear(3, 4), pb.nn.BatchNorm1d(4), pb.nn.Dropout(0.5), pb.nn.Linear(4, 1))
        self.w = pb.tensor([1.0, 2.0, 3.0], requires_grad=True)
        self.clone = self.w.clone()
        self.frozen = pb.tensor([1.0, 1.0, 1.0], requires_grad=True)
        (self.frozen * 2).sum().backward()
        (self.w * 2).sum().backward()
        self.frozen.requires_grad = False
        self.count = pb.tensor([0.0])
        self.made_outside = self.w * self.w
        self.optimizer = pb.optim.Adam([*self.model.parameters(), self.w], 0.1, eps=0.1)
        self.momentum = pb.optim.SGD([self.w], 0.1, momentum=0.9)
        self.momentum.step()
        self.generator = pb.random.Generator(3)
        self.x = pb.tensor(np.arange(12, dtype=np.float32).reshape(4, 3))

    @property
    def tensors(self) -> list[Any]:
        own = [self.w, self.clone, self.frozen, self.count, self.made_outside, self.x]
        return [*own, *self.model.parameters(), *self.model.buffers()]

    def function(self, x: Any) -> Any:
        w = self.w
        copy = w.clone()
        loss = (self.model(x) ** 2).sum() + (w * copy * self.clone).sum() + self.made_outside.sum()
        self.optimizer.zero_grad()
        loss.backward(retain_graph=self.retain_graph)
        w.grad *= 2.0
        self.frozen.requires_grad = True
        (self.frozen * copy).sum().backward()
        self.frozen.grad = None
        with pb.no_grad():
            self.count += loss
            w[0] = 5.0
            self.frozen[...] = w
        assert self.frozen.requires_grad and self.frozen.is_leaf
        self.frozen.requires_grad = False
        self.optimizer.step()
        self.momentum.step(pb.backward((w * copy).sum()))
        w.grad_cell.value = pb.zeros(3)
        noise = self.generator.uniform((3,))
        (noise * w).sum().backward()
        return loss.detach() + w.grad.sum()

    def state(self) -> Any:
        """Everything by identity and by value."""
        found: list[Any] = []
        for t in self.tensors:
            cell = t._node.cell if type(t._node) is Leaf else getattr(t, "_cell", None)
            found += [id(t._raw), t._raw.tobytes(), id(t._node), id(cell), getattr(t, "_origin", None)]
            if cell is not None and cell._value is not None:
                found += [id(cell._value), id(cell._value._raw), cell._value._raw.tobytes()]
            if type(t._node) is Leaf:
                found.append([reference() is None for reference in t._node._clones])
        found.append(self.made_outside._node.saved is None)
        for optimizer in (self.optimizer, self.momentum):
            for slot in optimizer._slots[0]:
                found += [slot.step, slot.names, id(slot.buffers), slot.lent, slot.backend]
                found += [(id(buffer._raw), buffer._raw.tobytes()) for buffer in slot.buffers]
        generators = (self.generator, pb.random.default_generator())
        return [*found, *((generator._key, generator._offset) for generator in generators)]


def test_nothing_is_seen_of_a_trace_while_it_runs() -> None:
    everything = Everything()
    before = everything.state()
    trace = Trace()
    values = trace.run(lambda x: (everything.function(x), everything.state()), (everything.x,), {})[1]
    assert values == before
    program = trace.finish([], [])
    assert len(program.updates) > 10
    assert everything.state() == before


def test_nothing_is_left_of_a_trace_that_fails() -> None:
    everything = Everything()
    before = everything.state()

    def function(x: Any) -> Any:
        return float(everything.function(x))

    for _ in range(2):
        with pytest.raises(pb.TraceError, match="float"):
            pb.compile(function)(everything.x)
        assert everything.state() == before


def interrupted(function: Callable[[], Any], after: int) -> bool:
    """Raise KeyboardInterrupt at a line of the library's; whether there was one so late."""
    lines = 0

    def at_line(frame: Any, event: str, _: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        if lines == after:
            lines += 1
            raise KeyboardInterrupt
        return at_line

    sys.settrace(at_line)
    try:
        function()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return lines > after  # in a callback, which cannot pass it on


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # it may come in a callback
def test_a_trace_may_be_interrupted_anywhere() -> None:
    everything = Everything()
    before = everything.state()
    step, count = 397, 0
    while interrupted(lambda: Trace().run(everything.function, (everything.x,), {}), 1 + count * step):
        assert everything.state() == before and modes.current() is None
        count += 1
    assert count > 20
    assert everything.state() == before


def test_the_function_does_all_this_when_it_is_called() -> None:
    found = []
    for wrap in (lambda function: function, pb.compile):
        everything = Everything(retain_graph=True)
        step = wrap(everything.function)
        results = []
        for _ in range(4):
            results.append([np.array(step(everything.x)._raw), *(np.array(t._raw) for t in everything.tensors)])
            results.append([np.array(t.grad._raw) for t in everything.tensors if t.grad is not None])
        steps = [slot.step for optimizer in (everything.optimizer, everything.momentum) for slot in optimizer._slots[0]]
        states = everything.generator.state, pb.random.default_generator().state
        found.append((results, steps, states, [t.requires_grad for t in everything.tensors]))
    (eager, *others), (compiled, *ours) = found
    assert ours == others
    for these, those in zip(compiled, eager):
        assert len(these) == len(those)
        for x, y in zip(these, those):
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)


@needs_llvmlite
def test_an_optimizer_gets_its_buffers_when_the_trace_has_ended() -> None:
    w = pb.tensor([1.0, 2.0], requires_grad=True)
    optimizer = pb.optim.Adam([w], 0.1)
    slot = optimizer._slots[0][0]

    def step() -> None:
        optimizer.step(pb.backward((w * w).sum()))
        assert slot.buffers == [] and slot.backend is None

    made = specialize("step", step, Arguments("step", (), {}), ignore=("slot",))
    assert [id(entry.tensor) for entry in made.inputs if entry.is_updated][1:] == list(map(id, slot.buffers))
    assert slot.step == 0 and [buffer.tolist() for buffer in slot.buffers] == [[0.0, 0.0], [0.0, 0.0]]


def test_hooks_outside_stay_while_gradients_outside_are_traced() -> None:
    w = pb.tensor([1.0, 2.0], requires_grad=True)
    calls: list[Any] = []
    w.register_hook(lambda g: calls.append(g.tolist()))
    f = pb.compile(lambda x: (w * x).sum())
    f(pb.ones(2)).backward()
    assert calls == [[1.0, 1.0]]
