"""A `torch.nn.Module` as a module of Pullback's: the same parameters and buffers, by name, on the same memory."""

from __future__ import annotations

import copy
import weakref
from contextlib import ExitStack, contextmanager
from threading import RLock
from typing import Any, Iterator, Self

import torch
from torch.utils.weak import WeakIdKeyDictionary

from .. import backends
from ..errors import ConfigurationError
from ..nn.module import _BUFFER, _PARAMETER, _UNSAVED, Module
from ..tensors.tensor import Tensor
from ..tensors.writing import separate
from . import torch_functions


class TorchModule(Module):
    """A `torch.nn.Module` as a `pb.nn.Module`; made by `pb.from_torch`.

    Its parameters are variables of Pullback's with the names and on the memory of the torch module's, frozen where
    those are frozen, and one variable where they are shared. What PyTorch writes to that memory shows at once. What
    Pullback writes (an optimizer, `load_state_dict`, `to_device`, `astype`) is a new array, as everywhere on PyTorch's
    devices; the torch module gets it when it is next used: when this module or the torch module is called, with
    `state_dict()` of the latter, or by `self.torch_module`, which gives the torch module as it should be now.

    Buffers that the torch module writes while it runs (the averages of batch norm) are buffers here. `train` and `eval`
    reach the torch module; dropout takes its numbers from PyTorch's generator. Hooks of the torch module are called.
    One thread at a time runs the torch module forward; gradients are computed side by side.

    >>> import torch, pullback as pb
    >>> model = pb.from_torch(torch.nn.Linear(2, 1))
    >>> [(name, p.shape) for name, p in model.named_parameters()]
    [('weight', (1, 2)), ('bias', (1,))]
    >>> optimizer = pb.optim.SGD(model.parameters(), lr=0.1)
    >>> model(pb.ones((4, 2))).mean().backward()
    >>> optimizer.step()
    >>> bool(torch.equal(model.torch_module.bias.detach(), model.bias.data))
    True
    """

    _binding: Binding

    def __init__(self, module: torch.nn.Module) -> None:
        self.__dict__["_binding"] = binding = Binding(module)
        self.__dict__["training"] = module.training
        for name, tensor in binding.tensors.items():
            self._kinds[name] = binding.kinds[name]
            self.__dict__[name] = tensor

    @property
    def torch_module(self) -> torch.nn.Module:
        """The torch module, with the values that the parameters and buffers have now."""
        self._binding.synchronize()
        return self._binding.module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the torch module's `forward`."""
        binding = self._binding
        module = binding.module
        name = f"from_torch({type(module).__name__})"
        names = [name for name in binding.first_names if self._kinds.get(name) == _PARAMETER]

        def function(captured: list[Any], args: Any, kwargs: Any) -> Any:
            return torch.func.functional_call(module, dict(zip(names, captured)), args, kwargs)

        with binding.running(self.training):
            parameters = [self.__dict__[name] for name in names]
            return torch_functions.run(name, function, parameters, args, kwargs, binding.device)

    def extra_repr(self) -> str:
        return repr(self._binding.module)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        made = _restored(copy.deepcopy(self.torch_module, memo), self._state())
        for name, tensor in made._binding.tensors.items():
            gradient = self.__dict__[name].grad
            tensor.grad = None if gradient is None else gradient.detach()
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _restored, (self.torch_module, self._state())

    def _state(self) -> dict[str, Any]:
        """What of this module is not in the torch module."""
        tracked = [name for name in self._binding.tensors if self.__dict__[name].requires_grad]
        return {"training": self.training, "tracked": tracked}


def _restored(module: torch.nn.Module, state: dict[str, Any]) -> Any:
    made = TorchModule(module)
    made.__dict__["training"] = state["training"]
    for name, tensor in made._binding.tensors.items():
        if made._kinds[name] == _PARAMETER:
            tensor.set_requires_grad(name in state["tracked"])
    return made


