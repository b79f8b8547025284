"""Modules of networks: parameters, modes, settings and parts that change."""

from __future__ import annotations

import copy
from types import MethodType
from typing import Any, Callable, Iterator

import numpy as np

import pullback as pb
from pullback import nn

from ..harness import case, changes, variable

ROW = pb.tensor([[3.0, 4.0], [1.0, -2.0]])


class Net(nn.Module):
    """Parameters, a buffer, numbers, parts in a list and in a dict."""

    def __init__(self) -> None:
        self.first = nn.Linear(2, 2)
        self.layers = [nn.Linear(2, 2)]
        self.heads = {"a": nn.Linear(2, 1), "b": nn.Linear(2, 1)}
        self.offset = pb.tensor([1.0, 2.0])
        self.scale = 2.0
        self.head = "a"
        self.activation: Callable[[Any], Any] = pb.tanh

    def forward(self, x: Any) -> Any:
        x = self.activation(self.first(x)) * self.scale + self.offset
        for layer in self.layers:
            x = layer(x)
        return self.heads[self.head](x)


def network(name: str, make: Callable[[], Any], *changed: Callable[[Any], Any], **declared: Any) -> None:
    """A case in which a module is compiled itself, and called by a compiled function, and changes."""

    @case(name=name, **declared)
    def run(compiled: Any) -> Iterator[Any]:
        model = make()
        itself, called = compiled(model), compiled(lambda x: model(x) * 2)
        for change in (lambda model: None, *changed):
            change(model)
            yield itself(ROW)
            yield called(ROW)
            yield called(ROW)


def setting(name: str, value: Any) -> Callable[[Any], None]:
    return lambda model: setattr(model, name, value)


def load_ones(model: Any) -> None:
    model.load_state_dict({name: np.ones(t.shape, np.float32) for name, t in model.state_dict().items()})


def set_item(container: str, key: Any, make: Callable[[], Any]) -> Callable[[Any], None]:
    return lambda model: getattr(model, container).__setitem__(key, make())


