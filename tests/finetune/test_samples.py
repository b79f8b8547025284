"""Which tokens have a loss: what the model writes when it is used, and no other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import pullback as pb
from pullback.finetune import Tokenizer, make_samples
from pullback.finetune.records import ChatRecord, CompletionRecord, TextRecord

from .folders import CHATML, HEADERS, TEXTS, write_folder

SYSTEM = {"role": "system", "content": "Be brief."}
FIRST, SECOND = {"role": "user", "content": "What is it? "}, {"role": "user", "content": "And then?\n"}
PARIS, THEN = {"role": "assistant", "content": "Paris, ça va 🙂"}, {"role": "assistant", "content": "\nParis again."}
THOUGHT = {"role": "assistant", "content": "<think>\nWhich one?\n</think>\n\nParis."}
LONG = 1000


def chat(*messages) -> ChatRecord:
    return ChatRecord(messages, "chats.jsonl:7")


def learnt(sample, tokenizer) -> list[str]:
    """The texts of the runs of tokens that have a loss."""
    has_loss = sample.labels != -100
    assert np.array_equal(sample.labels[has_loss], sample.tokens[has_loss])
    assert sample.tokens.dtype == sample.labels.dtype == np.int32
    edges = np.flatnonzero(np.diff(np.concatenate([[0], has_loss, [0]])))
    return [tokenizer.decode(sample.tokens[a:b], special_tokens=True) for a, b in edges.reshape(-1, 2)]


def samples_of(record, tokenizer, length=LONG, **options):
    return make_samples([record], tokenizer, length, **options).samples


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("chatml", ["Paris, ça va 🙂<|im_end|>", "\nParis again.<|im_end|>"]),
        ("headers", ["Paris, ça va 🙂<|eot|>", "Paris again.<|eot|>"]),
        ("generation", ["Paris, ça va 🙂<|im_end|>", "\nParis again.<|im_end|>"]),
    ],
)
def test_answers_have_a_loss_with_the_ends_of_their_turns(tokenizer_with, name, expected):
    tokenizer = tokenizer_with(name)
    messages = [SYSTEM, FIRST, PARIS, SECOND, THEN]
    [sample] = samples_of(chat(*messages), tokenizer)
    assert learnt(sample, tokenizer) == expected
    assert sample.tokens.tolist() == tokenizer.encode_chat(messages)
    assert sample.place == "chats.jsonl:7"
    assert sample.loss_tokens == sum(len(tokenizer.encode(text, special_tokens=False)) for text in expected)


def test_a_thought_that_later_turns_leave_out_makes_a_sample_for_each_answer(tokenizer_with):
    tokenizer = tokenizer_with("thinking")
    messages = [FIRST, THOUGHT, SECOND, PARIS]
    first, second = samples_of(chat(*messages), tokenizer)
    assert learnt(first, tokenizer) == [THOUGHT["content"] + "<|im_end|>"]
    assert learnt(second, tokenizer) == ["<think>\n\n</think>\n\nParis, ça va 🙂<|im_end|>"]
    assert first.tokens.tolist() == tokenizer.encode_chat(messages[:2])
    assert second.tokens.tolist() == tokenizer.encode_chat(messages)
    [single] = samples_of(chat(*messages[:2]), tokenizer)
    assert single.tokens.tolist() == first.tokens.tolist()


def test_a_template_without_a_generation_prompt(tokenizer_with):
    tokenizer = tokenizer_with("brackets")
    [sample] = samples_of(chat(SYSTEM, FIRST, PARIS), tokenizer)
    assert learnt(sample, tokenizer) == [" Paris, ça va 🙂<|im_end|>"]
    # The system's message moves to the last question: the chat looks otherwise at every turn.
    first, second = samples_of(chat(SYSTEM, FIRST, PARIS, SECOND, THEN), tokenizer)
    assert learnt(first, tokenizer) == [" Paris, ça va 🙂<|im_end|>"]
    assert learnt(second, tokenizer) == [" \nParis again.<|im_end|>"]


def test_a_prompt_that_opens_a_thought_which_answers_lack(tmp_path: Path):
    opened = CHATML.replace("{{- '<|im_start|>assistant\\n' }}", "{{- '<|im_start|>assistant\\n<think>\\n' }}")
    assert opened != CHATML
    tokenizer = Tokenizer(write_folder(tmp_path, opened))
    [sample] = samples_of(chat(FIRST, PARIS), tokenizer)
    assert learnt(sample, tokenizer) == ["Paris, ça va 🙂<|im_end|>"]
    [sample] = samples_of(chat(FIRST, THOUGHT), tokenizer)
    assert learnt(sample, tokenizer) == ["Which one?\n</think>\n\nParis.<|im_end|>"]


def test_a_turn_that_ends_with_a_line(tmp_path: Path):
    plain = (
        "{% for m in messages %}{{ m.role }}: {{ m.content }}\n\n{% endfor %}{% if add_generation_prompt %}assistant:"
    )
    tokenizer = Tokenizer(write_folder(tmp_path, plain + "{% endif %}"))
    [sample] = samples_of(chat(FIRST, PARIS, SECOND), tokenizer)
    assert learnt(sample, tokenizer) == [" Paris, ça va 🙂\n\n"]


def test_what_no_one_asked_for_has_no_loss(tokenizer_with):
    tokenizer = tokenizer_with("chatml")
    [sample] = samples_of(chat(PARIS, FIRST, THEN, SECOND), tokenizer)
    assert learnt(sample, tokenizer) == ["\nParis again.<|im_end|>"]
    assert "And then?" not in tokenizer.decode(sample.tokens)


def test_all_of_a_chat_can_be_learnt(tokenizer_with):
    tokenizer = tokenizer_with("thinking")
    messages = [FIRST, THOUGHT, SECOND, PARIS, FIRST]
    [sample] = samples_of(chat(*messages), tokenizer, train_on="all")
    assert sample.tokens.tolist() == tokenizer.encode_chat(messages)
    assert sample.loss_tokens == len(sample.tokens) - 1


def test_completions_have_a_loss_and_prompts_have_none(tokenizer_with):
    tokenizer = tokenizer_with("chatml")
    record = CompletionRecord("Question: 日本語 <|im_end|> 🙂\nAnswer:", " Paris 🙂 it is", "a:1")
    [sample] = samples_of(record, tokenizer)
    assert learnt(sample, tokenizer) == [" Paris 🙂 it is<|im_end|>"]
    assert sample.tokens.tolist() == [*tokenizer.encode(record.prompt + record.completion), tokenizer.eos_id]
    [sample] = samples_of(record, tokenizer, train_on="all")
    assert sample.loss_tokens == len(sample.tokens) - 1


@pytest.mark.parametrize("trim_offsets", [False, True])
def test_a_token_on_both_sides_of_the_border_has_a_loss(tmp_path: Path, trim_offsets):
    tokenizer = Tokenizer(write_folder(tmp_path, trim_offsets=trim_offsets))
    for prompt, completion in [("The ", "tide"), ("The", " tide"), ("The  ", "  tide"), ("", "The tide  ")]:
        [sample] = samples_of(CompletionRecord(prompt, completion, "a:1"), tokenizer)
        found = "".join(learnt(sample, tokenizer)).removesuffix("<|im_end|>")
        assert found.endswith(completion) and found.strip() == completion.strip()
        assert sample.tokens[0] == tokenizer.bos_id and sample.labels[-1] == tokenizer.eos_id


def test_texts_have_a_loss_throughout_and_end(tokenizer_with):
    tokenizer = tokenizer_with("chatml")
    [sample] = samples_of(TextRecord(TEXTS[0], "a:1"), tokenizer)
    assert sample.tokens.tolist() == [*tokenizer.encode(TEXTS[0]), tokenizer.eos_id]
    assert sample.loss_tokens == len(sample.tokens) - 1
    [sample] = samples_of(TextRecord(TEXTS[0] + "<|im_end|>", "a:1"), tokenizer)
    assert sample.tokens.tolist() == tokenizer.encode(TEXTS[0] + "<|im_end|>")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60), length=st.integers(2, 20))
def test_a_long_text_is_cut_without_losing_a_loss(tokenizer_with, text, length):
    tokenizer = tokenizer_with("chatml")
    [whole] = samples_of(TextRecord(text, "a:1"), tokenizer)
    pieces = samples_of(TextRecord(text, "a:1"), tokenizer, length)
    assert all(2 <= len(piece.tokens) <= length for piece in pieces)
    assert np.concatenate([whole.tokens[:1], *[piece.tokens[1:] for piece in pieces]]).tolist() == whole.tokens.tolist()
    assert [piece.tokens[0] for piece in pieces[1:]] == [piece.tokens[-1] for piece in pieces[:-1]]
    assert sum(piece.loss_tokens for piece in pieces) == whole.loss_tokens


def test_chats_that_are_too_long_are_named_cut_or_left_out(tokenizer_with):
    tokenizer = tokenizer_with("chatml")
    records = [chat(FIRST, PARIS), ChatRecord((FIRST, PARIS, SECOND, THEN), "chats.jsonl:8")]
    short, long = make_samples(records, tokenizer, LONG).samples
    length = len(short.tokens)
    with pytest.raises(pb.ConfigurationError) as caught:
        make_samples(records, tokenizer, length)
    assert f"longer than {length} tokens (1 samples):\n    chats.jsonl:8: {len(long.tokens)} tokens" in str(
        caught.value
    )
    made = make_samples(records, tokenizer, length, too_long="skip")
    assert (len(made.samples), made.skipped, made.truncated) == (1, ["chats.jsonl:8"], [])
    made = make_samples(records, tokenizer, length, too_long="truncate")
    assert (len(made.samples), made.skipped, made.truncated) == (2, [], ["chats.jsonl:8"])
    assert made.samples[1].tokens.tolist() == long.tokens[:length].tolist()
    assert made.samples[1].labels.tolist() == long.labels[:length].tolist()
    with pytest.raises(pb.ConfigurationError, match="all are longer than 3 tokens"):
        make_samples(records, tokenizer, 3, too_long="truncate")
    with pytest.raises(pb.ConfigurationError, match="    and 15 more"):
        make_samples(records[1:] * 20, tokenizer, length)


@pytest.mark.parametrize(
    ("name", "messages", "message"),
    [
        ("chatml", [FIRST], "no message with the role 'assistant'"),
        ("chatml", [PARIS], "no message with the role 'assistant' that answers"),
        ("brackets", [FIRST, SECOND, PARIS], "roles must take turns"),
    ],
)
def test_what_is_wrong_with_a_chat_is_said_with_its_place(tokenizer_with, name, messages, message):
    with pytest.raises(pb.ConfigurationError, match=rf"chats.jsonl:7: .*{message}"):
        samples_of(chat(*messages), tokenizer_with(name))


def test_what_cannot_be_learnt_is_said(tmp_path: Path):
    counted = "{{ messages|length }}" + CHATML
    with pytest.raises(
        pb.ConfigurationError, match=r"chats.jsonl:7: .*tokenizer_config.json: the chat template changes"
    ):
        samples_of(chat(FIRST, PARIS), Tokenizer(write_folder(tmp_path, counted)))
    unused = CHATML + "{% if false %}{% generation %}{% endgeneration %}{% endif %}"
    with pytest.raises(pb.ConfigurationError, match="nothing of this chat is in a"):
        samples_of(chat(FIRST, PARIS), Tokenizer(write_folder(tmp_path, unused)))
    without = Tokenizer(write_folder(tmp_path, None, eos_token=None))
    with pytest.raises(pb.ConfigurationError, match=r"a:1: .* names no 'eos_token'"):
        samples_of(TextRecord("a", "a:1"), without)
    with pytest.raises(pb.ConfigurationError, match=r"chats.jsonl:7: .* has no chat template"):
        samples_of(chat(FIRST, PARIS), without)
    with pytest.raises(pb.ConfigurationError, match="no records"):
        make_samples([], without, 8)


@pytest.mark.parametrize("options", [{"train_on": "questions"}, {"too_long": None}, {"length": 1}, {"length": 2.5}])
def test_wrong_options_are_refused(options):
    with pytest.raises(pb.ConfigurationError, match=next(iter(options))):
        make_samples([], None, **{"length": 8, **options})


def test_the_date_of_a_template_stands_still(tmp_path: Path):
    from datetime import datetime

    folder = write_folder(tmp_path, HEADERS)
    assert "Today: 1999" in Tokenizer(folder, now=datetime(1999, 1, 1)).render([FIRST])
