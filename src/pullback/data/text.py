"""Text for models that predict the next token."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ConfigurationError, DtypeError, FileFormatError, ShapeError
from ..tensors.tensor import Tensor


class Characters:
    """The characters of a text, numbered in their order in Unicode.

    `alphabet` has each of them once; `Characters.of(text)` finds them in a text.

    >>> import pullback as pb
    >>> characters = pb.data.Characters.of("hello")
    >>> len(characters), characters.encode("hole")
    (4, array([1, 3, 2, 0]))
    >>> characters.decode([1, 0])
    'he'
    """

    def __init__(self, alphabet: str) -> None:
        if len(set(alphabet)) < len(alphabet) or not alphabet:
            raise ConfigurationError("Characters: the alphabet must have every character once, and at least one.")
        self.alphabet = alphabet
        self._numbers = {character: number for number, character in enumerate(alphabet)}

    @classmethod
    def of(cls, text: str) -> Characters:
        """Those that occur in a text."""
        if not text:
            raise ConfigurationError("Characters.of: the text is empty.")
        return cls("".join(sorted(set(text))))

    def __len__(self) -> int:
        return len(self.alphabet)

    def __repr__(self) -> str:
        return f"Characters({self.alphabet!r})"

    def encode(self, text: str) -> Any:
        """The numbers of a text's characters."""
        try:
            return np.array([self._numbers[character] for character in text], np.int64)
        except KeyError as error:
            raise FileFormatError(
                f"Characters: {error.args[0]!r} (at {text.index(error.args[0])}) is not among the "
                f"{len(self)} characters known."
            ) from None

    def decode(self, numbers: Any) -> str:
        """The text that the numbers stand for."""
        return "".join([self.alphabet[int(number)] for number in numbers])


class TextWindows:
    """Windows of a sequence of token numbers: (tokens, the tokens that follow each of them).

    Sample i starts at `i * stride`; without a stride windows follow each other, sharing no input.

    Parameters
    ----------
    tokens : array of int
        The numbers of a text's tokens, one after the other.
    length : int
        How many tokens are in a window.
    stride : int, optional
        How far apart windows begin, by default `length`.

    Examples
    --------
    >>> import numpy as np, pullback as pb
    >>> windows = pb.data.TextWindows(np.arange(8), length=3)
    >>> len(windows)
    2
    >>> windows[1]
    (array([3, 4, 5]), array([4, 5, 6]))
    """

    def __init__(self, tokens: Any, length: int, stride: int | None = None) -> None:
        array = tokens.numpy() if isinstance(tokens, Tensor) else np.asarray(tokens)
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise DtypeError(
                f"TextWindows: tokens must be integers along one axis, got {array.dtype} of shape {array.shape}."
            )
        self.stride = length if stride is None else stride
        if length < 1 or self.stride < 1:
            raise ConfigurationError(f"TextWindows: length={length} and stride={self.stride} must be at least 1.")
        if len(array) < length + 1:
            raise ShapeError(
                f"TextWindows: {len(array)} tokens are too few for one window of {length} and the token after it."
            )
        self.tokens = array
        self.length = length

    def __len__(self) -> int:
        return (len(self.tokens) - 1 - self.length) // self.stride + 1

    def __getitem__(self, index: Any) -> tuple[Any, Any]:
        starts = np.arange(len(self))[index] * self.stride
        if np.ndim(starts) == 0:
            return self.tokens[starts : starts + self.length], self.tokens[starts + 1 : starts + 1 + self.length]
        return self.batch(index)

    def batch(self, indices: Any) -> tuple[Any, Any]:
        """The windows at `indices`, a slice or integers: two arrays (windows, length), as for a single one."""
        if isinstance(indices, slice):
            indices = np.arange(len(self))[indices]
        places = (np.asarray(indices) * self.stride)[:, None] + np.arange(self.length + 1)
        found = self.tokens[places]
        return found[:, :-1], found[:, 1:]

    def __repr__(self) -> str:
        return f"TextWindows({len(self)} windows of {self.length})"
