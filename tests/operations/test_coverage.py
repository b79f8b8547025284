"""No rule without a sample that runs it."""

from __future__ import annotations

from collections import Counter

from pullback.operations import OPERATIONS

from . import harness, harness_derived
from .harness_samples import SAMPLES


def rules_run() -> dict[str, set[tuple[str, str]]]:
    """For each sample, the (operation, input) pairs whose rules a walk over its graph calls."""
    run: dict[str, set[tuple[str, str]]] = {}
    for sample in SAMPLES:
        pairs = run[sample.name] = set()
        for node in harness.nodes_of(harness.outputs_of(sample.function, harness.variables(sample.arguments))):
            operation = node.recipe.operation
            names = operation.inputs * len(node.recipe.mask) if operation.variadic else operation.inputs
            pairs.update((operation.name, name) for name, tracked in zip(names, node.recipe.mask) if tracked)
    return run


def test_every_rule_is_run_by_a_sample_for_every_input() -> None:
    covered = set().union(*rules_run().values())
    declared = {(name, x) for name, operation in OPERATIONS.items() for x in operation.differentiable}
    assert not declared - covered, "no sample runs these rules: " + ", ".join(
        f"{name}({x})" for name, x in sorted(declared - covered)
    )


def test_every_sample_runs_the_operation_it_is_named_after() -> None:
    astray = [
        name
        for sample, (name, pairs) in zip(SAMPLES, rules_run().items())
        if sample.operation in OPERATIONS and sample.operation not in {operation for operation, _ in pairs}
    ]
    assert not astray, f"these samples do not run their operation's rule: {astray}"


def test_every_elementwise_operation_is_tried_on_small_and_broadcast_shapes() -> None:
    elementwise = {name for name, operation in OPERATIONS.items() if operation.elementwise and operation.differentiable}
    assert elementwise == {sample.operation for sample in harness_derived.elementwise_shapes()}


def test_names_of_samples_are_unique() -> None:
    repeated = [name for name, count in Counter(sample.name for sample in SAMPLES).items() if count > 1]
    assert not repeated
