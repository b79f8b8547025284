"""Records as token numbers, with the tokens that have a loss."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Iterable, Sequence

import numpy as np

from ..errors import ConfigurationError
from ..models.language_model import IGNORED
from ..train.arguments import check_count
from .chats import AnsweredChat, answered_chats
from .records import ChatRecord, CompletionRecord, Record, TextRecord
from .tokenizer import EncodedText, Tokenizer

TRAIN_ON = ("answers", "all")
TOO_LONG = ("error", "truncate", "skip")
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """A text to learn from: `tokens`, and as `labels` the tokens again where there is a loss, else -100.

    Both are arrays of int32. The first token has no loss, since nothing predicts it. `place` is the file and line.
    """

    tokens: Any
    labels: Any
    place: str

    @property
    def loss_tokens(self) -> int:
        """How many tokens have a loss."""
        return int(np.count_nonzero(self.labels[1:] != IGNORED))


class TooLongError(ConfigurationError):
    """Records longer than a row: `found` says which, `longest` is the length with which all would fit, if known."""

    def __init__(self, found: str, longest: int | None, *ways: str) -> None:
        larger = "Give a larger length" if longest is None else f"Give a length of {longest} to have them all"
        super().__init__(f"make_samples: {found}\n{larger}" + "".join(ways) + ".")
        self.found, self.longest = found, longest


@dataclass(frozen=True, slots=True)
class SampleSet:
    """Samples, and the places of the records that are not in them as a whole."""

    samples: list[Sample]
    truncated: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


def make_samples(
    records: Iterable[Record],
    tokenizer: Tokenizer,
    length: int,
    train_on: str = "answers",
    too_long: str = "error",
) -> SampleSet:
    """The samples that records make, of at most `length` tokens each.

    A text has a loss on all of its tokens, and on the one that ends a text, which is added. A completion has it, and
    not its prompt. A chat has it on the assistant's messages, each with the token that ends a turn (see
    `pullback.finetune.chats`, also for the templates with which a chat makes several samples).

    A text that is too long is cut into several samples, in which each of its tokens has a loss as it would have in one:
    a sample begins with the last token of the one before. Chats and completions cannot be cut so; `too_long` says what
    becomes of them.

    Parameters
    ----------
    records : iterable of TextRecord, ChatRecord and CompletionRecord
        As `read_records` gives them.
    tokenizer : Tokenizer
    length : int
        The most tokens of a sample.
    train_on : str
        "answers", or "all" for a loss on every token of prompts and chats as well.
    too_long : str
        "error" names the records; "truncate" leaves out their ends, and records of which no token with a loss remains;
        "skip" leaves out whole records.

    Returns
    -------
    SampleSet
        `samples`, and `truncated` and `skipped`: the places ("file:line") of the records that were.

    Examples
    --------
    >>> import tempfile, tokenizers
    >>> from pullback.finetune import Tokenizer, make_samples
    >>> from pullback.finetune.records import CompletionRecord
    >>> folder = tempfile.mkdtemp()
    >>> model = tokenizers.models.BPE({"a": 0, "b": 1, "</s>": 2}, [])
    >>> tokenizers.Tokenizer(model).save(f"{folder}/tokenizer.json")
    >>> with open(f"{folder}/tokenizer_config.json", "w") as file:
    ...     _ = file.write('{"eos_token": "</s>"}')
    >>> [sample] = make_samples([CompletionRecord("aa", "b", "line 1")], Tokenizer(folder), length=8).samples
    >>> sample.tokens.tolist(), sample.labels.tolist()
    ([0, 0, 1, 2], [-100, -100, 1, 2])
    """
    check_count("make_samples", "length", length, 2)
    _check_choice("train_on", train_on, TRAIN_ON)
    _check_choice("too_long", too_long, TOO_LONG)
    made = SampleSet([])
    refused: list[Sample] = []
    for record in records:
        for sample in _whole_samples(record, tokenizer, train_on):
            if len(sample.tokens) <= length:
                made.samples.append(sample)
            elif isinstance(record, TextRecord):
                made.samples.extend(_pieces(sample, length))
            elif too_long == "error":
                refused.append(sample)
            elif too_long == "truncate" and (shorter := _beginning(sample, length)).loss_tokens:
                made.samples.append(shorter)
                made.truncated.append(record.place)
            else:
                made.skipped.append(record.place)
    if refused:
        raise _too_long(refused, length)
    if not made.samples:
        if not made.skipped:
            raise ConfigurationError("make_samples: no records were given.")
        found = f"no sample is left of {len(made.skipped)} records: all are longer than {length} tokens."
        raise TooLongError(found, None)
    return made


def _whole_samples(record: Record, tokenizer: Tokenizer, train_on: str) -> list[Sample]:
    """The samples of a record, however long; an error says where the record is."""
    try:
        if isinstance(record, ChatRecord):
            samples = _chat(record, tokenizer, train_on)
        elif isinstance(record, CompletionRecord):
            text = record.prompt + record.completion
            start = len(record.prompt) if train_on == "answers" else 0
            samples = [_text(text, start, tokenizer, record.place)]
        else:
            samples = [_text(record.text, 0, tokenizer, record.place)]
        if not all(sample.loss_tokens for sample in samples):
            raise ConfigurationError("no token of it has a loss, so nothing can be learnt from it.")
    except ConfigurationError as error:
        raise ConfigurationError(f"{record.place}: {error}") from None
    return samples


def _text(text: str, start: int, tokenizer: Tokenizer, place: str) -> Sample:
    """A text with a loss from a character on, and the token that ends it."""
    if tokenizer.eos_id is None:
        raise ConfigurationError(
            f"{tokenizer.folder}: tokenizer_config.json names no 'eos_token', so the end of a text cannot be learnt."
        )
    encoded = tokenizer.encode_with_spans(text)
    has_loss = _reach_into(encoded, [(start, len(text))])
    if encoded.ids[-1:] == [tokenizer.eos_id]:  # this tokenizer ends texts by itself
        has_loss[-1] = True
        return _sample(encoded.ids, has_loss, place)
    return _sample([*encoded.ids, tokenizer.eos_id], [*has_loss, True], place)


def _chat(record: ChatRecord, tokenizer: Tokenizer, train_on: str) -> list[Sample]:
    if train_on == "all":
        text = tokenizer.render(record.messages)
        chats = [AnsweredChat(text, [(0, len(text))])]
    else:
        chats = answered_chats(tokenizer, record.messages)
    samples = []
    for chat in chats:
        # The template writes all special tokens itself.
        encoded = tokenizer.encode_with_spans(chat.text, special_tokens=False)
        samples.append(_sample(encoded.ids, _reach_into(encoded, chat.answers), record.place))
    return samples


def _reach_into(encoded: EncodedText, parts: Sequence[tuple[int, int]]) -> list[bool]:
    """Which tokens stand for some character of the parts of a text, which are in their order."""
    reach = []
    number = 0
    for first, last in encoded.spans:
        while number < len(parts) and parts[number][1] <= first:
            number += 1
        reach.append(number < len(parts) and last > parts[number][0] and last > first)
    return reach


def _sample(ids: Sequence[int], has_loss: Sequence[bool], place: str) -> Sample:
    tokens = np.array(ids, np.int32)
    labels = np.where(np.array(has_loss, bool), tokens, np.int32(IGNORED))
    labels[:1] = IGNORED
    return Sample(tokens, labels, place)


def _pieces(sample: Sample, length: int) -> list[Sample]:
    """A sample as several, with as many losses: the first token of each is the last one of the piece before."""
    pieces = []
    for start in range(0, len(sample.tokens) - 1, length - 1):
        labels = sample.labels[start : start + length].copy()
        labels[0] = IGNORED
        pieces.append(Sample(sample.tokens[start : start + length], labels, sample.place))
    return pieces


def _beginning(sample: Sample, length: int) -> Sample:
    return Sample(sample.tokens[:length], sample.labels[:length], sample.place)


def _too_long(samples: Sequence[Sample], length: int) -> TooLongError:
    named = [f"    {sample.place}: {len(sample.tokens)} tokens" for sample in samples[:_MOST_NAMED]]
    if len(samples) > _MOST_NAMED:
        named.append(f"    and {len(samples) - _MOST_NAMED} more")
    longest = max(len(sample.tokens) for sample in samples)
    found = "\n".join([f"longer than {length} tokens ({len(samples)} samples):", *named])
    return TooLongError(
        found, longest, ", too_long='truncate' to leave out their ends, or too_long='skip' to leave them out"
    )


def _check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    if value not in choices:
        known = " or ".join(repr(choice) for choice in choices)
        raise ConfigurationError(f"make_samples: {name} must be {known}, got {value!r:.60}.")
