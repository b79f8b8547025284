"""What all optimizers share: groups of parameters, where gradients come from, and a step over all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, ClassVar, Iterable, Mapping, Sequence, overload

import numpy as np

from .. import backends, modes
from ..autodiff import guard, pending
from ..autodiff.base import resolved
from ..autodiff.forward import Dual
from ..autodiff.gradients import Gradients, in_lists
from ..autodiff.graph import Leaf
from ..errors import ConfigurationError, DeviceError, DtypeError, GradientError, ShapeError
from ..pytorch_names import KeywordsChecked
from ..tensors.quantized import QuantizedTensor
from ..tensors.tensor import Tensor
from . import overflow, state
from .arithmetic import Arithmetic, arithmetic_of
from .options import check_options
from .slots import Joined, ScratchPool, Slot

if TYPE_CHECKING:
    from ..typing import R

__all__ = ["Optimizer"]

Group = dict[str, Any]  # "params" and an optimizer's options
Arrays = Sequence[Any]

_ndarray = np.ndarray


class Optimizer(KeywordsChecked):
    """The base of all optimizers; a subclass has options, and a formula in `update` that runs on every backend.

    `params` are tensors, (name, tensor) pairs, or groups of them: dicts with "params" and options of their own.
    `defaults` are the options of groups that do not have their own. Writable NumPy arrays are parameters too: they are
    updated in place, and `step` is given their gradients. Half-precision parameters are updated in float32, in which
    their state is kept, and rounded once per step.

    >>> import pullback as pb
    >>> class SignDescent(pb.optim.Optimizer):
    ...     def __init__(self, params, lr=0.1):
    ...         super().__init__(params, {"lr": lr})
    ...     def constants(self, group, step):
    ...         return (group["lr"],)
    ...     def update(self, xp, group, constants, w, g, buffers, spare, out):
    ...         change = xp.multiply(xp.sign(g, spare[0]), constants[0], spare[0])
    ...         return (xp.subtract(w, change, out),)
    >>> w = pb.tensor([1.0, -2.0], requires_grad=True)
    >>> SignDescent([w]).step(pb.backward((w * w).sum()))
    >>> w
    tensor([ 0.9, -1.9], requires_grad=True)
    """

    #: Whether an element's update depends on that element alone, so that arrays may be updated in pieces or joined.
    elementwise: ClassVar[bool] = True
    #: Whether the saved state has the number of steps, as it has in PyTorch.
    counts_steps: ClassVar[bool] = True
    #: How many scratch arrays `update` needs.
    scratch: ClassVar[int] = 2
    #: Whether `update` calls nothing but functions of `xp`, not its `kernels`, and may be given lists of arrays. A
    #: subclass with another `update` says so again.
    takes_lists: ClassVar[bool] = False

    param_groups: list[dict[str, Any]]

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.param_groups = []
        self.scratch_pool = ScratchPool()
        self._slots: list[list[Slot]] = []  # per group
        self._last_constants: tuple[Any, tuple[Any, ...]] = (None, ())
        check_options(self._name, defaults, defaults)
        if isinstance(params, (Tensor, _ndarray, Mapping)) or not isinstance(params, Iterable):
            hint = "pb.tree.leaves(parameters)" if isinstance(params, Mapping) else "[w, b]"
            hint = "model.parameters()" if hasattr(params, "parameters") else hint
            raise ConfigurationError(
                f"{self._name}: expected several parameters, got {type(params).__name__}. Write for example `{hint}`."
            )
        entries = list(params)
        if not entries:
            raise ConfigurationError(f"{self._name}: there are no parameters to optimize.")
        for group in entries if isinstance(entries[0], Mapping) else [{"params": entries}]:
            self.add_param_group(group)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "update" in cls.__dict__ and "takes_lists" not in cls.__dict__:
            cls.takes_lists = False

    # -- what a subclass gives ---------------------------------------------------------------------

    def buffer_names(self, group: Group, parameter: Any) -> tuple[str, ...]:
        """The names of the arrays that are kept for a parameter (a raw array) with the options `group`."""
        return ()

    def new_buffer(self, name: str, group: Group, parameter: Any, dtype: Any, kernels: Any) -> Any:
        """The buffer `name` before the first update: zeros like the parameter unless a subclass says otherwise.

        `group` has the options, and `kernels` are those of the parameter's backend.
        """
        return kernels.zeros(tuple(parameter.shape), dtype, parameter)

    def step_state(self, group: Group, step: int) -> dict[str, float]:
        """Numbers that follow from the count of steps and are in the saved state, as PyTorch has them there."""
        return {}

    def constants(self, group: Group, step: int) -> tuple[float, ...]:
        """The numbers in the formula at the `step`-th update of a parameter (from 1 on), with the options `group`."""
        raise NotImplementedError

    def update(
        self, xp: Arithmetic, group: Group, constants: Arrays, w: Any, g: Any, buffers: Arrays, spare: Arrays, out: Any
    ) -> Arrays:
        """The formula: the new value of the parameter `w` with gradient `g`, written to `out`, and the new buffers.

        All are raw arrays, and `xp` has the functions for them; `group` has the options, and `constants` what
        `constants` gave. It may write to `buffers` and `spare`, and to `out`, which may be `w` itself; never to `g`.
        """
        raise NotImplementedError

    def check_parameter(self, parameter: Any, label: str) -> None:
        """Raise if this optimizer cannot update `parameter`, which an error calls `label`."""

    # -- groups ------------------------------------------------------------------------------------

    @property
    def _name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        options = [", ".join(f"{key}={group[key]!r}" for key in self.defaults) for group in self.param_groups]
        return f"{self._name}({'; '.join(options)})"

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Add parameters, with options of their own where `group` has them.

        >>> import pullback as pb
        >>> w, b = (pb.tensor([1.0], requires_grad=True) for _ in range(2))
        >>> optimizer = pb.optim.SGD([w], lr=0.1)
        >>> optimizer.add_param_group({"params": [b], "lr": 0.01})
        >>> [group["lr"] for group in optimizer.param_groups]
        [0.1, 0.01]
        """
        if not isinstance(group, Mapping) or "params" not in group:
            raise ConfigurationError(f'{self._name}: a group is a dict with "params", got {group!r:.60}')
        given = group["params"]
        entries = [given] if isinstance(given, (Tensor, _ndarray)) else list(given)
        named = [entry for entry in entries if isinstance(entry, tuple)]
        if named and (len(named) < len(entries) or any(len(entry) != 2 for entry in named)):
            raise ConfigurationError(f"{self._name}: give (name, tensor) pairs for all parameters of a group or none.")
        names = [str(entry[0]) for entry in named]
        parameters = [entry[1] for entry in named] if named else entries
        options = {key: value for key, value in group.items() if key != "params"}
        check_options(self._name, self.defaults, options)
        before = [slot for slots in self._slots for slot in slots]
        added = [
            Slot(parameter, f"parameter {name!r}" if names else f"parameter {len(before) + i}")
            for i, (parameter, name) in enumerate(zip(parameters, names or parameters))
        ]
        seen = {_identity(slot.parameter): slot.label for slot in before}
        for slot in added:
            self._check_kind(slot.parameter, slot.label)
            other = seen.setdefault(_identity(slot.parameter), slot.label)
            if other is not slot.label:
                raise ConfigurationError(f"{self._name}: {slot.label} is the same variable as {other}; name it once.")
            self.check_parameter(slot.parameter, slot.label)
        if len({isinstance(slot.parameter, Tensor) for slot in before + added}) > 1:
            raise ConfigurationError(f"{self._name}: parameters must all be tensors, or all be NumPy arrays.")
        self.param_groups.append(
            {"params": parameters, **({"param_names": names} if names else {}), **self.defaults, **options}
        )
        self._slots.append(added)

    def _check_kind(self, parameter: Any, label: str) -> None:
        if type(parameter) is _ndarray:
            if not parameter.flags.writeable:
                raise ConfigurationError(f"{self._name}: {label} is a read-only NumPy array. Pass a copy of it.")
            dtype = backends.NUMPY.dtype_of(parameter)
        elif isinstance(parameter, Tensor) and not isinstance(parameter, (Dual, QuantizedTensor)):
            node: Any = resolved(parameter)._node
            if node is not None and type(node) is not Leaf:
                raise GradientError(
                    f"{self._name}: {label} is the result of `{node.recipe.operation.name}`, not a variable, and an "
                    "update would not reach the variables it was made from. Pass those, or `t.detach()`."
                )
            dtype = parameter.dtype
        else:
            write = " Write `model.parameters()`." if hasattr(parameter, "parameters") else ""
            raise DtypeError(
                f"{self._name}: {label} is neither a tensor nor an array but {type(parameter).__name__}.{write}"
            )
        if dtype.kind != "float":
            instead = "its real and imaginary parts as two tensors" if dtype.kind == "complex" else "float tensors"
            raise DtypeError(f"{self._name}: {label} is {dtype.name}. Optimize {instead}.")

    # -- steps -------------------------------------------------------------------------------------

    @overload
    def step(self, grads: Callable[[], R]) -> R: ...
    @overload
    def step(self, grads: Gradients | Sequence[Any] | None = None) -> None: ...
    def step(self, grads: Any = None) -> Any:
        """Update the parameters.

        The order of a training step is `loss.backward()`, `optimizer.step()`, `optimizer.zero_grad()`. Parameters
        without a gradient stay as they are; an error changes nothing.

        Parameters
        ----------
        grads : Gradients, list or callable, optional
            A `pb.Gradients`, or a list with a gradient or None per parameter. By default the gradients that
            `backward` left in `.grad` (a frozen tensor's is not used). A function is called first: it leaves
            gradients in `.grad` and returns the loss.

        Returns
        -------
        Tensor or None
            What the function returned, if one was given.

        Examples
        --------
        >>> import pullback as pb
        >>> w = pb.tensor([1.0, 2.0], requires_grad=True)
        >>> optimizer = pb.optim.SGD([w], lr=0.1)
        >>> optimizer.step(pb.backward((w * w).sum()))
        >>> w
        tensor([0.8, 1.6], requires_grad=True)
        """
        loss = None
        if callable(grads):
            with modes.enable_grad():
                loss = grads()
            grads = None
        trace = modes.tracing()
        if trace is not None:
            trace.step(self, self._gathered(grads), arithmetic_of(trace.backend))
            return loss
        work = []
        for group, found in self._gathered(grads):
            step, dtype, xp, constants = 0, None, None, ()
            for slot, gradient in found:
                slot.prepare(self, group)
                if slot.step + 1 != step or slot.working is not dtype or slot.arithmetic is not xp:
                    step, dtype, xp = slot.step + 1, slot.working, slot.arithmetic
                    constants = self._constants_for(self.constants(group, step), xp, dtype)
                work.append((slot, group, constants, gradient))
        noted = overflow.Overflow()
        with np.errstate(all="ignore", over="call", call=noted):  # a warning would stop half-way
            before = overflow.Before(work) if overflow.may_overflow(work, type(grads) in (list, tuple)) else None
            self._advance(work, noted)
        if (before is not None or noted.happened) and guard.mode()[0] != "off":
            with np.errstate(all="ignore"):
                overflow.refuse(self._name, work, before)
        return loss

    def _advance(self, work: list[tuple[Slot, Group, tuple[Any, ...], Any]], noted: overflow.Overflow) -> None:
        """Make the updates, those that can be made together in lists of a bounded size: they need as much room.

        `noted` is told of what overflows.
        """
        batches: list[Joined] = []
        open_batches: dict[Any, Joined] = {}
        single = []
        for entry in work:
            slot, group, constants, gradient = entry
            if not slot.joined:
                single.append(entry)
                continue
            key = (id(group), constants, slot.device, slot.dtype)
            batch = open_batches.get(key)
            if batch is None:
                batch = open_batches[key] = Joined(group, constants)
                batches.append(batch)
            if batch.add(slot, gradient):
                del open_batches[key]
        if pending.checks:
            pending.look()  # now that all else is ready: before gradients that are not finite change a parameter
        for slot, group, constants, gradient in single:
            slot.advance(self, group, constants, gradient, noted)
        for batch in batches:
            batch.advance(self)

    def _constants_for(self, values: tuple[float, ...], xp: Any, dtype: Any) -> tuple[Any, ...]:
        """The numbers of an update as its arithmetic takes them; those of the last update if they are the same."""
        key = (values, id(xp), dtype)
        if key != self._last_constants[0]:
            self._last_constants = (key, xp.constants(values, dtype))
        return self._last_constants[1]

    def zero_grad(self, set_to_none: bool = False) -> None:
        """Set the gradients of all parameters to zero, keeping their memory.

        Parameters
        ----------
        set_to_none : bool
            Whether to forget the gradients instead, as PyTorch does: the next `step` leaves a parameter alone that no
            `backward` has reached since. One whose gradient is zeros is moved by momentum and weight decay.

        Examples
        --------
        >>> import pullback as pb
        >>> w = pb.tensor([1.0], requires_grad=True)
        >>> (w * w).sum().backward()
        >>> pb.optim.SGD([w]).zero_grad()
        >>> w.grad
        tensor([0.])
        """
        modes.note_use(self)
        parameters = [slot.parameter for slots in self._slots for slot in slots if isinstance(slot.parameter, Tensor)]
        if set_to_none:
            for parameter in parameters:
                parameter.grad = None
            return
        lists = in_lists([p.grad_cell.value for p in parameters if p.grad_cell.value is not None])
        for backend, raws in lists or ():
            backend.lists.fill_with_zeros(raws)
        for parameter in parameters if lists is None else ():
            parameter.zero_grad()

    def traced_by(self, trace: Any) -> None:
        """What a trace notes of an optimizer that a function uses: its parameters, and which have a gradient."""
        trace.note_optimizer(self)

    def _gathered(self, grads: Any) -> list[tuple[Group, list[tuple[Slot, Any]]]]:
        """The parameters that have a gradient, with it as a raw array, by group."""
        listed = None
        if isinstance(grads, (list, tuple)):
            count = sum(map(len, self._slots))
            if len(grads) != count:
                raise ShapeError(f"step: {len(grads)} gradients for {count} parameters; give None where there is none.")
            listed = iter(grads)
        elif grads is not None and type(grads) is not Gradients:
            raise DtypeError(
                f"step: expected a pb.Gradients or a list with a gradient per parameter, got {type(grads).__name__}."
            )
        work = []
        trace = modes.tracing()
        for group, slots in zip(self.param_groups, self._slots):
            found = []
            for slot in slots:
                parameter = slot.parameter
                if listed is not None:
                    gradient = next(listed)
                elif grads is not None:
                    gradient = grads.get(parameter) if isinstance(parameter, Tensor) else None
                elif isinstance(parameter, Tensor):
                    node = (parameter if trace is None else trace.resolve(parameter))._node
                    gradient = None
                    if type(node) is Leaf:
                        gradient = (node.cell if trace is None else trace.cell(node.cell))._value
                else:
                    raise ConfigurationError("step: NumPy arrays have no `.grad`. Pass a list with their gradients.")
                if gradient is not None:
                    raw = gradient
                    if isinstance(gradient, Tensor):
                        raw = (gradient if trace is None else trace.resolve(gradient))._raw
                    _check_fits(slot, raw)
                    found.append((slot, raw))
            if found:
                work.append((group, found))
        return work

    # -- being compiled ----------------------------------------------------------------------------

    def _traced_options(self) -> list[Group]:
        """What a function may not change while it is traced, for the compiler's guards."""
        return [{name: value for name, value in group.items() if name != "params"} for group in self.param_groups]

    def _restore_options(self, options: list[Group]) -> None:
        for group, before in zip(self.param_groups, options):
            group.update(before)

    # -- state -------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next steps depend on, in PyTorch's form: by the parameters' numbers.

        Arrays are tensors, clones made in O(1); all else is plain Python, fit for JSON.

        >>> import pullback as pb
        >>> w = pb.tensor([1.0], requires_grad=True)
        >>> optimizer = pb.optim.SGD([w], momentum=0.9)
        >>> optimizer.step([pb.tensor([0.5])])
        >>> optimizer.state_dict()["state"]
        {0: {'momentum_buffer': tensor([0.5])}}
        """
        return state.saved(self, self._slots)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave, here or in PyTorch: all of it, or on an error none.

        Arrays may be tensors or arrays of any library, and are moved to their parameter's device.
        """
        modes.refuse_in_trace("Loading a state gives an optimizer other buffers. Do it before the call.")
        state.load(self, self._slots, state_dict)


