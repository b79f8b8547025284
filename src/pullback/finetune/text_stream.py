"""Text from tokens as they come, for a terminal."""

from __future__ import annotations

from typing import Callable, Sequence

_INCOMPLETE = "\ufffd"  # what a decoder writes for bytes that are no character, or not one yet
_MOST_WAITING = 16  # tokens: a character has four bytes at most, so what is longer will not become one


class TextStream:
    """The text that each further token adds; a character whose bytes are in several tokens comes as a whole.

    `decode` makes text of a list of token numbers.

    >>> from pullback.finetune.text_stream import TextStream
    >>> stream = TextStream(lambda numbers: bytes(numbers).decode(errors="replace"))
    >>> [stream.push(number) for number in "né!".encode()]
    ['n', '', 'é', '!']
    >>> stream.finish()
    ''
    """

    def __init__(self, decode: Callable[[Sequence[int]], str]) -> None:
        self._decode = decode
        # Tokens told last, since decoders write the first token of a text in another way (without its space), and
        # those that wait.
        self._told: list[int] = []
        self._waiting: list[int] = []

    def push(self, number: int) -> str:
        """The text that is certain with one more token: often nothing, where a character is not complete."""
        self._waiting.append(int(number))
        text = self._new_text()
        if text.endswith(_INCOMPLETE) and len(self._waiting) < _MOST_WAITING:
            return ""
        if text or len(self._waiting) >= _MOST_WAITING:
            self._told, self._waiting = self._waiting, []
        return text

    def finish(self) -> str:
        """What waited for more tokens, at the end of a text; the stream is new after it."""
        text = self._new_text() if self._waiting else ""
        self._told, self._waiting = [], []
        return text

    def _new_text(self) -> str:
        before = self._decode(self._told) if self._told else ""
        return self._decode(self._told + self._waiting)[len(before) :]