class Binding:
    """The tensors of a torch module and those of Pullback's that stand for them, kept equal."""

    def __init__(self, module: torch.nn.Module) -> None:
        self.module = module
        lock = RLock()
        self.tensors: dict[str, Tensor] = {}
        self.kinds: dict[str, str] = {}
        self.first_names: list[str] = []  # one for each parameter, however many names it has
        self.pairs: list[_Pair] = []
        self._mode = module.training
        self._written: dict[bool, dict[str, bool]] = {True: {}, False: {}}  # by mode: whether a run writes a buffer
        saved = set(module.state_dict().keys())
        known: dict[int, Tensor] = {}
        for path, owner in module.named_modules(remove_duplicate=False):
            for kind, entries in ((_PARAMETER, owner._parameters), (_BUFFER, owner._buffers)):
                for local, value in entries.items():
                    if value is None:
                        continue
                    name = f"{path}.{local}" if path else local
                    if torch.nn.parameter.is_lazy(value):
                        raise ConfigurationError(
                            f"from_torch: the parameter {name!r} has no shape yet. Call the torch module once first."
                        )
                    if hasattr(Module, name) or name in ("_binding", "training", "torch_module"):
                        raise ConfigurationError(
                            f"from_torch: a {kind} named {name!r} would hide an attribute of pb.nn.Module. Rename it."
                        )
                    self.kinds[name] = _UNSAVED if kind == _BUFFER and name not in saved else kind
                    if id(value) not in known:
                        pair = _pair_of(value, name, owner, local, lock)
                        known[id(value)] = pair.tensor
                        self.pairs.append(pair)
                        if kind == _PARAMETER:
                            self.first_names.append(name)
                    self.tensors[name] = known[id(value)]
        # bridges to one module, or to parts of it, have locks in common; all threads take them in one order
        locks = {id(pair.lock): pair.lock for pair in self.pairs} or {id(lock): lock}
        self._locks = [locks[key] for key in sorted(locks)]
        self._watch()

    def _watch(self) -> None:
        """Let the torch module have Pullback's values when it is used by itself."""
        for part in self.module.modules():
            part.register_forward_pre_hook(_Synchronize(self))
            part.register_state_dict_pre_hook(_Synchronize(self))
            part.register_load_state_dict_pre_hook(_Synchronize(self))

    @property
    def device(self) -> str | None:
        """Where the torch module is; None if it has no tensors."""
        return next((f"torch:{pair.theirs.device}" for pair in self.pairs), None)

    @contextmanager
    def running(self, training: bool) -> Iterator[None]:
        """Have the torch module ready to be run in this mode, by this thread alone."""
        with ExitStack() as stack:
            for lock in self._locks:
                stack.enter_context(lock)
            self.synchronize()
            if training != self._mode:  # modes of its parts are left alone otherwise
                self.module.train(training)
                self._mode = training
            buffers = [pair for pair in self.pairs if not pair.is_parameter]
            for pair in self.pairs:
                pair.uses += 1
            try:
                with _GuardedBuffers(buffers, self._written[training]):
                    yield
            finally:
                for pair in self.pairs:
                    pair.uses -= 1

    def synchronize(self) -> None:
        """Let both sides have what either has changed."""
        for pair in self.pairs:
            with pair.lock:
                pair.synchronize()


class _Synchronize:
    """A hook of a torch module's, which keeps the binding alive: what Pullback wrote is never lost.

    Copies of the module do without it, since their tensors are others.
    """

    def __init__(self, binding: Binding | None) -> None:
        self._binding = binding

    def __call__(self, module: torch.nn.Module, *args: Any) -> None:
        binding = self._binding
        if binding is not None:
            binding.synchronize()

    def __deepcopy__(self, memo: dict[int, Any]) -> _Synchronize:
        return _Synchronize(None)

    def __reduce__(self) -> Any:
        return _Synchronize, (None,)


