"""Classes that change: attributes, methods, bases, properties, descriptors, metaclasses."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Iterator

from ..harness import X, case


@case
def class_attribute(compiled: Any) -> Iterator[Any]:
    class Layer:
        scale = 2.0

    f = compiled(lambda x: x * Layer.scale)
    for scale in (2.0, 3.0, 2.0):
        Layer.scale = scale
        yield f(X)


@case
def class_attribute_read_through_an_object(compiled: Any) -> Iterator[Any]:
    class Layer:
        scale = 2.0

    layer = Layer()
    f = compiled(lambda x: x * layer.scale)
    yield f(X)
    Layer.scale = 3.0
    yield f(X)
    layer.scale = 4.0
    yield f(X)
    del layer.scale
    yield f(X)


@case
def class_attribute_inherited(compiled: Any) -> Iterator[Any]:
    class Base:
        scale = 2.0

    class Middle(Base):
        pass

    class Layer(Middle):
        pass

    layer = Layer()
    f = compiled(lambda x: x * layer.scale)
    yield f(X)
    Base.scale = 3.0
    yield f(X)
    Middle.scale = 4.0
    yield f(X)
    del Middle.scale
    yield f(X)


@case
def class_attribute_of_a_metaclass(compiled: Any) -> Iterator[Any]:
    class Meta(type):
        scale = 2.0

    class Layer(metaclass=Meta):
        pass

    f = compiled(lambda x: x * Layer.scale)
    yield f(X)
    Meta.scale = 3.0
    yield f(X)
    Layer.scale = 4.0
    yield f(X)


@case
def list_in_a_class(compiled: Any) -> Iterator[Any]:
    class Layer:
        factors = [1.0, 2.0]

        def __call__(self, x: Any) -> Any:
            return x * sum(self.factors)

    f = compiled(Layer())
    yield f(X)
    Layer.factors.append(4.0)
    yield f(X)


@case
def property_that_reads_an_attribute(compiled: Any) -> Iterator[Any]:
    class Layer:
        hidden = 2.0

        @property
        def scale(self) -> float:
            return self.hidden * 10

    layer = Layer()
    f = compiled(lambda x: x * layer.scale)
    yield f(X)
    layer.hidden = 3.0
    yield f(X)
    Layer.scale = property(lambda self: -1.0)
    yield f(X)


@case
def property_that_reads_another_object(compiled: Any) -> Iterator[Any]:
    config = SimpleNamespace(scale=2.0)

    class Layer:
        @property
        def scale(self) -> float:
            return config.scale

    layer = Layer()
    f = compiled(lambda x: x * layer.scale)
    yield f(X)
    config.scale = 3.0
    yield f(X)


@case
def property_with_a_setter(compiled: Any) -> Iterator[Any]:
    class Layer:
        _celsius = 10.0

        @property
        def kelvin(self) -> float:
            return self._celsius + 273.0

        @kelvin.setter
        def kelvin(self, value: float) -> None:
            self._celsius = value - 273.0

    layer = Layer()
    f = compiled(lambda x: x * layer.kelvin)
    yield f(X)
    layer.kelvin = 300.0
    yield f(X)
    layer._celsius = 10.0
    yield f(X)


class Scaled:
    """A descriptor that keeps its values in a dict of its own."""

    def __init__(self) -> None:
        self.values: dict[int, float] = {}
        self.factor = 1.0

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self if instance is None else self.values.get(id(instance), 2.0) * self.factor

    def __set__(self, instance: Any, value: float) -> None:
        self.values[id(instance)] = value


@case
def descriptor_of_the_users(compiled: Any) -> Iterator[Any]:
    class Layer:
        scale = Scaled()

    layer = Layer()
    f = compiled(lambda x: x * layer.scale)
    yield f(X)
    layer.scale = 5.0
    yield f(X)
    vars(Layer)["scale"].factor = 10.0
    yield f(X)


@case
def descriptor_without_a_setter_is_shadowed(compiled: Any) -> Iterator[Any]:
    class Constant:
        def __get__(self, instance: Any, owner: Any) -> float:
            return 2.0

    class Layer:
        scale: Any = Constant()

    layer = Layer()
    f = compiled(lambda x: x * layer.scale)
    yield f(X)
    layer.scale = 5.0
    yield f(X)


@case
def static_and_class_methods_replaced(compiled: Any) -> Iterator[Any]:
    class Layer:
        size = 2.0

        @staticmethod
        def shift() -> float:
            return 1.0

        @classmethod
        def scale(cls) -> float:
            return cls.size

    layer = Layer()
    f = compiled(lambda x: x * layer.scale() + Layer.shift())
    yield f(X)
    Layer.shift = staticmethod(lambda: 5.0)
    yield f(X)
    Layer.size = 3.0
    yield f(X)
    Layer.scale = classmethod(lambda cls: cls.size * 10)
    yield f(X)
