"""Who an object is: its class, the bases of that, and what `isinstance` says."""

from __future__ import annotations

import abc
from types import SimpleNamespace
from typing import Any, Iterator

import pullback as pb

from ..harness import X, case
from .methods import Doubling


class Other(Doubling):
    def apply(self, x: Any) -> Any:
        return -x


@case
def class_of_an_object_replaced(compiled: Any) -> Iterator[Any]:
    layer = Doubling()
    f = compiled(lambda x: layer.run(x))
    yield f(X)
    layer.__class__ = Other
    yield f(X)
    layer.__class__ = Doubling
    yield f(X)


@case
def class_of_an_argument_replaced(compiled: Any) -> Iterator[Any]:
    layer, f = Doubling(), compiled(lambda layer, x: layer.apply(x))
    yield f(layer, X)
    layer.__class__ = Other
    yield f(layer, X)


@case
def bases_of_a_class_replaced(compiled: Any) -> Iterator[Any]:
    class First:
        scale = 2.0

    class Second:
        scale = 3.0

    class Layer(First):
        pass

    layer = Layer()
    f = compiled(lambda x: x * layer.scale if isinstance(layer, First) else x - layer.scale)
    yield f(X)
    Layer.__bases__ = (Second,)
    yield f(X)
    Layer.__bases__ = (First,)
    yield f(X)


@case
def class_rebound(compiled: Any) -> Iterator[Any]:
    class Layer:
        def __init__(self, scale: float) -> None:
            self.scale = scale

    f = compiled(lambda x: x * Layer(2.0).scale)
    yield f(X)

    class Layer:  # noqa: F811
        def __init__(self, scale: float) -> None:
            self.scale = scale * 10

    yield f(X)


@case
def constructor_replaced(compiled: Any) -> Iterator[Any]:
    class Layer:
        def __init__(self, scale: float) -> None:
            self.scale = scale

    f = compiled(lambda x: x * Layer(2.0).scale)
    yield f(X)
    Layer.__init__ = lambda self, scale: setattr(self, "scale", scale + 1)
    yield f(X)


@case
def isinstance_of_a_registered_class(compiled: Any) -> Iterator[Any]:
    class Scaling(abc.ABC):  # noqa: B024
        pass

    class Layer:
        pass

    layer = Layer()
    f = compiled(lambda x: x * 2 if isinstance(layer, Scaling) else x)
    yield f(X)
    Scaling.register(Layer)
    yield f(X)


@case
def isinstance_decided_by_a_metaclass(compiled: Any) -> Iterator[Any]:
    class Meta(type):
        known = False

        def __instancecheck__(cls, instance: Any) -> bool:
            return cls.known

    class Scaling(metaclass=Meta):
        pass

    f = compiled(lambda x: x * 2 if isinstance(3, Scaling) else x)
    yield f(X)
    Meta.known = True
    yield f(X)


@case
def issubclass_after_bases_change(compiled: Any) -> Iterator[Any]:
    class Marked:
        pass

    class Plain:
        pass

    class Layer(Plain):
        pass

    f = compiled(lambda x: -x if issubclass(Layer, Marked) else x)
    yield f(X)
    Layer.__bases__ = (Marked,)
    yield f(X)


@case
def type_of_a_setting(compiled: Any) -> Iterator[Any]:
    config = SimpleNamespace(value=2)
    f = compiled(lambda x: x * (10 if type(config.value) is int else 20))
    for value in (2, 2.0, True, 2):
        config.value = value
        yield f(X)


@case
def number_of_subclasses(compiled: Any) -> Iterator[Any]:
    class Plugin:
        scale = 2.0

    f = compiled(lambda x: sum((cls.scale * x for cls in Plugin.__subclasses__()), x))
    yield f(X)

    class Third(Plugin):
        scale = 3.0

    yield f(X)
    Third.scale = 4.0
    yield f(X)


@case
def doc_and_name_of_a_class(compiled: Any) -> Iterator[Any]:
    class Layer:
        """Two."""

    f = compiled(lambda x: x * len(Layer.__doc__ or "") * len(Layer.__name__))
    yield f(X)
    Layer.__doc__ = "Three and more."
    yield f(X)
    Layer.__name__ = "Renamed"
    yield f(X)


@case
def annotations_of_a_class(compiled: Any) -> Iterator[Any]:
    class Layer:
        scale: float

    f = compiled(lambda x: x * len(Layer.__annotations__))
    yield f(X)
    Layer.__annotations__["shift"] = float
    yield f(X)


@case
def class_with_a_tensor(compiled: Any) -> Iterator[Any]:
    class Layer:
        weight = pb.tensor([1.0, 2.0])

        @classmethod
        def apply(cls, x: Any) -> Any:
            return x * cls.weight

    f = compiled(Layer.apply)
    yield f(X)
    Layer.weight[0] = 5.0
    yield f(X)
    Layer.weight = pb.tensor([7.0, 7.0])
    yield f(X)