network("module_number", Net, setting("scale", 3.0), setting("scale", 2.0))
network("module_number_becomes_a_parameter", Net, lambda m: setattr(m, "scale", nn.Parameter(pb.tensor([5.0]))))
network("module_string", Net, setting("head", "b"), setting("head", "a"))
network("module_function", Net, setting("activation", pb.exp), lambda m: setattr(m, "activation", nn.ReLU()))
network("module_buffer_replaced", Net, setting("offset", pb.tensor([5.0, 6.0])))
network("module_buffer_written", Net, lambda m: m.offset.__setitem__(0, 9.0))
network("module_part_replaced", Net, lambda m: setattr(m, "first", nn.Linear(2, 2)))
network("module_appended_to_a_list", Net, lambda m: m.layers.append(nn.Linear(2, 2)), lambda m: m.layers.pop())
network("module_in_a_list_replaced", Net, set_item("layers", 0, lambda: nn.Linear(2, 2)))
network("module_in_a_dict_replaced", Net, set_item("heads", "a", lambda: nn.Linear(2, 1)))
network("module_list_replaced", Net, lambda m: setattr(m, "layers", [nn.Linear(2, 2), nn.Tanh()]))
network("module_attribute_through_vars", Net, lambda m: vars(m).update(scale=3.0), lambda m: vars(m).update(scale=2.0))
network("module_attribute_through_object_setattr", Net, lambda m: object.__setattr__(m, "scale", 3.0))
network("module_attribute_of_a_part_through_vars", Net, lambda m: vars(m.first).update(bias=None))
network("module_parameter_through_vars", Net, lambda m: vars(m.first).update(weight=nn.Parameter(pb.ones((2, 2)))))
network("module_parameter_replaced", Net, lambda m: setattr(m.first, "weight", nn.Parameter(pb.ones((2, 2)))))
network("module_parameter_written", Net, lambda m: m.first.weight.data_mut().fill(1.0))
network("module_bias_removed", Net, lambda m: setattr(m.first, "bias", None))
network("module_state_loaded", Net, load_ones)
network("module_converted_to_another_dtype", Net, lambda m: m.astype(pb.float64))
network(
    "module_forward_replaced_on_the_object",
    Net,
    lambda m: vars(m).update(forward=lambda x: x),
    lambda m: delattr(m, "forward"),
)
network(
    "module_forward_of_a_part_replaced",
    Net,
    lambda m: object.__setattr__(m.first, "forward", MethodType(lambda self, x: -x, m.first)),
)
network("module_class_replaced", Net, lambda m: object.__setattr__(m, "__class__", Negative))
network(
    "module_part_deleted_and_another_made", Net, lambda m: (delattr(m, "first"), setattr(m, "first", nn.Identity()))
)
network("module_initialized_anew", Net, lambda m: nn.init.constant_(m.first.weight, 0.5))
network("module_attribute_that_is_not_read", Net, setting("unused", 3), setting("unused", [1]), steady=True)
network(
    "sequential_item_replaced", lambda: nn.Sequential(nn.Linear(2, 2), nn.Tanh()), lambda m: m.__setitem__(1, nn.ReLU())
)
network("sequential_appended", lambda: nn.Sequential(nn.Linear(2, 2)), lambda m: m.append(nn.Tanh()))
network(
    "module_list_appended", lambda: Chain(nn.ModuleList([nn.Linear(2, 2)])), lambda m: m.parts.append(nn.Linear(2, 2))
)
network(
    "module_dict_item",
    lambda: Chain(nn.ModuleDict({"a": nn.Linear(2, 2)})),
    lambda m: m.parts.__setitem__("a", nn.Linear(2, 2)),
    lambda m: m.parts.__setitem__("b", nn.Tanh()),
)
network(
    "module_tuple_replaced", lambda: Chain((nn.Linear(2, 2),)), lambda m: setattr(m, "parts", (*m.parts, nn.Tanh()))
)
network("layer_norm_epsilon", lambda: nn.LayerNorm(2), setting("eps", 0.5), setting("eps", 1e-5))
network(
    "leaky_relu_slope",
    lambda: nn.Sequential(nn.Linear(2, 9), nn.LeakyReLU(0.1)),
    lambda m: setattr(m[1], "negative_slope", 0.5),
)
network("dropout_probability", lambda: nn.Dropout(0.5), setting("p", 0.0), setting("p", 0.9))
network("dropout_modes", lambda: nn.Dropout(0.5), lambda m: m.eval(), lambda m: m.train())
network(
    "dropout_mode_of_one_part",
    lambda: nn.Sequential(nn.Dropout(0.5), nn.Dropout(0.5)),
    lambda m: m[0].eval(),
    lambda m: m.eval(),
    lambda m: m[1].train(),
)
network("training_flag_assigned", lambda: nn.Dropout(0.5), setting("training", False))
network("batch_norm_modes", lambda: nn.BatchNorm1d(2), lambda m: m.eval(), lambda m: m.train())
network("batch_norm_momentum", lambda: nn.BatchNorm1d(2), setting("momentum", 0.9), lambda m: m.eval())
network(
    "batch_norm_buffers_loaded",
    lambda: nn.BatchNorm1d(2).eval(),
    lambda m: m.load_state_dict({**m.state_dict(), "running_mean": np.ones(2)}),
)


class Chain(nn.Module):
    """Parts one after the other, in a container of any kind."""

    def __init__(self, parts: Any) -> None:
        self.parts = parts

    def forward(self, x: Any) -> Any:
        for part in self.parts.values() if isinstance(self.parts, nn.ModuleDict) else self.parts:
            x = part(x)
        return x


class Negative(Net):
    def forward(self, x: Any) -> Any:
        return -super().forward(x)


changes(
    "module_mode_read_by_the_users_code",
    lambda: nn.Linear(2, 2),
    lambda m: lambda x: x if m.training else -x,
    lambda m: m.eval(),
    lambda m: m.train(),
)
changes(
    "module_parameters_counted",
    lambda: Net(),
    lambda m: lambda x: x * len(list(m.parameters())),
    lambda m: m.layers.append(nn.Linear(2, 2)),
)
changes(
    "module_parameters_summed",
    lambda: Net(),
    lambda m: lambda x: x * sum((p**2).sum() for p in m.parameters()),
    lambda m: m.layers.append(nn.Linear(2, 2)),
    lambda m: m.layers.pop(),
)
changes(
    "module_names_read",
    lambda: Net(),
    lambda m: lambda x: x * sum(p.sum() for name, p in m.named_parameters() if "first" in name),
    lambda m: setattr(m, "first_of_all", nn.Parameter(pb.ones((2,)))),
)
changes(
    "module_weight_used_elsewhere",
    lambda: nn.Linear(2, 2),
    lambda m: lambda x: m.weight @ x,
    lambda m: setattr(m, "weight", nn.Parameter(pb.ones((2, 2)))),
)
changes(
    "module_in_a_list_of_plain_objects",
    lambda: [nn.Tanh(), nn.Sigmoid()],
    lambda c: lambda x: c[1](c[0](x)),
    lambda c: c.reverse(),
    lambda c: c.append(0),
    lambda c: c.__setitem__(1, nn.Identity()),
)