class _Pair:
    """A tensor of a torch module and the one of Pullback's that stands for it."""

    def __init__(self, name: str, owner: torch.nn.Module, local: str, lock: Any) -> None:
        self.name = name
        self.lock = lock
        self.uses = 0  # by bridges that are running the torch module, whose tensors are not its own then
        self.owner = owner
        self.local = local
        self.is_parameter = local in owner._parameters
        self._adopted = self.theirs.detach()  # what the torch module had when both were equal
        self.tensor = Tensor()
        self.tensor._raw, self.tensor._node = self._adopted, None
        self._raw: Any = self._adopted  # what Pullback's had then
        self._version = _version(self.theirs)
        if self.is_parameter and self.theirs.requires_grad:
            self.tensor.set_requires_grad(True)

    @property
    def theirs(self) -> Any:
        """The torch module's tensor, which may be another object than before."""
        return getattr(self.owner, self.local)

    def synchronize(self) -> None:
        if self.uses:
            return
        is_ours_new = self.tensor._raw is not self._raw
        theirs = self.theirs
        is_theirs_new = not _is_same(theirs, self._adopted)
        if is_ours_new and (is_theirs_new or _version(theirs) != self._version):
            raise ConfigurationError(
                f"from_torch: {self.name!r} was changed both by PyTorch and by Pullback since the torch module was "
                "last used, and it is not known which values are meant. Get the torch module by `torch_module` of the "
                "bridge before PyTorch writes to it."
            )
        if is_ours_new:
            self.push()
        elif is_theirs_new:
            self.fetch()
        else:
            self._version = _version(theirs)

    def push(self) -> None:
        """Give the torch module Pullback's array."""
        raw = self.tensor._raw
        theirs = self.theirs
        if backends.of(raw).name != "torch":
            raw = backends.transfer(raw, f"torch:{theirs.device}", copy=True)
        theirs.data = raw
        self._adopted, self._raw, self._version = theirs.detach(), self.tensor._raw, _version(theirs)

    def fetch(self) -> None:
        """Give Pullback's tensor the torch module's array."""
        tensor, raw = self.tensor, self.theirs.detach()
        own = backends.of(tensor._raw)
        if own.name != "torch":
            raw = backends.transfer(raw, own.device_of(tensor._raw), copy=True)
        tracked, gradient = tensor.requires_grad, tensor.grad
        fits = raw.dtype == tensor._raw.dtype and raw.shape == tensor._raw.shape
        separate(tensor)
        if not fits:
            tensor.set_requires_grad(False)
            tensor.grad_cell.value = None
        tensor._raw, tensor._origin = raw, None
        if not fits:
            tensor.set_requires_grad(tracked)  # a new leaf, which knows the new dtype
            if gradient is not None and gradient.shape == tensor.shape:
                tensor.grad = gradient.astype(tensor.dtype)
        self._adopted, self._raw, self._version = self.theirs.detach(), raw, _version(self.theirs)


_pairs: Any = WeakIdKeyDictionary()  # weak references to pairs, by the torch module's tensor


def _pair_of(theirs: Any, name: str, owner: torch.nn.Module, local: str, lock: Any) -> _Pair:
    """The pair of a torch module's tensor, which is the same in every bridge: one parameter is one variable."""
    known = _pairs.get(theirs)
    pair = None if known is None else known()
    if pair is None:
        pair = _Pair(name, owner, local, lock)
        _pairs[theirs] = weakref.ref(pair)
    else:
        pair.synchronize()
    return pair


def _is_same(x: Any, y: Any) -> bool:
    """Whether two torch tensors are the same elements of the same memory."""
    return (
        x.dtype == y.dtype and x.shape == y.shape and x.device == y.device
        and x.data_ptr() == y.data_ptr() and x.stride() == y.stride()
    )  # fmt: skip


class _GuardedBuffers:
    """Let a torch module write its buffers while it runs, on copies: whoever holds the old values keeps them.

    Those that no run in the same mode has `written` so far are not copied, after the first run.
    """

    def __init__(self, pairs: list[_Pair], written: dict[str, bool]) -> None:
        self._pairs = pairs
        self._written = written

    def __enter__(self) -> None:
        self._before = []
        for pair in self._pairs:
            theirs = pair.theirs
            kept = theirs.detach()
            if self._written.get(pair.name, True):
                theirs.data = theirs.detach().clone()
            self._before.append((pair, kept, theirs.data_ptr(), _version(theirs)))

    def __exit__(self, *error: object) -> None:
        for pair, kept, address, version in self._before:
            theirs = pair.theirs
            is_written = self._written.get(pair.name)
            if not is_written:
                is_written = (
                    theirs.data_ptr() != address
                    or _version(theirs) != version
                    or (
                        is_written is None and not torch.equal(theirs, kept)  # batch norm's kernels leave no sign
                    )
                )
                self._written[pair.name] = is_written
            if is_written:
                pair.fetch()
            else:
                theirs.data = kept
        self._before = []


def _version(tensor: Any) -> int:
    return 0 if tensor.is_inference() else tensor._version
