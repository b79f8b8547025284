"""Chat templates: how a model's conversations are written as one text."""

from __future__ import annotations

import re
from datetime import datetime
from functools import cached_property
from typing import Any, Mapping, NamedTuple, Sequence

from ..errors import ConfigurationError
from .libraries import library

LONGEST_TEMPLATE = 1_000_000  # characters; those of the models that have the longest are below 30,000
LONGEST_CHAT = 64_000_000


class WrittenChat(NamedTuple):
    """A conversation as text, and where in it `{% generation %}` blocks stand."""

    text: str
    blocks: list[tuple[int, int]]


class ChatTemplate:
    """A Jinja template that writes the messages of a conversation.

    Templates come from strangers, with a model: they run in Jinja's sandbox, without access to anything but the
    messages, the special tokens and the time `now`, and are bounded in length, as is what they write. The time and
    memory that they take on the way are not.

    >>> from datetime import datetime
    >>> from pullback.finetune.templates import ChatTemplate
    >>> source = "{% for message in messages %}{{ message.role }}: {{ message.content }}{{ eos_token }}{% endfor %}"
    >>> template = ChatTemplate(source, "chat_template.jinja", {"eos_token": "</s>"}, datetime.now())
    >>> template.render([{"role": "user", "content": "Hello"}])
    'user: Hello</s>'
    """

    def __init__(self, source: str, path: str, special_tokens: Mapping[str, str], now: datetime) -> None:
        if len(source) > LONGEST_TEMPLATE:
            raise ConfigurationError(
                f"{path}: the chat template has {len(source)} characters; {LONGEST_TEMPLATE} are the limit."
            )
        self.source = source
        self.path = path
        self.special_tokens = dict(special_tokens)
        self.now = now

    @cached_property
    def has_generation_blocks(self) -> bool:
        """Whether the template itself says what the model writes."""
        return re.search(r"\{%[-+]?\s*generation\s*[-+]?%\}", self.source) is not None

    def render(self, messages: Sequence[Mapping[str, Any]], add_generation_prompt: bool = False) -> str:
        """The text of a conversation, with the beginning of an answer to come if `add_generation_prompt`."""
        return self.write(messages, add_generation_prompt).text

    def write(self, messages: Sequence[Mapping[str, Any]], add_generation_prompt: bool = False) -> WrittenChat:
        """The text of a conversation, and where `{% generation %}` blocks stand in it."""
        # As transformers has it: an entry that is null is one that is not there.
        given = [{key: value for key, value in message.items() if value is not None} for message in messages]
        pieces, length, template = [], 0, self._template
        try:
            for piece in template.generate(
                messages=given, add_generation_prompt=add_generation_prompt, tools=None, documents=None,
                **self.special_tokens,
            ):  # fmt: skip
                pieces.append(piece)
                length += len(piece)
                if length > LONGEST_CHAT:
                    raise ConfigurationError(f"it writes more than {LONGEST_CHAT} characters")
        except Exception as error:  # whatever the template's expressions raise, MemoryError among it
            reason = str(error) or type(error).__name__
            raise ConfigurationError(f"{self.path}: the chat template cannot write the messages: {reason}") from None
        text = "".join(pieces)
        return self._without_marks(text, given) if self.has_generation_blocks else WrittenChat(text, [])

    @cached_property
    def _template(self) -> Any:
        library("jinja2", "writing chats")
        from .sandbox import compiled

        try:
            return compiled(self.source, self.now)
        except Exception as error:  # Jinja's own for syntax; Python's for what is nested too deeply
            line = getattr(error, "lineno", None)
            where = "" if line is None else f" (line {line} of it)"
            raise ConfigurationError(f"{self.path}: the chat template is not valid{where}: {error}") from None

    def _without_marks(self, text: str, messages: Sequence[Mapping[str, Any]]) -> WrittenChat:
        from .sandbox import BEGIN, END

        if any(BEGIN in str(value) or END in str(value) for message in messages for value in message.values()):
            raise ConfigurationError("a message has U+FDD0 or U+FDD1, which are no characters of a text.")
        written: list[str] = []
        blocks: list[tuple[int, int]] = []
        begun: list[int] = []
        length = 0
        for piece in re.split(f"([{BEGIN}{END}])", text):
            if piece == BEGIN:
                begun.append(length)
            elif piece == END and begun:
                blocks.append((begun.pop(), length))
            else:
                written.append(piece)
                length += len(piece)
        return WrittenChat("".join(written), sorted(blocks))