@case
def module_frozen_and_unfrozen(compiled: Any) -> Iterator[Any]:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))

    def gradients(x: Any) -> Any:
        found = pb.backward(model(x).sum())
        return [found[p] if p.requires_grad else None for p in model.parameters()]

    f = compiled(gradients)
    yield f(ROW)
    model.freeze("0.*")
    yield f(ROW)
    model.unfreeze()
    yield f(ROW)


@case
def module_parameters_tied_and_untied(compiled: Any) -> Iterator[Any]:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[1].weight = model[0].weight
    f = compiled(lambda x: pb.backward(model(x).sum())[model[0].weight])
    yield f(ROW)
    model[1].weight = nn.Parameter(model[0].weight.detach() * 1)
    yield f(ROW)
    model[1].weight = model[0].weight
    yield f(ROW)


@case
def module_given_as_an_argument(compiled: Any) -> Iterator[Any]:
    f, first, second = compiled(lambda model, x: model(x)), Net(), Net()
    for model in (first, second, first):
        yield f(model, ROW)
    second.scale = 7.0
    for model in (first, second, first):
        yield f(model, ROW)


@case
def module_deeply_copied(compiled: Any) -> Iterator[Any]:
    held = {"model": Net()}
    f = compiled(lambda x: held["model"](x))
    yield f(ROW)
    before = held["model"]
    held["model"] = copy.deepcopy(before)
    yield f(ROW)
    held["model"].scale = 9.0
    yield f(ROW)
    held["model"] = before
    yield f(ROW)


@case
def module_called_with_other_tensors(compiled: Any) -> Iterator[Any]:
    model, bias = nn.Linear(2, 2), pb.tensor([1.0, 2.0])
    f = compiled(lambda x: nn.functional_call(model, {"bias": bias}, x))
    yield f(ROW)
    bias = pb.tensor([5.0, 6.0])
    yield f(ROW)
    bias[0] = 0.0
    yield f(ROW)


@case
def module_method_compiled_by_a_decorator(compiled: Any) -> Iterator[Any]:
    class Model(nn.Module):
        def __init__(self) -> None:
            self.weight = variable(1.0, 2.0)
            self.scale = 2.0

        @compiled
        def forward(self, x: Any) -> Any:
            return x * self.weight * self.scale

    model = Model()
    yield model(ROW)
    model.scale = 3.0
    yield model(ROW)
    model.weight = variable(5.0, 6.0)
    yield model(ROW)
    yield Model()(ROW)
    yield model(ROW)


@case
def module_batch_norm_statistics_follow(compiled: Any) -> Iterator[Any]:
    model = nn.BatchNorm1d(2)
    f, batch = compiled(lambda x: model(x)), pb.tensor([[1.0, 2.0], [3.0, 5.0]])
    for factor in (1.0, 2.0, 3.0):
        yield f(batch * factor)
        yield model.running_mean, model.running_var, model.num_batches_tracked
    model.running_mean = pb.zeros((2,))
    yield f(batch)
    yield model.running_mean


@case
def module_frozen_and_unfrozen_inside(compiled: Any) -> Iterator[Any]:
    first, second = nn.Linear(2, 2), nn.Linear(2, 1)

    def gradients(x: Any) -> Any:
        second.freeze()
        found = pb.backward(second(first(x)).sum())
        second.unfreeze()
        return [found[p] for p in first.parameters()]

    f = compiled(gradients)
    for factor in (1.0, 2.0):
        yield f(ROW * factor)
        yield [p.requires_grad for p in second.parameters()]


@case
def module_copied_deeply_is_trained_apart(compiled: Any) -> Iterator[Any]:
    layer = nn.Linear(2, 2)
    layers = [copy.deepcopy(layer) for _ in range(3)]
    optimizer = pb.optim.SGD([p for one in layers for p in one.parameters()], 0.1)

    def step(x: Any) -> Any:
        for one in layers:
            x = pb.tanh(one(x))
        loss = (x**2).sum()
        optimizer.step(pb.backward(loss))
        return loss

    f = compiled(step)
    for _ in range(3):
        yield f(ROW)
    yield [one.weight for one in layers]
