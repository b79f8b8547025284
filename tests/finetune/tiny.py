"""A language model of a few thousand weights in a folder, chats for it, and folders of larger ones without weights."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any, NamedTuple

import pullback as pb
from pullback.finetune import Settings, Tokenizer, example
from pullback.models import DecoderConfig, config

from .folders import jinja2, tokenizers


class Tiny(NamedTuple):
    """The folder of a model, and files of texts."""

    model: Path
    data: Path
    validation: Path

    def settings(self, **changes: Any) -> Settings:
        """Settings of short runs, which learn much in a few steps."""
        few = {"rank": 2, "seq": 48, "batch": 2, "steps": 4, "lr": 0.02, **changes}
        return Settings(model=str(self.model), data=str(self.data), **few)


def write_tiny(folder: Path) -> Tiny:
    """Write a model of two layers, with a tokenizer of its own, and the chats of the example."""
    _ = tokenizers.Tokenizer, jinja2.Environment  # a test without them is skipped
    model = folder / "tiny"
    example.write_model(model, steps=0)  # for the tokenizer
    with pb.random.using(pb.random.Generator(0)):
        pb.models.save(pb.models.qwen3(_sizes(vocab_size=len(Tokenizer(model)))), model)
    return Tiny(model, *example.write_chats(folder))


def _sizes(**changes: Any) -> DecoderConfig:
    sizes = {
        "vocab_size": 384, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2,
        "num_key_value_heads": 1, "head_dim": 8,
    }  # fmt: skip
    return DecoderConfig("qwen3", tie_word_embeddings=True, initializer_range=0.3, **{**sizes, **changes})


def write_hollow(folder: Path, tiny: Tiny, dtype: str = "bfloat16", **sizes: int) -> Path:
    """Write the folder of a model of any size, whose weights are a file with a header and nothing on the disk."""
    folder.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((tiny.model / name).read_bytes())
    about = _sizes(**sizes)
    entries = config.to_entries(about)
    (folder / "config.json").write_text(json.dumps(entries))
    width = {"bfloat16": 2, "float32": 4}[dtype]
    header: dict[str, Any] = {}
    end = 0

    def note(name: str, shape: tuple[int, ...]) -> pb.Tensor:
        nonlocal end
        begin, end = end, end + width * math.prod(shape)
        header[name] = {"dtype": {2: "BF16", 4: "F32"}[width], "shape": shape, "data_offsets": [begin, end]}
        return pb.broadcast_to(pb.zeros(1), shape)

    pb.models.LanguageModel(about, note)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
    os.truncate(folder / "model.safetensors", 8 + len(text) + end)
    return folder
