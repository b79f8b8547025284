"""Ordinary code whose state changes: descriptors, metaclasses, dispatch, carried state."""

# ruff: noqa: B024, N805
from __future__ import annotations

import abc
import contextvars
import datetime
import enum
import fractions
import functools
import itertools
import pathlib
import threading
import typing
import uuid
import weakref
from typing import Any, Iterator

import pullback as pb

from ..harness import X, case


class Thing:
    def __init__(self, **k: Any) -> None:
        self.__dict__.update(k)


def Z(n: float) -> Any:
    return pb.tensor([float(n)] * 2)


GL: Any = None
GK, GQ = 2.0, 3.0


@case
def registry_by_init_subclass(compiled: Any) -> Iterator[Any]:

    class B:
        reg = {}

        def __init_subclass__(cls, key=None, **k):
            B.reg[key] = cls

    class A(B, key="a"):
        s = 2.0

    f = compiled(lambda x: x * B.reg["a"].s)
    yield f(X)

    class A2(B, key="a"):
        s = 3.0

    yield f(X)
    A2.s = 4.0
    yield f(X)


@case
def descriptor_that_knows_its_name(compiled: Any) -> Iterator[Any]:

    class D:
        def __set_name__(s, o, n):
            s.n = "_" + n

        def __get__(s, i, o=None):
            return s if i is None else getattr(i, s.n) * s.factor

        def __set__(s, i, v):
            setattr(i, s.n, v)

        factor = 1.0

    class A:
        k = D()

        def __init__(s):
            s.k = 2.0

    a = A()
    f = compiled(lambda x: x * a.k)
    yield f(X)
    a.k = 3.0
    yield f(X)
    D.factor = 2.0
    yield f(X)
    A.__dict__["k"].factor = 5.0
    yield f(X)
    A.k = 9.0
    yield f(X)


@case
def varied_meta_property(compiled: Any) -> Iterator[Any]:

    class M(type):
        @property
        def k(cls):
            return cls._k

    class A(metaclass=M):
        _k = 2.0

    f = compiled(lambda x: x * A.k)
    yield f(X)
    A._k = 3.0
    yield f(X)


@case
def varied_class_getitem(compiled: Any) -> Iterator[Any]:

    class A:
        t = {"a": 2.0}

        def __class_getitem__(cls, k):
            return cls.t[k]

    f = compiled(lambda x: x * A["a"])
    yield f(X)
    A.t["a"] = 3.0
    yield f(X)
    A.t = {"a": 4.0}
    yield f(X)


@case
def varied_meta_call_len_iter(compiled: Any) -> Iterator[Any]:

    class M(type):
        n = 2

        def __len__(cls):
            return cls.n

        def __iter__(cls):
            return iter(range(cls.n))

        def __contains__(cls, k):
            return k < cls.n

    class A(metaclass=M):
        pass

    f = compiled(lambda x: x * len(A) * (1 + sum(A)) * (2 if 3 in A else 1))
    yield f(X)
    A.n = 4
    yield f(X)
    M.n = 5
    yield f(X)
    del A.n
    yield f(X)


@case
def varied_getattr_delegation(compiled: Any) -> Iterator[Any]:

    class W:
        def __init__(s, i):
            s._i = i

        def __getattr__(s, n):
            return getattr(s._i, n)

    i = Thing(k=2.0)
    w = W(i)
    f = compiled(lambda x: x * w.k)
    yield f(X)
    i.k = 3.0
    yield f(X)
    w.k = 4.0
    yield f(X)
    del w.k
    w._i = Thing(k=9.0)
    yield f(X)


@case
def varied_slots_inherit(compiled: Any) -> Iterator[Any]:

    class A:
        __slots__ = ("a",)
        b = 5.0

    class B(A):
        __slots__ = ("c",)

    o = B()
    o.a = 1.0
    o.c = 2.0
    f = compiled(lambda x: x * o.a * o.c * o.b * getattr(o, "z", 1.0))
    yield f(X)
    o.a = 2.0
    yield f(X)
    A.b = 3.0
    yield f(X)
    A.z = 4.0
    yield f(X)


@case
def varied_singledispatch(compiled: Any) -> Iterator[Any]:

    @functools.singledispatch
    def g(k):
        return 1.0

    @g.register
    def _(k: int):
        return 2.0

    f = compiled(lambda x, k: x * g(k))
    yield f(X, 1)
    yield f(X, "a")
    g.register(str, lambda k: 7.0)
    yield f(X, "a")

    class S:
        @functools.singledispatchmethod
        def m(self, k):
            return 1.0

        @m.register
        def _(self, k: int):
            return 2.0

    s = S()
    h = compiled(lambda x, k: x * s.m(k))
    yield h(X, 1)
    yield h(X, "a")
    S.m.register(str, lambda self, k: 7.0) if hasattr(S.m, "register") else None
    yield h(X, "a")


@case
def varied_partialmethod(compiled: Any) -> Iterator[Any]:

    class A:
        def m(self, k, j=1.0):
            return k * j * self.s

        p = functools.partialmethod(m, 2.0, j=3.0)

    a = A()
    a.s = 1.0
    f = compiled(lambda x: x * a.p())
    yield f(X)
    a.s = 2.0
    yield f(X)
    A.p = functools.partialmethod(A.m, 5.0)
    yield f(X)


