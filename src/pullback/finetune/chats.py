"""What a model writes in a chat: where its answers stand in the text that the chat template makes."""

from __future__ import annotations

from itertools import takewhile
from typing import Any, Mapping, NamedTuple, Sequence

from ..errors import ConfigurationError
from .tokenizer import Tokenizer

ANSWERER = "assistant"


class AnsweredChat(NamedTuple):
    """A chat as text, and the parts of it that the model writes, from and up to."""

    text: str
    answers: list[tuple[int, int]]


def answered_chats(tokenizer: Tokenizer, messages: Sequence[Mapping[str, Any]]) -> list[AnsweredChat]:
    """A chat with its answers: what is written where the model is asked to, with the token that ends its turn.

    An answer is what the template adds to the messages before it and to the beginning of an answer
    (`add_generation_prompt`); so it is exactly what the model has to write when it is used. What the template writes
    between the end of a turn and the next one is no part of it, nor is what follows the last answer. Messages of the
    assistant before all others answer nothing.

    Most templates write a turn in the same way whatever comes after it. Then there is one chat, with all of its
    answers. Those that do not (Qwen3's leaves out what was thought in earlier turns) get one chat for every answer,
    which ends with it: in these each answer stands as the model writes it, after what it then sees. Where the template
    has `{% generation %}` blocks, they are the answers.
    """
    asked = [place for place, message in enumerate(messages) if message["role"] != ANSWERER]
    answers = [
        place for place, message in enumerate(messages) if message["role"] == ANSWERER and asked and place > asked[0]
    ]
    if not answers:
        raise ConfigurationError(f"there is no message with the role '{ANSWERER}' that answers another one.")
    messages = messages[: answers[-1] + 1]
    template = tokenizer.chat_template
    if template.has_generation_blocks:
        written = template.write(messages)
        if all(first == last for first, last in written.blocks):
            raise ConfigurationError(f"{template.path}: nothing of this chat is in a {{% generation %}} block.")
        return [AnsweredChat(written.text, written.blocks)]
    chats = [_last_answer(tokenizer, messages[: place + 1]) for place in answers]
    whole = chats[-1].text
    if all(whole.startswith(chat.text) for chat in chats):
        return [AnsweredChat(whole, [answer for chat in chats for answer in chat.answers])]
    return chats


def _last_answer(tokenizer: Tokenizer, messages: Sequence[Mapping[str, Any]]) -> AnsweredChat:
    """A chat that ends with an answer, and that answer."""
    text = tokenizer.render(messages)
    before = tokenizer.render(messages[:-1])
    if not text.startswith(before):
        raise ConfigurationError(
            f"{tokenizer.chat_template.path}: the chat template changes what stands before an answer when the answer "
            "is there, so what the model writes cannot be told from what it is given. Put {% generation %} and "
            "{% endgeneration %} around that in the template, or learn all of the text (train_on='all')."
        )
    prompt = tokenizer.render(messages[:-1], add_generation_prompt=True)
    # A prompt may begin an answer with what a finished one does not have (<think>): the answer begins where they part.
    start = len(before)
    if prompt.startswith(before):
        start += sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(prompt[start:], text[start:])))
    return AnsweredChat(text, [(start, _end_of_turn(tokenizer, text, start))])


def _end_of_turn(tokenizer: Tokenizer, text: str, start: int) -> int:
    """The end of a text without the space after the token that ends a turn, if there is one."""
    trimmed = text.rstrip()
    return len(trimmed) if len(trimmed) > start and trimmed.endswith(tokenizer.added_texts) else len(text)
