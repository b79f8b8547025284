"""Token numbers, chats and special tokens are those of `transformers`; text comes in whole characters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import pullback as pb
from pullback.finetune import Tokenizer

from ..backends.installed import optional
from .folders import CHATML, TEMPLATES, TEXTS, write_folder

transformers = optional("transformers")

USER, ANSWER = (
    {"role": "user", "content": "What is\nthe capital?  "},
    {"role": "assistant", "content": " Paris, ça va 🙂"},
)
THOUGHT = {"role": "assistant", "content": "<think>\nWhich one?\n</think>\n\nParis."}
SYSTEM = {"role": "system", "content": "Be brief."}
CHATS = [
    [USER],
    [USER, ANSWER],
    [SYSTEM, USER, ANSWER],
    [USER, ANSWER, USER, THOUGHT],
    [SYSTEM, USER, THOUGHT, USER, ANSWER, USER],
]
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("prompt", [False, True])
def test_chats_are_written_as_transformers_writes_them(tokenizer_with, name, prompt):
    ours = tokenizer_with(name)
    theirs = transformers.AutoTokenizer.from_pretrained(ours.folder)
    for messages in CHATS:
        text = theirs.apply_chat_template(messages, tokenize=False, add_generation_prompt=prompt)
        ids = theirs.apply_chat_template(messages, add_generation_prompt=prompt)["input_ids"]
        assert ours.render(messages, prompt) == text
        assert ours.encode_chat(messages, prompt) == ids


def test_generation_blocks_stand_where_transformers_sees_them(tokenizer_with):
    ours = tokenizer_with("generation")
    theirs = transformers.AutoTokenizer.from_pretrained(ours.folder)
    # transformers does not find an answer that begins with a space, which is no part of its token's span there.
    answer = {**ANSWER, "content": ANSWER["content"].strip()}
    messages = [SYSTEM, USER, THOUGHT, USER, answer, USER]
    expected = theirs.apply_chat_template(messages, return_assistant_tokens_mask=True, return_dict=True)
    written = ours.chat_template.write(messages)
    assert [written.text[first:last] for first, last in written.blocks] == [
        THOUGHT["content"] + "<|im_end|>",
        answer["content"] + "<|im_end|>",
    ]
    _, spans = ours.encode_with_spans(written.text, special_tokens=False)
    mask = [int(any(last > begin and first < end for begin, end in written.blocks)) for first, last in spans]
    assert mask == expected["assistant_masks"]


@pytest.mark.parametrize("text", [*TEXTS, "", "   ", "<|im_end|> <think>\n"])
def test_text_is_encoded_and_decoded_as_transformers_does(tokenizer_with, text):
    ours = tokenizer_with("chatml")
    theirs = transformers.AutoTokenizer.from_pretrained(ours.folder)
    assert ours.encode(text) == theirs.encode(text)
    assert ours.encode(text, special_tokens=False) == theirs.encode(text, add_special_tokens=False)
    assert ours.decode(ours.encode(text), special_tokens=True) == theirs.decode(theirs.encode(text))
    assert ours.decode(ours.encode(text)) == theirs.decode(theirs.encode(text), skip_special_tokens=True)
    assert len(ours) == len(theirs)
    assert (ours.eos_id, ours.bos_id, ours.pad_id) == (theirs.eos_token_id, theirs.bos_token_id, theirs.pad_token_id)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=texts)
def test_the_spans_of_tokens_cover_the_text(tokenizer_with, text):
    ids, spans = tokenizer_with("chatml").encode_with_spans(text)
    assert len(ids) == len(spans)
    assert spans[0] == (0, 0)  # the token that begins a text
    ends = [last for _, last in spans]
    assert ends == sorted(ends)
    assert ends[-1] == len(text)
    assert all(first <= before for (first, _), before in zip(spans[1:], ends))


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=texts)
def test_streamed_text_is_the_text_in_whole_characters(tokenizer_with, text):
    tokenizer = tokenizer_with("chatml")
    stream = tokenizer.stream()
    pieces = [stream.push(number) for number in tokenizer.encode(text)] + [stream.finish()]
    assert "".join(pieces) == tokenizer.decode(tokenizer.encode(text))
    if "\ufffd" not in text:
        assert all("\ufffd" not in piece for piece in pieces)


def test_a_stream_of_bytes_that_are_no_text_is_told_all_the_same(tokenizer_with):
    tokenizer = tokenizer_with("chatml")
    wrong = tokenizer.encode("é", special_tokens=False)
    first = wrong[0] if len(wrong) > 1 else tokenizer.encode("🙂", special_tokens=False)[0]
    stream = tokenizer.stream()
    assert "".join(stream.push(first) for _ in range(100)).count("\ufffd") >= 80


def test_eos_tokens_come_from_all_files(tmp_path: Path):
    folder = write_folder(tmp_path)
    eos = Tokenizer(folder).eos_id
    (folder / "config.json").write_text('{"eos_token_id": 6}')
    assert Tokenizer(folder).stop_ids == (eos, 6)
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [0, eos]}))
    assert Tokenizer(folder).stop_ids == (eos, 0)
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": "</s>"}))
    with pytest.raises(pb.FileFormatError, match=r"generation_config.json: eos_token_id must be a number"):
        Tokenizer(folder)


def test_a_template_of_its_own_file_comes_first(tmp_path: Path):
    folder = write_folder(tmp_path)
    (folder / "chat_template.jinja").write_bytes(b"{{ messages[0].content }}\r\n{{ eos_token }}")
    assert Tokenizer(folder).render([USER]) == USER["content"] + "\n<|im_end|>"


def test_the_default_of_named_templates_is_used(tmp_path: Path):
    named = [{"name": "tool_use", "template": "tools"}, {"name": "default", "template": CHATML}]
    tokenizer = Tokenizer(write_folder(tmp_path / "named", named))
    theirs = transformers.AutoTokenizer.from_pretrained(tokenizer.folder)
    assert tokenizer.render([USER]) == theirs.apply_chat_template([USER], tokenize=False)
    tokenizer = Tokenizer(write_folder(tmp_path / "none", named[:1]))
    assert not tokenizer.has_chat_template
    with pytest.raises(pb.ConfigurationError, match="none: has no chat template"):
        tokenizer.render([USER])


def test_special_tokens_are_found_in_the_old_file(tmp_path: Path):
    folder = write_folder(tmp_path, eos_token=None)
    assert Tokenizer(folder).eos_id is None
    (folder / "special_tokens_map.json").write_text('{"eos_token": {"content": "<|eot|>"}}')
    tokenizer = Tokenizer(folder)
    assert tokenizer.decode([tokenizer.eos_id], special_tokens=True) == "<|eot|>"


def test_tokens_that_only_the_configuration_has_are_added(tmp_path: Path):
    count = len(Tokenizer(write_folder(tmp_path)))
    extra = {str(count): {"content": "<|extra|>", "special": True, "lstrip": False}}
    tokenizer = Tokenizer(write_folder(tmp_path, added_tokens_decoder=extra))
    assert tokenizer.encode("a<|extra|>")[-1] == count
    with pytest.raises(pb.FileFormatError, match=r"token 9999 is '<\|other\|>'"):
        Tokenizer(write_folder(tmp_path, added_tokens_decoder={"9999": {"content": "<|other|>"}}))


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{% if %}", r"not valid \(line 1 of it\)"),
        ("{{ messages[0].content.__class__.__mro__ }}", "unsafe"),
        ("{{ raise_exception('no system') }}", "no system"),
        ("{{ messages.append(1) }}", "unsafe"),
        ("{{ 1 // 0 }}", "division"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "recursion"),
        ("{% for i in range(99999) %}{{ 'x' * 9999 }}{% endfor %}", "more than 64000000 characters"),
        ("x" * 1_000_001, "1000000 are the limit"),
    ],
)
def test_what_is_wrong_with_a_template_is_said(tmp_path: Path, template, message):
    with pytest.raises(pb.ConfigurationError, match=rf"tokenizer_config.json: .*{message}"):
        Tokenizer(write_folder(tmp_path, template)).render([USER])


def test_what_is_wrong_with_a_folder_is_said(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match=r"tokenizer.json: no such file"):
        Tokenizer(tmp_path)
    with pytest.raises(pb.ConfigurationError, match="eos_token is '<unknown>', which is no token"):
        _ = Tokenizer(write_folder(tmp_path, eos_token="<unknown>")).eos_id
    with pytest.raises(pb.FileFormatError, match="chat_template must be a text"):
        Tokenizer(write_folder(tmp_path, 3))
    with pytest.raises(pb.FileFormatError, match="pad_token must be a text"):
        Tokenizer(write_folder(tmp_path, pad_token=[1]))
    folder = write_folder(tmp_path)
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(pb.FileFormatError, match=r"tokenizer.json: not a tokenizer"):
        Tokenizer(folder)


def test_a_library_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = write_folder(tmp_path)
    tokenizer = Tokenizer(folder)
    for name in ("jinja2", "tokenizers"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    with pytest.raises(pb.ConfigurationError, match=r"jinja2, .* `pip install 'pullback\[finetune\]'`"):
        tokenizer.render([USER])
    with pytest.raises(pb.ConfigurationError, match=r"tokenizers, .* `pip install 'pullback\[finetune\]'`"):
        Tokenizer(folder)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": ""}}, "not a tokenizer"),
        ({"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "?"}}, "cannot make tokens of a text"),
        (
            {
                "pre_tokenizer": {
                    "type": "Split",
                    "pattern": {"Regex": "(a+)+$"},
                    "behavior": "Isolated",
                    "invert": False,
                }
            },
            "cannot make tokens of a text",
        ),
    ],
    ids=["panics when read", "fails at a text", "panics at a text"],
)
def test_a_library_that_gives_up_is_told_with_its_file(tmp_path: Path, entries, message):
    folder = write_folder(tmp_path, CHATML)
    path = folder / "tokenizer.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **entries}))
    with pytest.raises(pb.errors.FileFormatError, match=rf"tokenizer\.json: {message}"):
        Tokenizer(folder).encode("b" + "a" * 40 + "b")


@pytest.mark.parametrize("text", ["\ud83d", "name \udcff"])
def test_half_of_a_character_is_told(tokenizer_with, text):
    with pytest.raises(pb.ConfigurationError, match="half of a character"):
        tokenizer_with("chatml").encode(text)
