"""In what NumPy's functions on tensors differ from the same on arrays, and why: the one list of it."""

from __future__ import annotations

import re
from typing import NamedTuple


class Difference(NamedTuple):
    """A difference that stands."""

    names: str  # of functions, as a regular expression
    text: str  # what is said about the difference, as a regular expression
    reason: str

    def matches(self, name: str) -> bool:
        return re.fullmatch(self.names, name) is not None


EXCEPTIONS = (
    Difference(
        "copyto|fill_diagonal|place|put|put_along_axis|putmask",
        "ours raise[sd]+ GradientError: .* cannot be written into a NumPy array",
        "an array, other than a tensor, has no place for the gradient of what is written into it",
    ),
    Difference(
        "fill_diagonal|full|full_like|select|lexsort",
        "ours raise[sd]+ GradientError: np.(copyto|fill_diagonal|full|full_like|select|lexsort):",
        "NumPy does not ask a tensor in this argument (`val`, `fill_value`, `default`, a list of keys), it converts it",
    ),
    Difference(
        "interp|pad",
        "ours raise[sd]+ GradientError: np.(interp|pad):",
        "NumPy does not ask a tensor that is given as `left`, `right`, `constant_values` or `end_values` to an array",
    ),
    Difference(
        "nanvar|nanstd",
        "np.subtract: `where=` is not supported",
        "NumPy does not ask a tensor that is given as `mean` to an array",
    ),
    Difference(
        "copyto",
        "setitem: cannot write complex",
        "the imaginary part, and its gradient, would be lost on the quiet",
    ),
    Difference(
        "append|atleast_[123]d|block|broadcast_arrays|concatenate|choose|[hv]stack|meshgrid|outer|kron|where|full_like"
        "|copyto|interp",
        "ours raises (DtypeError: (only numbers can be joined|Pullback has no dtype for NumPy's dtype)|GradientError)",
        "NumPy makes arrays of words or objects of these, which have no gradient",
    ),
    Difference("where", "nan of NumPy's, nan of ours", "an array of objects"),
    Difference(
        "(nan)?(quantile|percentile)",
        "has a gradient with respect to `a` alone",
        "there is no gradient with respect to the weights: a quantile jumps where they change its place",
    ),
    Difference(
        "may_share_memory|shares_memory",
        "NumPy returns True, ours False",
        "a tensor made of an array copies it",
    ),
    Difference(
        "(nan)?(std|var)",
        r"inf\)? of NumPy's, np\.float\d+\([\d.]+e\+\d+\) of ours",
        "ours is right where NumPy's squares overflow: a deviation of 1e300 is a number",
    ),
    Difference("linalg.qr", "mode='(raw|economic)' has no gradient", "LAPACK's own form, of which NumPy says nothing"),
    Difference("linalg.lstsq", "a gradient needs full rank", "the solution jumps where the rank changes"),
)


def excepted(name: str, difference: str) -> Difference | None:
    """The entry that a difference falls under."""
    for entry in EXCEPTIONS:
        if entry.matches(name) and re.search(entry.text, difference):
            return entry
    return None
