"""A tape as a context manager: it lists what tensor code records, and differentiates it."""

from __future__ import annotations

from typing import Any

from .. import modes, tree
from ..autodiff.base import make, resolved
from ..autodiff.gradients import backward
from ..autodiff.graph import Node
from ..backends import of
from ..errors import DtypeError, GradientError
from ..tensors.tensor import Tensor
from .recording import Tape


class Watching(Tape):
    """`with GradientTape() as tape:` and what can be asked of it."""

    def __init__(self) -> None:
        super().__init__()
        self._watched: dict[int, tuple[Tensor, Node]] = {}  # by the tensor's id; the tensor is held
        self._tokens: list[Any] = []

    def __enter__(self) -> Any:
        mode = modes.current() or modes.DEFAULT
        self._tokens.append(modes.enter(recording=True, tapes=(*mode.tapes, self)))
        return self

    def __exit__(self, *exc: object) -> None:
        modes.leave(self._tokens.pop())
        if not self._tokens:
            for tensor, node in self._watched.values():
                if tensor._node is node:  # else it has been written to, or set by the user
                    tensor.set_requires_grad(False)

    def watch(self, tensors: Any) -> None:
        """Track tensors that do not require a gradient, until the block ends: a tensor, or a tree of them.

        >>> import pullback as pb
        >>> x = pb.tensor([1.0, 2.0])
        >>> with pb.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = (x * x).sum()
        >>> tape.gradient(y, x), x.requires_grad
        (tensor([2., 4.]), False)
        """
        if not self._tokens:
            raise GradientError("watch: call it inside the `with` block of the tape.")
        found = _tensors("watch", tree.leaves(tensors))
        for tensor in found:
            if tensor._node is None:
                tensor.set_requires_grad(True)
                self._watched[id(tensor)] = (tensor, tensor._node)  # type: ignore[assignment]

    def gradient(self, loss: Tensor, sources: Any, gradient: Any = None, create_graph: bool = False) -> Any:
        """The gradients of `loss` for a tensor or a tree of tensors, in the same structure; None where no path leads.

        It can be called any number of times, also inside the block. Nothing is added to `.grad`.

        Parameters
        ----------
        loss : Tensor
            What to differentiate.
        sources : Tensor or tree of Tensor
            By what: variables, or tensors that the tape watches.
        gradient : array, optional
            The cotangent to start from, in the shape of `loss`. A scalar needs none.
        create_graph : bool
            Whether the gradients can be differentiated in turn.

        Returns
        -------
        Tensor, None or tree of these
            In the structure of `sources`.

        Examples
        --------
        >>> import pullback as pb
        >>> w, b = pb.tensor([1.0, 2.0], requires_grad=True), pb.tensor(0.5, requires_grad=True)
        >>> with pb.GradientTape() as tape:
        ...     loss = (w * w).sum()
        >>> tape.gradient(loss, {"w": w, "b": b})
        {'w': tensor([2., 4.]), 'b': None}
        """
        (loss,) = _tensors("gradient", [loss])
        if hasattr(sources, "parameters") or hasattr(sources, "__next__"):
            raise DtypeError(
                f"gradient: expected tensors, got {type(sources).__name__}. Write `list(model.parameters())` or "
                "`dict(model.named_parameters())`."
            )
        leaves, structure = tree.flatten(sources)
        targets = []
        for number, source in enumerate(_tensors("gradient", leaves)):
            watched = self._watched.get(id(source))
            node = source._node if watched is None else watched[1]
            if node is None:
                raise GradientError(
                    f"gradient: source {number}, of shape {source.shape}, is not tracked. Call `tape.watch(...)` on it "
                    "inside the block, before it is used, or set `requires_grad=True`."
                )
            targets.append(make(source._raw, node))
        if loss._node is None or not targets:
            return tree.unflatten(structure, [None] * len(targets))
        grads = backward(loss, gradient, targets, retain_graph=True, create_graph=create_graph)
        return tree.unflatten(structure, [grads.get(target) for target in targets])

    def note(self, operation: Any, inputs: Any, outputs: Any) -> None:
        """Called for each operation that is recorded in the block, with its `inputs` and `outputs`."""
        floating = [out for out in outputs if of(out).is_floating(out)]
        if floating:
            given = ", ".join(_described(x) for x in inputs)
            made = ", ".join(_described(out) for out in outputs)
            self._recorded.append(f"{operation.name}({given}): {made} {of(floating[0]).dtype_of(floating[0]).name}")

    def clear(self) -> None:
        """Forget all slots, operations and watched tensors, and the data kept for them."""
        super().clear()
        if not self._tokens:
            self._watched.clear()


def _described(raw: Any) -> str:
    return str(tuple(raw.shape)) if hasattr(raw, "shape") else repr(raw)


def _tensors(caller: str, found: list[Any]) -> list[Tensor]:
    for x in found:
        if not isinstance(x, Tensor):
            raise DtypeError(f"{caller}: expected tensors, got {type(x).__name__}: {x!r:.60}.")
    return [resolved(x) for x in found]
