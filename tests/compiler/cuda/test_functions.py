"""What holds for compiled functions on PyTorch's processor holds for the CUDA target, in Triton's interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback import targets

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
from . import interpreted  # noqa: F401  (the kernels run there)


@pytest.fixture(autouse=True)
def on_the_target(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setitem(targets._MODULES, "torch:cpu", "cuda.target")
    with np.errstate(all="ignore"):  # NumPy's, which the interpreter computes with
        yield
