"""JSON Lines files: what is in them is read, and whatever is wrong with them is said, with its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

import pullback as pb
from pullback.finetune import read_records, records

CHAT = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}
GOOD = [{"text": "a"}, CHAT, {"prompt": "q", "completion": "a", "id": 3}]


def written(folder: Path, content: bytes) -> Path:
    path = folder / "data.jsonl"
    path.write_bytes(content)
    return path


def test_the_three_forms_are_read_in_order(tmp_path: Path):
    path = written(tmp_path, "\n".join(json.dumps(record) for record in GOOD).encode())
    text, chat, completion = read_records(path)
    assert (text.text, text.place) == ("a", f"{path}:1")
    assert (list(chat.messages), chat.place) == (CHAT["messages"], f"{path}:2")
    assert (completion.prompt, completion.completion, completion.place) == ("q", "a", f"{path}:3")


def test_byte_order_marks_line_ends_and_empty_lines_are_no_matter(tmp_path: Path):
    content = b'\xef\xbb\xbf{"text": "\xc3\xa9\\ud83d\\ude42"}\r\n\r\n  \n\t{"text": "\xe2\x80\xa8 b"}  \r\n\n'
    found = read_records(written(tmp_path, content))
    assert [(record.text, record.place[-2:]) for record in found] == [("é🙂", ":1"), ("\u2028 b", ":4")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"not json", r"is not JSON .*'not json'"),
        (b'{"text": "a"', "is not JSON"),
        (b'{"text": "a"} {"text": "b"}', r"is not JSON \(Extra data"),
        (b"[1]", "is a list, expected an object"),
        (b"null", "is null, expected an object"),
        (b'"a"', "is a text, expected an object"),
        (b"{}", "has none of 'text', 'messages' or 'prompt', but nothing"),
        (b'{"Text": "a"}', "has none of .*, but 'Text'"),
        (b'{"text": "a", "messages": []}', "has both 'text' and 'messages'"),
        (b'{"prompt": "a"}', "has 'prompt' without 'completion'"),
        (b'{"completion": "a"}', "has 'completion' without 'prompt'"),
        (b'{"text": 1}', "'text' is a number, expected a text"),
        (b'{"text": true}', "'text' is true"),
        (b'{"text": " \\n"}', "'text' is empty"),
        (b'{"prompt": "", "completion": ""}', "'completion' is empty"),
        (b'{"prompt": [], "completion": "a"}', "'prompt' is a list"),
        (b'{"messages": {}}', "'messages' is an object, expected a list"),
        (b'{"messages": []}', "'messages' is empty"),
        (b'{"messages": ["a"]}', r"messages\[0\] is a text, expected an object"),
        (b'{"messages": [{"role": "user"}]}', r"messages\[0\] has no 'content'"),
        (b'{"messages": [{"content": "user"}]}', r"messages\[0\] has no 'role'"),
        (b'{"messages": [{"role": 1, "content": ""}]}', r"messages\[0\]: 'role' is a number"),
        (b'{"messages": [{"role": "", "content": ""}]}', r"messages\[0\]: 'role' is empty"),
        (b'{"messages": [{"role": "user", "content": null}]}', r"messages\[0\]: 'content' is null"),
        (b'{"text": "\\ud83d"}', "has half of a character"),
        (b'{"text": "\xff"}', "is not UTF-8: invalid start byte at byte 10"),
        (b'{"text": ' + b"[" * 100_000, "is nested too deeply"),
        (b'{"text": ' + b"1" * 10_000 + b"}", "is not JSON"),
        ('{"text": "a"}'.encode("utf-16"), "is not UTF-8"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line, message):
    path = written(tmp_path, b'{"text": "good"}\n' + line + b"\n")
    with pytest.raises(pb.FileFormatError, match=rf"data.jsonl:2: {message}") as caught:
        read_records(path)
    assert '{"prompt": "...", "completion": "..."}' in str(caught.value)
    assert len(str(caught.value)) < 800


def test_the_first_bad_lines_are_listed(tmp_path: Path):
    with pytest.raises(pb.FileFormatError, match="The rest of the file was not read") as caught:
        read_records(written(tmp_path, b"x\n" * 100))
    assert str(caught.value).count("is not JSON") == records.MOST_PROBLEMS
    with pytest.raises(pb.FileFormatError) as caught:
        read_records(written(tmp_path, b'x\n{"text": "a"}\ny'))
    assert "data.jsonl:1:" in str(caught.value) and "data.jsonl:3:" in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"\n\r\n \n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_an_error(tmp_path: Path, content):
    with pytest.raises(pb.FileFormatError, match="the file is empty"):
        read_records(written(tmp_path, content))


def test_what_is_no_file_is_an_error(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match=r"none.jsonl: no such file"):
        read_records(tmp_path / "none.jsonl")
    with pytest.raises(pb.FileFormatError, match="is a folder"):
        read_records(tmp_path)


def test_a_line_that_is_too_long_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(records, "LONGEST_LINE", 20)
    monkeypatch.setattr(records, "_CHUNK", 7)
    lines = b'{"text": "12345678"}', b'{"text": "123456789"}', b" " * 100, b'{"text": "a"}', b"x" * 50
    for end in (b"\n", b""):
        with pytest.raises(pb.FileFormatError, match="more than 20 bytes") as caught:
            read_records(written(tmp_path, b"\n".join(lines[1:]) + end))
        told = str(caught.value)
        assert [f"data.jsonl:{number}:" in told for number in range(1, 6)] == [True, True, False, True, False]
    assert len(read_records(written(tmp_path, lines[3] + b"\n" + lines[3]))) == 2


SOUND = "\n".join(json.dumps(record) for record in GOOD).encode()
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["role", "content", "x"]), inner),
    max_leaves=6,
)
keys = st.sampled_from(["text", "messages", "prompt", "completion", "other"])


def is_read_or_refused(path: Path) -> None:
    """No error but the typed one, which names the file."""
    try:
        assert read_records(path)
    except pb.FileFormatError as error:
        told = str(error)
    else:
        return
    assert str(path) in told


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.integers(0, len(SOUND)), st.integers(0, 8), st.binary(max_size=8))
@example(0, 0, b"\x00")
def test_a_damaged_file_is_read_or_refused(tmp_path: Path, start, length, replacement):
    is_read_or_refused(written(tmp_path, SOUND[:start] + replacement + SOUND[start + length :]))


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.dictionaries(keys, json_values) | json_values, max_size=4))
def test_values_of_all_types_are_read_or_refused(tmp_path: Path, values):
    is_read_or_refused(written(tmp_path, "\n".join(json.dumps(value) for value in values).encode()))