@case
def varied_total_ordering(compiled: Any) -> Iterator[Any]:

    @functools.total_ordering
    class A:
        def __init__(s, k):
            s.k = k

        def __eq__(s, o):
            return s.k == o.k

        def __lt__(s, o):
            return s.k < o.k

    a = A(1)
    b = A(2)
    f = compiled(lambda x: x if a >= b else -x)
    yield f(X)
    a.k = 3
    yield f(X)


@case
def varied_reduce_over_list(compiled: Any) -> Iterator[Any]:
    l = [lambda x: x + 1, lambda x: x * 2]
    f = compiled(lambda x: functools.reduce(lambda a, g: g(a), l, x))
    yield f(X)
    l.reverse()
    yield f(X)
    l.append(lambda x: -x)
    yield f(X)


@case
def varied_itertools_chain(compiled: Any) -> Iterator[Any]:
    a = [1.0]
    b = [2.0]
    f = compiled(lambda x: x * sum((p * q for p, q in zip(itertools.chain(a, b), itertools.count(1)))))
    yield f(X)
    b.append(3.0)
    yield f(X)


@case
def varied_weakmethod(compiled: Any) -> Iterator[Any]:

    class A:
        k = 2.0

        def m(s):
            return s.k

    a = A()
    w = weakref.WeakMethod(a.m)
    f = compiled(lambda x: x * w()())
    yield f(X)
    a.k = 3.0
    yield f(X)


@case
def varied_abc_register(compiled: Any) -> Iterator[Any]:

    class B(abc.ABC):
        pass

    class A:
        pass

    a = A()
    f = compiled(lambda x: x if isinstance(a, B) else -x)
    yield f(X)
    B.register(A)
    yield f(X)


@case
def varied_protocol(compiled: Any) -> Iterator[Any]:

    @typing.runtime_checkable
    class P(typing.Protocol):
        def go(self): ...

    class A:
        pass

    a = A()
    f = compiled(lambda x: x if isinstance(a, P) else -x)
    yield f(X)
    a.go = lambda: 1
    yield f(X)
    del a.go
    A.go = lambda s: 1
    yield f(X)


@case
def varied_instancecheck(compiled: Any) -> Iterator[Any]:

    class M(type):
        ok = True

        def __instancecheck__(cls, o):
            return cls.ok

    class A(metaclass=M):
        pass

    f = compiled(lambda x: x if isinstance(3, A) else -x)
    yield f(X)
    A.ok = False
    yield f(X)
    M.ok = False
    del A.ok
    yield f(X)


@case
def varied_namedtuple_methods(compiled: Any) -> Iterator[Any]:

    class N(typing.NamedTuple):
        a: float = 1.0
        b: list = [2.0]

        def g(self):
            return self.a * self.b[0]

    s = Thing(n=N())
    f = compiled(lambda x: x * s.n.g() * N().a)
    yield f(X)
    s.n = s.n._replace(a=3.0)
    yield f(X)
    s.n.b[0] = 4.0
    yield f(X)
    N.g = lambda self: 9.0
    yield f(X)
    N.__new__.__defaults__ = (5.0, [1.0])
    yield f(X)


@case
def varied_enum_alias_member(compiled: Any) -> Iterator[Any]:

    class E(enum.Enum):
        A = 2.0
        B = 3.0

        def g(self):
            return self.value

    s = Thing(e=E.A)
    f = compiled(lambda x: x * s.e.g() * len(E))
    yield f(X)
    s.e = E.B
    yield f(X)
    E.A._value_ = 7.0
    s.e = E.A
    yield f(X)


@case
def varied_flags(compiled: Any) -> Iterator[Any]:

    class F(enum.Flag):
        A = 1
        B = 2

    s = Thing(e=F.A)
    f = compiled(lambda x: x * (2 if F.B in s.e else 1) * (3 if s.e & F.A else 1))
    yield f(X)
    s.e = F.B
    yield f(X)
    s.e = F.A | F.B
    yield f(X)


@case
def varied_time_values(compiled: Any) -> Iterator[Any]:
    s = Thing(
        t=datetime.timedelta(seconds=2), f=fractions.Fraction(1, 2), u=uuid.UUID(int=5), p=pathlib.PurePath("a/b")
    )
    f = compiled(lambda x: x * s.t.total_seconds() * float(s.f) * s.u.int * len(s.p.parts))
    yield f(X)
    s.t *= 2
    yield f(X)
    s.f += 1
    yield f(X)
    s.u = uuid.UUID(int=6)
    yield f(X)
    s.p /= "c"
    yield f(X)


@case
def varied_context_copy(compiled: Any) -> Iterator[Any]:
    v = contextvars.ContextVar("v", default=2.0)
    f = compiled(lambda x: x * v.get())
    yield f(X)
    c = contextvars.copy_context()
    c.run(v.set, 5.0)
    yield c.run(f, X)
    yield f(X)
    t = v.set(3.0)
    yield f(X)
    v.reset(t)
    yield f(X)


