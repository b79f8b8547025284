"""einsum: the user's subscripts, brought to a canonical form.

The operation `einsum` takes two or more operands and subscripts like "ab,bc->ac" in which no operand repeats a label,
a label has one size everywhere, and each label of an operand occurs in another one or in the result. Then the gradient
for an operand is such an einsum again: of the cotangent and the other operands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..autodiff.apply import apply
from ..autodiff.creation import given as asarray
from ..autodiff.tables import TENSORS
from ..errors import ShapeError
from ..operations import OPERATIONS

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor

ascii_letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def einsum(subscripts: str, /, *operands: Any) -> Tensor:
    """Sums of products by labelled axes: "ij,jk->ik" is a matrix product.

    As NumPy's: a label that is repeated in one operand takes its diagonal, and "..." stands for further axes, which are
    broadcast.

    Parameters
    ----------
    subscripts : str
        Labels (letters) for the axes of each operand, with commas between, and after "->" those of the result.
        Labels that the result does not have are summed over. Without "->" it has those that occur once, in
        alphabetical order.
    *operands : array
        One for each part of `subscripts`.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import pullback as pb
    >>> pb.einsum("ij,j->i", pb.asarray([[1, 2], [3, 4]]), pb.asarray([1, 1]))
    tensor([3, 7])
    """
    tensors = [asarray(x) for x in operands]
    terms, output = parse(subscripts, [x.shape for x in tensors])
    for i, x in enumerate(tensors):
        terms[i], tensors[i] = _without_repeats(subscripts, terms[i], x)
    size: dict[str, int] = {}
    for labels, x in zip(terms, tensors):
        for label, n in zip(labels, x.shape):
            if size.setdefault(label, n) == 1:
                size[label] = n
            elif n not in (1, size[label]):
                raise ShapeError(f"einsum {subscripts!r}: label {label!r} has sizes {size[label]} and {n}.")
    for i, (labels, x) in enumerate(zip(terms, tensors)):
        stretched = tuple(a - x.ndim for a, label in enumerate(labels) if x.shape[a] != size[label])
        if stretched:
            tensors[i] = TENSORS.squeeze(x, stretched)
            terms[i] = "".join(label for a, label in enumerate(labels) if a - x.ndim not in stretched)
    for i, (labels, x) in enumerate(zip(terms, tensors)):
        elsewhere = set(output).union(*terms[:i], *terms[i + 1 :])
        alone = tuple(a - x.ndim for a, label in enumerate(labels) if label not in elsewhere)
        if alone:
            tensors[i] = TENSORS.sum(x, alone, False)
            terms[i] = "".join(label for label in labels if label in elsewhere)
    if len(tensors) == 1:
        order = tuple(terms[0].index(label) - len(output) for label in output)
        return TENSORS.permute_dims(tensors[0], order) if len(order) > 1 else tensors[0]
    return apply(OPERATIONS["einsum"], tuple(tensors), (f"{','.join(terms)}->{output}",))


def parse(subscripts: str, shapes: list[tuple[int, ...]]) -> tuple[list[str], str]:
    """The labels of every operand and of the result, with letters in the place of each "..."."""
    if not isinstance(subscripts, str) or not shapes:
        raise ShapeError(f'einsum: expected subscripts like "ij,jk->ik" and at least one operand, got {subscripts!r}.')
    left, arrow, output = subscripts.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(shapes):
        raise ShapeError(f"einsum {subscripts!r}: {len(terms)} operands are described, {len(shapes)} were given.")
    spare = [letter for letter in ascii_letters if letter not in subscripts]
    longest = 0
    for i, (term, shape) in enumerate(zip(terms, shapes)):
        before, dots, after = term.partition("...")
        named = len(before) + len(after)
        further = len(shape) - named
        if further < 0 or (further and not dots):
            raise ShapeError(f"einsum {subscripts!r}: {term!r} does not describe all axes of shape {shape}.")
        if dots:
            longest = max(longest, further)
            terms[i] = before + "".join(spare[further - 1 :: -1] if further else ()) + after
    every = "".join(spare[longest - 1 :: -1]) if longest else ""
    if arrow:
        output = output.replace("...", every, 1)
    else:
        joined = "".join(term for term in left.replace("...", "").split(","))
        output = every + "".join(sorted(label for label in set(joined) if joined.count(label) == 1))
    for labels in (*terms, output):
        for label in labels:
            if label not in ascii_letters:
                raise ShapeError(f'einsum {subscripts!r}: {label!r} is no label; use letters, ",", "->" and "...".')
    unknown = [label for label in output if label not in "".join(terms)]
    if unknown or len(set(output)) != len(output):
        raise ShapeError(f"einsum {subscripts!r}: every label of the result must occur once in it, and in an operand.")
    return terms, output


def _without_repeats(subscripts: str, labels: str, x: Tensor) -> tuple[str, Tensor]:
    """The diagonals along axes with the same label."""
    while len(set(labels)) != len(labels):
        label = next(label for label in labels if labels.count(label) > 1)
        first = labels.index(label)
        second = labels.index(label, first + 1)
        if x.shape[first] != x.shape[second]:
            raise ShapeError(
                f"einsum {subscripts!r}: the axes labelled {label!r} of one operand have sizes {x.shape[first]} and "
                f"{x.shape[second]}."
            )
        rest = [a for a in range(len(labels)) if a not in (first, second)]
        x = TENSORS.permute_dims(x, tuple(a - x.ndim for a in (*rest, first, second)))
        x = TENSORS.diagonal(x, 0)
        labels = "".join(labels[a] for a in rest) + label
    return labels, x
