"""What holds for compiled functions on PyTorch's processor holds for the CUDA target, in Triton's interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback import targets
from pullback.compiler.lowering.lower import lower
from pullback.targets.cuda.executable import Executable
from pullback.targets.cuda.target import TARGET
from pullback.targets.kernels import Host

from ..building import Builder
from ..torch_cpu.test_functions import (  # noqa: F401  (they are run here too)
    test_a_compiled_function_as_a_function_of_pytorch,
    test_a_program_is_verified,
    test_a_result_found_outside_passes_its_gradient_on,
    test_all_is_freed_when_the_function_dies,
    test_an_index_out_of_bounds_is_the_error_of_the_eager_function,
    test_an_operation_of_the_users_own_is_given_tensors_of_pytorch,
    test_another_device_shape_or_dtype_is_another_program,
    test_arrays_of_numpy_from_outside_are_read_at_every_call,
    test_buffers_and_state_of_objects_are_carried,
    test_choices_and_loops,
    test_gradients_are_taken_outside,
    test_modes_of_pytorch_change_nothing,
    test_numpy_arrays_and_numbers_among_the_arguments,
    test_random_numbers_are_those_of_the_eager_function_and_of_numpy,
    test_results_are_those_of_the_function_in_any_container,
    test_second_derivatives_are_taken_inside_and_refused_outside,
    test_tensors_on_two_devices_are_refused,
    test_values_that_decide_are_read_and_looked_at,
    test_what_a_gradient_needs_is_kept_when_a_parameter_is_written,
    test_what_is_found_outside_may_change_its_form,
    test_what_needs_values_is_refused_with_the_line,
)
from ..torch_cpu.test_trainer import test_an_alarm_is_the_eager_ones  # noqa: F401
from ..torch_cpu.test_training_steps import (  # noqa: F401
    test_a_model_that_moves_gets_another_program,
    test_a_rate_that_changes_needs_no_new_program,
    test_a_state_that_is_loaded_is_the_one_that_is_used,
    test_an_alarm_changes_nothing_and_names_what_eager_names,
    test_an_alarm_of_a_step_that_was_given_an_array_of_numpys_is_the_same,
    test_dropout_differs_from_call_to_call_and_is_that_of_the_eager_step,
    test_eager_and_compiled_steps_take_turns,
    test_every_optimizer_trains_as_it_does_eagerly,
    test_gradients_may_be_kept_apart_or_cleared,
    test_hooks_and_autocast,
)
from . import interpreted


@pytest.fixture(autouse=True)
def on_the_target(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setitem(targets._MODULES, "torch:cpu", "cuda.target")
    with np.errstate(all="ignore"):  # NumPy's, which the interpreter computes with
        yield


def test_tensors_that_are_kept_conjugated_or_in_another_order_are_read_as_they_are() -> None:
    """PyTorch says of some tensors that they are contiguous whose memory is not what they are."""
    values = np.arange(6.0).reshape(2, 3) + 1j * np.arange(6.0)[::-1].reshape(2, 3)
    found = interpreted.torch.from_numpy(values.copy())
    held = pb.asarray(found.conj())
    turned = pb.asarray(found.T)
    negated = pb.asarray(found.conj().imag)
    compiled = pb.compile(lambda x: (held * x, turned * x.T, negated + 1.0))
    for _ in range(3):
        first, second, third = compiled(pb.asarray(found))
        np.testing.assert_allclose(first.numpy(), values.conj() * values)
        np.testing.assert_allclose(second.numpy(), values.T * values.T)
        np.testing.assert_allclose(third.numpy(), values.conj().imag + 1.0)


def test_numbers_of_numpy_without_axes_are_given_and_left_as_gradients() -> None:
    weight = pb.tensor(2.0, device="torch:cpu", requires_grad=True)

    @pb.compile
    def step(x: Any) -> Any:
        loss = weight * weight * x
        loss.backward()
        return loss

    assert [step(np.array(3.0, np.float32)).item() for _ in range(3)] == [12.0] * 3
    assert weight.grad.item() == 36.0


def test_what_is_replaced_at_every_call_is_no_reason_to_capture_again(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    original = Executable.run
    monkeypatch.setattr(
        Executable,
        "run",
        lambda self, inputs, outputs: (seen.append([x.data_ptr() for x in inputs]), original(self, inputs, outputs)),
    )

    class State:
        h = pb.asarray(np.zeros(3, np.float32), device="torch:cpu")

    state = State()

    @pb.compile
    def step(x: Any) -> Any:
        state.h = pb.tanh(state.h + x)
        return pb.sum(state.h)

    for _ in range(4):
        step(pb.asarray(np.ones(3, np.float32), device="torch:cpu"))
    assert all(places == seen[-1] for places in seen[1:])


def test_what_goes_backwards_is_copied_before_a_library_reads_it() -> None:
    """Operations that are not captured keep their arguments from run to run: no copies of then may be among them."""
    builder = Builder()
    x = builder.input(np.random.default_rng(0).normal(size=(4, 4)))
    schedule = lower(builder.program([builder.make("inv", builder.make("flip", x, (0,)))]), TARGET.abilities)
    assert [call.kernel.op for call in schedule.calls if isinstance(call.kernel, Host)] == ["inv"]
    assert all(
        min(strides) > 0
        for call in schedule.calls
        if isinstance(call.kernel, Host)
        for *_, strides in call.kernel.reads
    )