@case
def varied_threadlocal_other_thread(compiled: Any) -> Iterator[Any]:
    l = threading.local()
    l.k = 2.0
    f = compiled(lambda x: x * getattr(l, "k", 1.0))
    yield f(X)
    r = []
    t = threading.Thread(target=lambda: r.append(f(X)))
    t.start()
    t.join()
    yield r[0]
    l.k = 3.0
    yield f(X)


@case
def varied_conditional_global_write(compiled: Any) -> Iterator[Any]:
    global GL
    GL = None
    s = Thing(on=True)

    def f(x):
        global GL
        if s.on:
            GL = x * 2
        return x if GL is None else GL + 1

    f = compiled(f)
    yield (f(X), GL)
    s.on = False
    yield (f(X), GL)
    GL = Z(5)
    yield f(X)
    s.on = True
    yield (f(X), GL)


@case
def varied_loop_write_then_read(compiled: Any) -> Iterator[Any]:
    s = Thing(h=Z(1), n=2)

    def f(x):
        for i in range(s.n):
            if i == 1:
                x = x + s.h
            s.h = x * 2
        return x

    f = compiled(f)
    for _ in range(2):
        yield (f(X), s.h)
    s.n = 1
    yield (f(X), s.h)
    s.n = 3
    yield (f(X), s.h)


@case
def varied_property_setter_state(compiled: Any) -> Iterator[Any]:

    class A:
        def __init__(s):
            s._h = Z(0)
            s.sets = 0

        @property
        def h(s):
            return s._h

        @h.setter
        def h(s, v):
            s._h = v

    a = A()

    def f(x):
        a.h = a.h + x
        return a.h

    f = compiled(f)
    for _ in range(3):
        yield (f(X), a._h)


@case
def varied_temp_attr(compiled: Any) -> Iterator[Any]:
    s = Thing()

    def f(x):
        s.cache = x * 2
        return s.cache.sum()

    f = compiled(f)
    yield (f(X), s.cache)
    yield (f(X * 2), s.cache)
    del s.cache
    yield (f(X), s.cache)


@case
def varied_list_attr_rebuilt(compiled: Any) -> Iterator[Any]:
    s = Thing(acts=[])

    def f(x):
        s.acts = [x, x * 2]
        return sum(s.acts)

    f = compiled(f)
    for i in range(3):
        yield (f(X * float(i)), s.acts)


@case
def varied_last_of_many(compiled: Any) -> Iterator[Any]:
    s = Thing(a=None)

    def f(x):
        for k in (1.0, 2.0):
            s.a = x * k
        return x

    f = compiled(f)
    for i in range(3):
        yield (f(X * float(i)), s.a)


@case
def varied_super_attr(compiled: Any) -> Iterator[Any]:

    class A:
        k = 2.0

        def g(s):
            return s.k

    class B(A):
        k = 3.0

        def g(s):
            return super().g() * super().k

    b = B()
    f = compiled(lambda x: x * b.g())
    yield f(X)
    A.k = 4.0
    yield f(X)
    b.k = 5.0
    yield f(X)
    A.g = lambda s: 1.0
    yield f(X)
    B.__bases__ = (type("C", (), {"k": 7.0, "g": lambda s: 2.0}),)
    yield f(X)


@case
def varied_same_line_lambdas(compiled: Any) -> Iterator[Any]:
    s = Thing(a=2.0, b=3.0, w=0)
    g = (lambda: s.a, lambda: s.b)
    f = compiled(lambda x: x * g[s.w]())
    yield f(X)
    s.w = 1
    yield f(X)
    s.b = 4.0
    yield f(X)
    s.a = 9.0
    yield f(X)
    s.w = 0
    yield f(X)


@case
def varied_multi_line_expr(compiled: Any) -> Iterator[Any]:
    s = Thing(a=2.0)

    def f(x):
        return x * s.a * (GK if s.a > 1 else GQ)

    f = compiled(f)
    global GK, GQ
    GK = 2.0
    GQ = 3.0
    yield f(X)
    GK = 4.0
    yield f(X)
    s.a = 0.5
    yield f(X)
    GQ = 5.0
    yield f(X)


@case
def varied_star_args(compiled: Any) -> Iterator[Any]:
    a = [2.0]
    k = {"j": 3.0}

    def g(i, j=1.0):
        return i * j

    f = compiled(lambda x: x * g(*a, **k))
    yield f(X)
    a[0] = 3.0
    yield f(X)
    k["j"] = 5.0
    yield f(X)
    k.clear()
    yield f(X)
    g.__defaults__ = (7.0,)
    yield f(X)


@case
def varied_random_draws(compiled: Any) -> Iterator[Any]:
    f = compiled(lambda x: x + pb.random.normal((2,)) if hasattr(pb.random, "normal") else x)
    pb.random.seed(0)
    yield f(X)
    yield f(X)
    pb.random.seed(0)
    yield f(X)
    s = pb.random.get_state()
    yield f(X)
    pb.random.set_state(s)
    yield f(X)
