"""Text to token numbers and back, as a model's Hugging Face folder says, and its chats."""

from __future__ import annotations

import os
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from typing import Any, Iterator, Mapping, NamedTuple, Sequence

from ..errors import ConfigurationError, FileFormatError
from .libraries import library
from .templates import ChatTemplate
from .text_stream import TextStream
from .tokenizer_files import read_tokenizer_files

_FILE = "tokenizer.json"
_OPTIONS = ("special", "lstrip", "rstrip", "normalized", "single_word")


class EncodedText(NamedTuple):
    """Token numbers, and for each the characters of the text that it stands for: from, and up to but without."""

    ids: list[int]
    spans: list[tuple[int, int]]


class Tokenizer:
    """The tokenizer of a Hugging Face folder: tokenizer.json, and what stands beside it.

    tokenizer_config.json (or special_tokens_map.json) names the special tokens and has the chat template, unless
    chat_template.jinja has it; of several templates that have names, it is the one called "default".
    generation_config.json says which tokens end an answer.

    Parameters
    ----------
    folder : str or path
    now : datetime, optional
        The time that a chat template which writes the date is told; by default that of now. It does not go on: a run
        that is resumed with the same `now` has the same data.

    Examples
    --------
    >>> import tempfile, tokenizers
    >>> from pullback.finetune import Tokenizer
    >>> letters = tokenizers.models.BPE({"h": 0, "i": 1, "hi": 2}, [("h", "i")])
    >>> folder = tempfile.mkdtemp()
    >>> tokenizers.Tokenizer(letters).save(f"{folder}/tokenizer.json")
    >>> tokenizer = Tokenizer(folder)
    >>> tokenizer.encode("hih"), tokenizer.decode([2])
    ([2, 0], 'hi')
    """

    def __init__(self, folder: str | os.PathLike[str], now: datetime | None = None) -> None:
        self.folder = os.fspath(folder)
        self.now = datetime.now() if now is None else now
        self._path = path = os.path.join(self.folder, _FILE)
        if not os.path.isfile(path):
            raise FileNotFoundError(f"{path}: no such file. A tokenizer is a folder with {_FILE}.")
        files = read_tokenizer_files(self.folder)
        self.special_tokens = dict(files.special_tokens)
        self._generation_ends = files.eos_ids
        self._backend = _read_backend(path)
        self._add_tokens(files.added_tokens)
        self._template: ChatTemplate | None = None
        if files.template is not None:
            self._template = ChatTemplate(files.template, files.template_path, self.special_tokens, self.now)

    def __len__(self) -> int:
        """One more than the largest token number."""
        return max(self._backend.get_vocab(with_added_tokens=True).values(), default=-1) + 1

    def __repr__(self) -> str:
        return f"Tokenizer({self.folder!r})"

    # -- text -------------------------------------------------------------------------------------

    def encode(self, text: str, special_tokens: bool = True) -> list[int]:
        """The token numbers of a text; with those that begin or end a text for this model, unless told otherwise.

        Where the text has that of a special token, such as "<|im_end|>", it becomes this token.
        """
        return self.encode_with_spans(text, special_tokens).ids

    def encode_with_spans(self, text: str, special_tokens: bool = True) -> EncodedText:
        """The token numbers of a text, and which of its characters each stands for.

        A character can be in several tokens. Tokens that were added to the text stand for none: their span is empty.
        """
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ConfigurationError(f"a text has half of a character, at {error.start}: {error.reason}.") from None
        with _told(self._path, "cannot make tokens of a text"):
            encoding = self._backend.encode(text, add_special_tokens=special_tokens)
        added = encoding.special_tokens_mask if special_tokens else [0] * len(encoding.ids)
        spans, end = [], 0
        for (first, last), is_added in zip(encoding.offsets, added):
            if is_added:
                spans.append((end, end))
                continue
            # Tokenizers leave spaces at the rim of a token out of its span; every character belongs to some token.
            spans.append((min(first, end), max(last, end)))
            end = max(last, end)
        return EncodedText(encoding.ids, spans)

    def decode(self, ids: Sequence[int], special_tokens: bool = False) -> str:
        """The text of token numbers, without special tokens unless asked for them."""
        numbers = [int(number) for number in ids]
        if any(number < 0 or number >> 32 for number in numbers):
            raise ConfigurationError("decode: token numbers are 0 or more, and below 2**32.")
        with _told(self._path, "cannot make a text of tokens"):
            return self._backend.decode(numbers, skip_special_tokens=not special_tokens)

    def stream(self) -> TextStream:
        """What makes text of tokens as they come: `push(number)` gives what is certain, `finish()` the rest."""
        return TextStream(self.decode)

    # -- special tokens ---------------------------------------------------------------------------

    @property
    def eos_id(self) -> int | None:
        """The token that ends a text, if there is one."""
        return self._id_of("eos_token")

    @property
    def bos_id(self) -> int | None:
        """The token that begins a text, if there is one; `encode` writes it where the model wants it."""
        return self._id_of("bos_token")

    @property
    def pad_id(self) -> int | None:
        """The token that fills rows, if there is one."""
        return self._id_of("pad_token")

    @cached_property
    def stop_ids(self) -> tuple[int, ...]:
        """The tokens at which generation ends: that of the tokenizer, and those that generation_config.json names."""
        own = () if self.eos_id is None else (self.eos_id,)
        return tuple(dict.fromkeys(own + self._generation_ends))

    @cached_property
    def added_texts(self) -> tuple[str, ...]:
        """The texts that are always one token, such as those that end a turn of a chat."""
        return tuple(token.content for token in self._backend.get_added_tokens_decoder().values() if token.content)

    # -- chats ------------------------------------------------------------------------------------

    @property
    def has_chat_template(self) -> bool:
        """Whether chats can be written; base models often have no template."""
        return self._template is not None

    @property
    def chat_template(self) -> ChatTemplate:
        """How chats are written; an error where the folder does not say it."""
        if self._template is None:
            raise ConfigurationError(
                f"{self.folder}: has no chat template: neither chat_template.jinja nor an entry 'chat_template' in "
                "tokenizer_config.json. Use the folder of a model that was trained to chat, or put a "
                "chat_template.jinja there."
            )
        return self._template

    def render(self, messages: Sequence[Mapping[str, Any]], add_generation_prompt: bool = False) -> str:
        """The text of a chat: messages with role and content, and the beginning of an answer to come if asked for."""
        return self.chat_template.render(messages, add_generation_prompt)

    def encode_chat(self, messages: Sequence[Mapping[str, Any]], add_generation_prompt: bool = False) -> list[int]:
        """The token numbers of a chat, as `transformers` has them in `apply_chat_template`."""
        return self.encode(self.render(messages, add_generation_prompt), special_tokens=False)

    # -- private ----------------------------------------------------------------------------------

    def _id_of(self, name: str) -> int | None:
        content = self.special_tokens.get(name)
        if content is None:
            return None
        number = self._backend.token_to_id(content)
        if number is None:
            raise ConfigurationError(f"{self.folder}: {name} is {content!r}, which is no token of {_FILE}.")
        return number

    def _add_tokens(self, added: Mapping[int, Mapping[str, Any]]) -> None:
        """Add those that tokenizer.json lacks: programs used to write them to tokenizer_config.json alone."""
        for number, token in added.items():
            content = token["content"]
            if self._backend.token_to_id(content) is None:
                options = {name: bool(token[name]) for name in _OPTIONS if name in token}
                self._backend.add_tokens([library("tokenizers", "text").AddedToken(content, **options)])
            if self._backend.token_to_id(content) != number:
                raise FileFormatError(
                    f"{self.folder}: tokenizer_config.json says that token {number} is {content!r}, which in {_FILE} "
                    f"is {self._backend.token_to_id(content)}."
                )


def _read_backend(path: str) -> Any:
    tokenizers = library("tokenizers", "text")
    with _told(path, "not a tokenizer"):
        backend = tokenizers.Tokenizer.from_file(path)
        # Options that were saved with it, for batches that somebody made once.
        backend.no_truncation()
        backend.no_padding()
    return backend


@contextmanager
def _told(path: str, what: str) -> Iterator[None]:
    """What the library complains of is for who has the file to put right; its panics are no `Exception`."""
    try:
        yield
    except MemoryError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise FileFormatError(f"{path}: {what} ({error}).") from None