def _identity(parameter: Any) -> int:
    """Equal for clones of a variable, which are that variable."""
    node = getattr(parameter, "_node", None)
    return id(parameter if node is None else node)


def _check_fits(slot: Slot, gradient: Any) -> None:
    """Refuse a raw gradient that does not fit its parameter."""
    raw = slot.raw
    if type(gradient) is type(raw) and gradient.shape == raw.shape and gradient.dtype == raw.dtype:
        if type(raw) is _ndarray:
            return
        known = slot.backend  # that of the last step: the parameter may have been moved since, which `prepare` sees
        if known is not None and known is backends.of(gradient) and known.device_of(gradient) == slot.device:
            return
    backend, own = backends.of(gradient), backends.of(raw)
    where = f"step: the gradient of {slot.label}"
    if backend is None:
        raise DtypeError(f"{where} is neither a tensor nor an array but {type(gradient).__name__}.")
    if backend.device_of(gradient) != own.device_of(raw):
        raise DeviceError(f"{where} is on {backend.device_of(gradient)!r}, not on {own.device_of(raw)!r}.")
    if tuple(gradient.shape) != tuple(raw.shape):
        raise ShapeError(f"{where} has shape {tuple(gradient.shape)}, not {tuple(raw.shape)}.")
    if gradient.dtype != raw.dtype and backend.dtype_of(gradient) != own.dtype_of(raw):
        raise DtypeError(f"{where} is {backend.dtype_of(gradient).name}, not {own.dtype_of(raw).name}.")
