"""Methods that are replaced: on classes, on objects, on bases."""

from __future__ import annotations

from types import MethodType
from typing import Any, Iterator

from ..harness import X, case


class Doubling:
    factor = 2.0

    def apply(self, x: Any) -> Any:
        return x * self.factor

    def run(self, x: Any) -> Any:
        return self.apply(x) + 1


@case
def method_replaced_on_the_class(compiled: Any) -> Iterator[Any]:
    class Layer(Doubling):
        pass

    layer = Layer()
    f = compiled(layer.run)
    yield f(X)
    Layer.apply = lambda self, x: x * 7
    yield f(X)
    del Layer.apply
    yield f(X)


@case
def method_replaced_on_the_object(compiled: Any) -> Iterator[Any]:
    layer = Doubling()
    f = compiled(lambda x: layer.run(x))
    yield f(X)
    layer.apply = lambda x: x * 7
    yield f(X)
    layer.apply = MethodType(lambda self, x: x - self.factor, layer)
    yield f(X)
    del layer.apply
    yield f(X)


@case
def method_replaced_that_is_compiled_itself(compiled: Any) -> Iterator[Any]:
    class Layer(Doubling):
        pass

    layer = Layer()
    f = compiled(lambda x: layer.run(x))
    yield f(X)
    Layer.run = lambda self, x: self.apply(x) - 1
    yield f(X)


@case
def method_bound_before_it_is_replaced(compiled: Any) -> Iterator[Any]:
    class Layer(Doubling):
        pass

    layer = Layer()
    bound = layer.apply
    f = compiled(lambda x: bound(x))
    yield f(X)
    Layer.apply = lambda self, x: x * 7
    yield f(X)
    layer.factor = 3.0
    yield f(X)


@case
def call_method_replaced(compiled: Any) -> Iterator[Any]:
    class Layer:
        def __call__(self, x: Any) -> Any:
            return x * 2

    layer = Layer()
    f = compiled(lambda x: layer(x))
    yield f(X)
    Layer.__call__ = lambda self, x: x * 3
    yield f(X)


@case
def method_through_super_replaced(compiled: Any) -> Iterator[Any]:
    class Base:
        def apply(self, x: Any) -> Any:
            return x * 2

    class Layer(Base):
        def apply(self, x: Any) -> Any:
            return super().apply(x) + 1

    f = compiled(Layer().apply)
    yield f(X)
    Base.apply = lambda self, x: x * 3
    yield f(X)


@case
def attribute_through_super(compiled: Any) -> Iterator[Any]:
    class Base:
        scale = 2.0

    class Layer(Base):
        scale = 100.0

        def apply(self, x: Any) -> Any:
            return x * super().scale

    f = compiled(Layer().apply)
    yield f(X)
    Layer.scale = 50.0
    yield f(X)
    Base.scale = 3.0
    yield f(X)


@case
def mixins_with_cooperating_methods(compiled: Any) -> Iterator[Any]:
    class Base:
        def apply(self, x: Any) -> Any:
            return x

    class Shift(Base):
        shift = 1.0

        def apply(self, x: Any) -> Any:
            return super().apply(x) + self.shift

    class Scale(Base):
        scale = 2.0

        def apply(self, x: Any) -> Any:
            return super().apply(x) * self.scale

    class Layer(Shift, Scale):
        pass

    layer = Layer()
    f = compiled(lambda x: layer.apply(x))
    yield f(X)
    Scale.scale = 3.0
    yield f(X)
    layer.shift = 5.0
    yield f(X)
    Layer.__bases__ = (Scale, Shift)
    yield f(X)
