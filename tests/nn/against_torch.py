"""Our modules beside PyTorch's: the same state, outputs and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback as pb

from ..backends.installed import optional

torch = optional("torch")

TOLERANCE = {"float64": 1e-10, "float32": 1e-5}


def assert_close(actual: Any, expected: torch.Tensor, what: str) -> None:
    """Equal up to rounding, relative to the largest number (and to 0.01: sums may cancel)."""
    expected = expected.detach()
    tolerance = TOLERANCE.get(str(expected.dtype).removeprefix("torch."), 0.0)
    actual, expected = np.asarray(actual.detach()), expected.numpy()
    assert actual.shape == expected.shape, f"{what}: shape {actual.shape}, expected {expected.shape}"
    assert actual.dtype == expected.dtype, f"{what}: {actual.dtype}, expected {expected.dtype}"
    scale = max(1e-2, np.abs(expected).max(initial=0.0))
    difference = np.abs(actual - expected).max(initial=0.0)
    assert difference <= tolerance * scale, f"{what}: off by {difference:.3g} (scale {scale:.3g})"


def loaded(theirs: torch.nn.Module, ours: pb.nn.Module) -> None:
    """Give our module the state of theirs, whose parameters are spread out first so that each of them matters."""
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
        for name, buffer in theirs.named_buffers():
            if name.endswith("running_mean"):
                buffer.copy_(torch.randn_like(buffer))
            elif name.endswith("running_var"):
                buffer.copy_(torch.rand_like(buffer) + 0.5)
    state = theirs.state_dict()
    assert list(ours.state_dict()) == list(state)
    assert [name for name, _ in ours.named_parameters()] == [name for name, _ in theirs.named_parameters()]
    ours.load_state_dict(state)


def flat(outputs: Any) -> list[Any]:
    if isinstance(outputs, (tuple, list)):
        return [part for output in outputs for part in flat(output)]
    return [] if outputs is None else [outputs]


def check(
    theirs: torch.nn.Module, ours: pb.nn.Module, *inputs: Any, steps: int = 1, ours_given: Any = None, **options: Any
) -> None:
    """Compare outputs, and gradients by parameters and by floating-point inputs, under random cotangents.

    Inputs are PyTorch's tensors; `options` are passed by name; `ours_given` replaces options for our module alone.
    """
    loaded(theirs, ours)

    def converted(x: Any, requires_grad: bool) -> Any:
        if isinstance(x, tuple):
            return tuple(converted(part, requires_grad) for part in x)
        if not isinstance(x, torch.Tensor):
            return x
        return pb.tensor(x.detach().numpy(), requires_grad=requires_grad and x.is_floating_point())

    def tracked(x: Any) -> Any:
        if isinstance(x, tuple):
            return tuple(tracked(part) for part in x)
        return x.clone().requires_grad_() if isinstance(x, torch.Tensor) and x.is_floating_point() else x

    for _ in range(steps):
        their_inputs = [tracked(x) for x in inputs]
        our_inputs = [converted(x, True) for x in their_inputs]
        our_options = {name: converted(x, False) for name, x in options.items()}
        their_outputs = flat(theirs(*their_inputs, **options))
        our_outputs = flat(ours(*our_inputs, **(our_options if ours_given is None else ours_given)))
        assert len(our_outputs) == len(their_outputs)
        their_loss, our_loss = 0.0, 0.0
        for i, (actual, expected) in enumerate(zip(our_outputs, their_outputs)):
            assert_close(actual, expected, f"output {i}")
            if expected.requires_grad:
                cotangent = torch.randn_like(expected)
                their_loss = their_loss + (expected * cotangent).sum()
                our_loss = our_loss + (actual * pb.asarray(cotangent.numpy())).sum()
        if not isinstance(their_loss, torch.Tensor):
            continue
        theirs.zero_grad()
        for parameter in ours.parameters():
            parameter.grad = None
        their_loss.backward()
        our_loss.backward()
        expected_gradients = {name: p.grad for name, p in theirs.named_parameters()}
        for name, parameter in ours.named_parameters():
            if expected_gradients[name] is None:
                assert parameter.grad is None, f"{name} has a gradient"
            else:
                assert_close(parameter.grad, expected_gradients[name], f"gradient of {name}")
        for i, (mine, other) in enumerate(zip(flat(our_inputs), flat(their_inputs))):
            if isinstance(other, torch.Tensor) and other.grad is not None:
                assert_close(mine.grad, other.grad, f"gradient of input {i}")
        for (name, actual), expected in zip(ours.named_buffers(), theirs.buffers()):
            assert_close(actual, expected, f"buffer {name}")
