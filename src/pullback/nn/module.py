"""The module: a piece of a model that holds its parameters, its buffers and other modules as plain attributes."""

from __future__ import annotations

from fnmatch import fnmatchcase
from itertools import groupby
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Mapping, Never, Self

from .. import dtypes, tree
from ..autodiff.creation import asarray
from ..errors import ConfigurationError, GradientError
from ..keywords import hide_others, unexpected
from ..markup import shown_safely
from ..pytorch_names import check_keywords, present, tell_of_missing
from ..tensors.tensor import Tensor
from . import hooks, naming, placement, state
from .rebuilding import from_tree, to_tree, to_variables

if TYPE_CHECKING:
    from ..typing import HasForward, P, R

_PARAMETER, _BUFFER, _UNSAVED = "parameter", "buffer", "buffer that is not saved"
_UNGUARDED = frozenset(("_kinds", "_slots"))
_OWN = _UNGUARDED | {"_hooks"}  # a module's attributes that are not the user's


class Module:
    """A piece of a model: what it computes is `forward`, what it learns are the tensors among its attributes.

    Write a subclass with a `forward`, and call the module: `model(x)`. A variable (a tensor that requires a gradient)
    assigned to an attribute becomes a parameter, and its name stays one, also when it is frozen or assigned again. A
    constant becomes a buffer, unless its name begins with an underscore. The result of an operation becomes neither.
    Modules and tensors in lists, tuples and dicts are found too. No `super().__init__()` is needed, and dataclasses
    work.

    Modules are trees (see `pb.tree`) whose leaves are the values of the parameters that require a gradient, so
    `pb.grad(loss)(model)` is a module of gradients.

    >>> import pullback as pb
    >>> class Scale(pb.nn.Module):
    ...     def __init__(self, features):
    ...         self.factor = pb.nn.Parameter(pb.ones(features))
    ...
    ...     def forward(self, x):
    ...         return self.factor * x
    >>> scale = Scale(2)
    >>> scale(pb.tensor([2.0, 3.0])).sum().backward()
    >>> scale.factor.grad
    tensor([2., 3.])
    """

    _known_by_identity = True  # to the compiler, as an argument
    _unguarded = _UNGUARDED  # not for the compiler's guards: what is in them follows from the other attributes
    training: bool
    _kinds: dict[str, str]  # what the tensor at a path is, from the first time it was seen
    _hooks: hooks.Hooks | None = None  # an attribute of the instance only as long as there are any
    _slots: dict[str, Any]  # paths whose values are a tree's leaves, whatever they are; equal objects: tied ones

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        if kwargs:
            check_keywords(cls, kwargs)
        if (args or kwargs) and cls.__init__ is object.__init__:  # else `ReLU(x)` would pass for a result
            if args and isinstance(args[0], bool):  # `ReLU(True)`
                check_keywords(cls, {"inplace": args[0]})
            raise TypeError(f"{cls.__name__}() takes no arguments. Make it first, then call it: {cls.__name__}()(x).")
        self = object.__new__(cls)
        self.__dict__.update(training=True, _kinds={}, _slots={})
        return self

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        tree.register(cls, to_tree, from_tree)
        tree.register_variables(cls, to_variables)

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        if isinstance(value, (Tensor, list, tuple, dict)):
            for path, part in _parts(name, value, self._slots):
                if isinstance(part, Tensor):
                    self._kind(path, part)

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)
        for path in [path for path in self._kinds if path.split(".")[0] == name]:
            del self._kinds[path]

    def __dir__(self) -> list[str]:
        return present(self, super().__dir__())

    def __copy__(self) -> Self:
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__, _kinds=dict(self._kinds), _slots=dict(self._slots))
        return copy

    def __call__(self: HasForward[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            if self._hooks is None:  # type: ignore[attr-defined]
                return self.forward(*args, **kwargs)
            return hooks.call(self, self._hooks, args, kwargs)  # type: ignore[attr-defined, arg-type]
        except naming.NAMED as error:
            naming.name_layer(error, self, (*args, *kwargs.values()))  # type: ignore[arg-type]
            raise

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; calling the module calls this, with its `args` and `kwargs`. See `pb.nn.Module`."""
        raise NotImplementedError(f"{type(self).__name__} has no `forward`: define `def forward(self, x): ...` in it.")

    # -- what is in it -----------------------------------------------------------------------------

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """The names and tensors of all parameters, frozen ones included; one in several places comes once.

        Returns
        -------
        iterator of (str, Tensor)
            For an optimizer, or to look at them.

        Examples
        --------
        >>> import pullback as pb
        >>> [(name, p.shape) for name, p in pb.nn.Linear(3, 2).named_parameters()]
        [('weight', (2, 3)), ('bias', (2,))]
        """
        return self._named_tensors((_PARAMETER,))

    def parameters(self) -> Iterator[Tensor]:
        """All parameters, frozen ones included; see `named_parameters`."""
        return (tensor for _, tensor in self.named_parameters())

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """The names and tensors of all buffers: tensors that belong to the model but are not learned.

        >>> import pullback as pb
        >>> [name for name, _ in pb.nn.BatchNorm1d(3).named_buffers()]
        ['running_mean', 'running_var', 'num_batches_tracked']
        """
        return self._named_tensors((_BUFFER, _UNSAVED))

    def buffers(self) -> Iterator[Tensor]:
        """All buffers; see `named_buffers`."""
        return (tensor for _, tensor in self.named_buffers())

    def named_modules(self) -> Iterator[tuple[str, Module]]:
        """The names and modules of the whole tree, this one (named "") first; one in several places comes once.

        >>> import pullback as pb
        >>> [name for name, _ in pb.nn.Sequential(pb.nn.Linear(3, 2), pb.nn.ReLU()).named_modules()]
        ['', '0', '1']
        """
        return self._tree(once=True)

    def modules(self) -> Iterator[Module]:
        """All modules of the tree; see `named_modules`."""
        return (module for _, module in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The names and modules that this one holds itself.

        >>> import pullback as pb
        >>> [name for name, _ in pb.nn.Sequential(pb.nn.Linear(3, 2), pb.nn.ReLU()).named_children()]
        ['0', '1']
        """
        seen: set[int] = set()
        for path, value in self._entries():
            if isinstance(value, Module) and id(value) not in seen:
                seen.add(id(value))
                yield path, value

    def children(self) -> Iterator[Module]:
        """The modules that this one holds itself; see `named_children`."""
        return (module for _, module in self.named_children())

    def num_parameters(self) -> int:
        """How many numbers the parameters have together.

        >>> import pullback as pb
        >>> pb.nn.Linear(3, 2).num_parameters()
        8
        """
        return sum(parameter.size for parameter in self.parameters())

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Make `tensor` a buffer; one that is not `persistent` is moved with the model but not saved with it.

        >>> import pullback as pb
        >>> class Causal(pb.nn.Module):
        ...     def __init__(self, length):
        ...         self.register_buffer("mask", pb.tril(pb.ones((length, length))), persistent=False)
        >>> list(Causal(3).state_dict()), [name for name, _ in Causal(3).named_buffers()]
        ([], ['mask'])
        """
        if getattr(tensor, "requires_grad", False):
            raise GradientError(
                f"register_buffer: {name!r} requires a gradient, and a buffer is not learned. Write `tensor.detach()`, "
                f"or assign it to make it a parameter."
            )
        self._register(name, tensor, _BUFFER if persistent else _UNSAVED)

    def register_parameter(self, name: str, tensor: Any) -> None:
        """Make `tensor` a parameter even if it requires no gradient (a frozen one).

        >>> import pullback as pb
        >>> class Scaled(pb.nn.Module):
        ...     def __init__(self):
        ...         self.register_parameter("factor", pb.ones(2))
        >>> [name for name, _ in Scaled().named_parameters()]
        ['factor']
        """
        self._register(name, tensor, _PARAMETER)

    def _register(self, name: str, tensor: Any, kind: str) -> None:
        if not isinstance(name, str) or not name.isidentifier() or hasattr(type(self), name):
            raise ConfigurationError(
                f"{type(self).__name__}: {name!r} cannot name a {kind}: it must be an identifier that is no method."
            )
        self._kinds[name] = kind
        setattr(self, name, None if tensor is None else asarray(tensor))

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call `fn` with every module of the tree, parts before what they are part of; returns the module.

        Parameters
        ----------
        fn : callable
            A function of a module. What it returns is not used.

        Returns
        -------
        Module
            The module itself.

        Examples
        --------
        >>> import pullback as pb
        >>> def start(module):
        ...     if isinstance(module, pb.nn.Linear):
        ...         pb.nn.init.ones_(module.weight)
        >>> model = pb.nn.Sequential(pb.nn.Linear(2, 1), pb.nn.ReLU()).apply(start)
        >>> model[0].weight
        tensor([[1., 1.]], requires_grad=True)
        """
        for module in self._parts_first(set()):
            fn(module)
        return self

    # -- hooks -------------------------------------------------------------------------------------

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> hooks.HookHandle:
        """Have `hook(module, args, output)` called after every call; what it returns, if not None, is the output.

        A compiled function calls hooks while it is traced, and is traced again when they have changed; a hook that
        does something else than compute, as keeping the output in a list, is refused there.

        Parameters
        ----------
        hook : callable
            A function of the module, the tuple of its arguments and its output.
        prepend : bool
            Whether it is called before the hooks that are there already.
        with_kwargs : bool
            Whether it is called with the keyword arguments as well: `hook(module, args, kwargs, output)`.

        Returns
        -------
        HookHandle
            `handle.remove()` takes the hook away; in a `with` statement its end does.

        Examples
        --------
        >>> import pullback as pb
        >>> model = pb.nn.Sequential(pb.nn.Linear(3, 2), pb.nn.ReLU())
        >>> seen = []
        >>> with model[0].register_forward_hook(lambda module, args, output: seen.append(output.shape)):
        ...     _ = model(pb.ones((5, 3)))
        >>> seen
        [(5, 2)]
        """
        return hooks.register(self, "after", hook, prepend, with_kwargs)

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> hooks.HookHandle:
        """Have `hook(module, args)` called before every call; what it returns, if not None, are the arguments.

        One value in place of a tuple is the only argument. See `register_forward_hook`.

        Parameters
        ----------
        hook : callable
            A function of the module and the tuple of its arguments.
        prepend : bool
            Whether it is called before the hooks that are there already.
        with_kwargs : bool
            Whether it is called with the keyword arguments as well, `hook(module, args, kwargs)`; what it returns is
            then a pair of both, or None.

        Returns
        -------
        HookHandle
            `handle.remove()` takes the hook away; in a `with` statement its end does.

        Examples
        --------
        >>> import pullback as pb
        >>> relu = pb.nn.ReLU()
        >>> handle = relu.register_forward_pre_hook(lambda module, args: -args[0])
        >>> relu(pb.tensor([1.0, -2.0]))
        tensor([0., 2.])
        >>> handle.remove()
        >>> relu(pb.tensor([1.0, -2.0]))
        tensor([1., 0.])
        """
        return hooks.register(self, "before", hook, prepend, with_kwargs)

    # -- saving and loading ------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Tensor]:
        """Parameters and buffers by name. They share memory with the module until one of the two is written.

        Returns
        -------
        dict of str to Tensor
            For `load_state_dict`, or for `pb.save`.

        Examples
        --------
        >>> import pullback as pb
        >>> list(pb.nn.BatchNorm1d(3).state_dict())
        ['weight', 'bias', 'running_mean', 'running_var', 'num_batches_tracked']
        """
        return {name: tensor.detach() for name, tensor in self._saved()}

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> state.Differences:
        """Write the values of `state_dict` (tensors or arrays of any library) into this module's tensors, in place.

        Nothing is written unless everything fits. Numbers of another width are converted. Of tensors in several places
        one name is enough.

        Parameters
        ----------
        state_dict : mapping of str to array
            Tensors or arrays of any library, by name.
        strict : bool
            Whether every name must be on both sides. Otherwise names that only one side has are passed over.

        Returns
        -------
        Differences
            The names passed over: `missing` here, `unexpected` in `state_dict`.

        Examples
        --------
        >>> import numpy as np, pullback as pb
        >>> layer = pb.nn.Linear(2, 1)
        >>> layer.load_state_dict({"weight": np.array([[1.0, 2.0]])}, strict=False)
        Differences(missing=['bias'], unexpected=[])
        >>> layer.weight
        tensor([[1., 2.]], requires_grad=True)
        """
        return state.load(type(self).__name__, dict(self._saved()), state_dict, strict)

    # -- modes, places and dtypes ------------------------------------------------------------------

    def train(self, mode: bool = True) -> Self:
        """Put the whole tree into training mode, where dropout and batch statistics act; `eval` leaves it.

        Parameters
        ----------
        mode : bool
            False leaves training mode, as `eval` does.

        Returns
        -------
        Module
            The module itself.

        Examples
        --------
        >>> import pullback as pb
        >>> model = pb.nn.Sequential(pb.nn.Linear(2, 2), pb.nn.Dropout()).eval()
        >>> model.training, model.train().training
        (False, True)
        """
        for module in self.modules():
            vars(module)["training"] = bool(mode)  # a frozen dataclass has modes too
        return self

    def eval(self) -> Self:
        """Leave training mode, so that dropout does nothing and batch statistics stay; returns the module.

        >>> import pullback as pb
        >>> pb.nn.Dropout().eval()(pb.ones(3))
        tensor([1., 1., 1.])
        """
        return self.train(False)

    def freeze(self, *patterns: str) -> Self:
        """Let parameters require no gradient: all, or those whose names match a pattern.

        No gradient is computed or kept for a frozen parameter.

        Parameters
        ----------
        *patterns : str
            Whole names, in which `*` stands for any characters. Without one all parameters are meant.

        Returns
        -------
        Module
            The module itself.

        Examples
        --------
        >>> import pullback as pb
        >>> model = pb.nn.Sequential(pb.nn.Linear(2, 2), pb.nn.Linear(2, 2)).freeze("0.*")
        >>> [name for name, p in model.named_parameters() if p.requires_grad]
        ['1.weight', '1.bias']
        """
        return self._set_requires_grad(patterns, False)

    def unfreeze(self, *patterns: str) -> Self:
        """Undo `freeze`: all parameters, or those matching `patterns`, require a gradient again; returns the module.

        See `freeze` for patterns.
        """
        return self._set_requires_grad(patterns, True)

    def _set_requires_grad(self, patterns: tuple[str, ...], flag: bool) -> Self:
        entries = [entry for entry in self._tensors(once=True) if entry[1] == _PARAMETER]
        for pattern in patterns:
            if not any(fnmatchcase(name, pattern) for name, *_ in entries):
                raise ConfigurationError(
                    f"{'unfreeze' if flag else 'freeze'}: no parameter of {type(self).__name__} matches {pattern!r}. "
                    f"{state.nearest(pattern, [name for name, *_ in entries])}"
                )
        for name, _, owner, path, parameter in entries:
            if not patterns or any(fnmatchcase(name, pattern) for pattern in patterns):
                parameter.set_requires_grad(flag)
                owner._slots.pop(path, None)  # from here on this says whether it is a leaf
        return self

    def zero_grad(self, set_to_none: bool = False) -> None:
        """Set the gradients of all parameters to zero, keeping their memory.

        Parameters
        ----------
        set_to_none : bool
            Whether to forget the gradients instead, as PyTorch does: an optimizer then leaves a parameter alone that
            no `backward` has reached since.

        Examples
        --------
        >>> import pullback as pb
        >>> layer = pb.nn.Linear(2, 1)
        >>> layer(pb.ones(2)).sum().backward()
        >>> layer.zero_grad()
        >>> layer.bias.grad
        tensor([0.])
        """
        for parameter in self.parameters():
            if set_to_none:
                parameter.grad = None
            else:
                parameter.zero_grad()

    def to_device(self, device: str) -> Self:
        """Move parameters, gradients and buffers to `device`; the tensors stay the same objects. Returns the module.

        Parameters
        ----------
        device : str
            Such as "numpy" or "torch:cuda"; see `pb.device`.

        Returns
        -------
        Module
            The module itself.

        Examples
        --------
        >>> import pullback as pb
        >>> pb.nn.Linear(2, 1).to_device("numpy").weight.device
        'numpy'
        """
        placement.move(self._all_tensors(), device=device)
        return self

    def astype(self, dtype: Any) -> Self:
        """Convert floating-point parameters, gradients and buffers to `dtype`, also in place; returns the module.

        Parameters
        ----------
        dtype : dtype
            Such as `pb.float64` or `pb.bfloat16`.

        Returns
        -------
        Module
            The module itself.

        Examples
        --------
        >>> import pullback as pb
        >>> pb.nn.Linear(2, 1).astype(pb.float64).weight.dtype
        pullback.float64
        """
        modules = list(self.modules())
        exact = {id(tensor) for module in modules for tensor in module._exact_tensors()}
        placement.move([tensor for tensor in self._all_tensors() if id(tensor) not in exact], dtype=dtype)
        for module in modules:
            module._note_dtype(dtypes.get(dtype))
        return self

    def _exact_tensors(self) -> Iterable[Tensor]:
        """Those of its own tensors that `astype` leaves as they are."""
        return ()

    def _note_dtype(self, dtype: dtypes.DType) -> None:
        """Take note of what `astype` has converted the others to."""

    # -- printing ----------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """What `repr` shows of this module beside its name and its children; a subclass may say something here.

        >>> import pullback as pb
        >>> pb.nn.Linear(3, 2).extra_repr()
        'in_features=3, out_features=2, bias=True'
        """
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        children = [(path, repr(child)) for path, child in self._entries() if isinstance(child, Module)]
        if not children:
            return f"{type(self).__name__}({extra})"
        lines = [extra] if extra else []
        for text, same in groupby(children, key=lambda child: child[1]):
            paths = [path for path, _ in same]
            if len(paths) > 1 and "\n" in text:  # equal ones in a row, where they would take up much room
                lines.append(f"({paths[0]}-{paths[-1]}): {len(paths)} x {text}")
            else:
                lines += [f"({path}): {text}" for path in paths]
        return "\n".join([f"{type(self).__name__}(", *("  " + line.replace("\n", "\n  ") for line in lines), ")"])

    @shown_safely
    def _repr_html_(self) -> str:
        """What a notebook shows: the tree of layers with their parameters, shapes and bytes."""
        from .notebook import html

        return html(self)

    # -- walking the tree --------------------------------------------------------------------------

    def _entries(self) -> Iterator[tuple[str, Any]]:
        """The paths and values of the tensors and modules that this one holds itself."""
        for name, value in list(vars(self).items()):
            if name not in _OWN:
                yield from _parts(name, value, self._slots)

    def _tree(self, once: bool, prefix: str = "", seen: set[int] | None = None) -> Iterator[tuple[str, Module]]:
        """The modules of the tree, parents first: each one `once`, or in every place where it is."""
        seen = set() if seen is None else seen
        if id(self) in seen:
            return
        seen.add(id(self))
        yield prefix, self
        for path, value in self._entries():
            if isinstance(value, Module) and path not in self._slots:
                yield from value._tree(once, f"{prefix}.{path}" if prefix else path, seen)
        if not once:
            seen.discard(id(self))  # only a module inside itself is left out

    def _parts_first(self, seen: set[int]) -> Iterator[Module]:
        """The modules of the tree, each once, parts before what they are part of."""
        seen.add(id(self))
        for child in self.children():
            if id(child) not in seen:
                yield from child._parts_first(seen)
        yield self

    def _guarded_members(self) -> tuple[Any, ...]:
        """What walking the tree looks at in this module, for the compiler's guards."""
        return tuple([value for _, value in self._entries()])

    def _kind(self, path: str, value: Any) -> str | None:
        """What the tensor at `path` is; None for one that does not belong to the model, as an activation kept."""
        kind = self._kinds.get(path)
        if kind in (None, _BUFFER) and value.is_leaf:
            if value.requires_grad:  # also what was assigned first and became a variable afterwards
                kind = self._kinds[path] = _PARAMETER
            elif kind is None and not path.startswith("_") and not value._carries_derivative:
                kind = self._kinds[path] = _BUFFER
        return kind

    def _tensors(self, once: bool) -> Iterator[tuple[str, str, Module, str, Tensor]]:
        """(name, kind, module, path in it, tensor) of everything that belongs to the model, parameters first."""
        for prefix, module in self._tree(once):
            found = []
            for path, value in module._entries():
                if path in module._slots or isinstance(value, Tensor):
                    kind = module._kind(path, value)
                    if kind is not None:
                        found.append((f"{prefix}.{path}" if prefix else path, kind, module, path, value))
            yield from sorted(found, key=lambda entry: entry[1] != _PARAMETER)

    def _named_tensors(self, kinds: tuple[str, ...]) -> Iterator[tuple[str, Tensor]]:
        seen: set[int] = set()
        for name, kind, _, _, tensor in self._tensors(once=True):
            if kind in kinds and id(tensor) not in seen:
                seen.add(id(tensor))
                yield name, tensor

    def _all_tensors(self) -> list[Tensor]:
        return [tensor for _, tensor in self._named_tensors((_PARAMETER, _BUFFER, _UNSAVED))]

    def _saved(self) -> Iterator[tuple[str, Tensor]]:
        """Names and tensors of the state, in every place where they are."""
        return ((name, tensor) for name, kind, _, _, tensor in self._tensors(once=False) if kind != _UNSAVED)


def _parts(path: str, value: Any, slots: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The tensors and modules in `value`, which may be one itself, or a container of them."""
    if path in slots or isinstance(value, (Tensor, Module)):
        yield path, value
    elif isinstance(value, (list, tuple, dict)):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            if slots or isinstance(part, (Tensor, Module, list, tuple, dict)):
                yield from _parts(f"{path}.{key}", part, slots)


tree.register(Module, to_tree, from_tree)
tree.register_variables(Module, to_variables)
tell_of_missing(Module)


@hide_others
def Parameter(  # noqa: N802
    data: Any, dtype: Any = None, device: str | None = None, **other: Never
) -> Tensor:
    """A new variable with the values of `data`: what a module takes for a parameter.

    Parameters
    ----------
    data : array
        The first values. They are copied.
    dtype : dtype, optional
        By default that of `data`; Python floats become `pb.default_dtype()`.
    device : str, optional
        By default where `data` is.

    Returns
    -------
    Tensor
        A variable: it requires a gradient.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.Parameter(pb.zeros(2))
    tensor([0., 0.], requires_grad=True)
    """
    if other or isinstance(dtype, bool):  # PyTorch's second argument is `requires_grad`
        raise unexpected("Parameter", other or {"requires_grad": dtype})
    return asarray(data, dtype=dtype, device=device, copy=True).detach().set_requires_grad(True)
