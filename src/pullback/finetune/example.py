"""A tiny language model made on the spot, and chats to fine-tune it on: what `pullback finetune --example` begins with."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Iterable

from .. import models, random
from ..files.atomic import atomic_write
from ..models import DecoderConfig, LanguageModel
from ..train import Callback, Trainer
from . import example_texts
from .libraries import library
from .objective import Objective, mean_over_tokens
from .packing import PackedBatches
from .records import ChatRecord, TextRecord
from .samples import make_samples
from .settings import Settings
from .step import optimizer_for, schedule_for
from .tokenizer import Tokenizer

END_OF_TEXT, TURN, END_OF_TURN = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
VOCABULARY = 384
LENGTH = 64
_STEPS, _BATCH, _RATE = 240, 16, 4e-3
_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write_chats(folder: Path) -> tuple[Path, Path]:
    """Write the chats to learn from, and those to evaluate with; their paths."""
    paths = folder / "chats.jsonl", folder / "validation.jsonl"
    for path, chats in zip(paths, example_texts.chats()):
        _write(path, "".join(json.dumps(chat) + "\n" for chat in chats))
    return paths


def write_model(folder: Path, callbacks: Iterable[Callback] = ()) -> None:
    """Make a tokenizer and a Qwen3 with a quarter of a million parameters, let it read, and save both."""
    os.makedirs(folder, exist_ok=True)
    texts = example_texts.sentences()
    _write_tokenizer(folder, [*texts, *(message["content"] for chat in _echoes() for message in chat["messages"])])
    tokenizer = Tokenizer(folder)
    with random.using(random.Generator(0)):
        model = models.qwen3(_config(tokenizer))
    _learn_to_read(model, tokenizer, texts, callbacks)
    models.save(model, folder)


def _config(tokenizer: Tokenizer) -> DecoderConfig:
    return DecoderConfig(
        "qwen3",
        vocab_size=len(tokenizer),
        hidden_size=96,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=24,
        tie_word_embeddings=True,
        max_position_embeddings=1024,
        initializer_range=0.05,
    )


def _learn_to_read(model: LanguageModel, tokenizer: Tokenizer, texts: list[str], callbacks: Iterable[Callback]) -> None:
    """Train all weights on sentences, and on chats that are of another kind than those to come."""
    records: list[Any] = [TextRecord(text, "a sentence") for text in texts]
    records += [ChatRecord(tuple(chat["messages"]), "a chat") for chat in _echoes()]
    samples = make_samples(records, tokenizer, LENGTH, train_on="all").samples
    batches = PackedBatches(samples, _BATCH, LENGTH, seed=0)
    settings = Settings(model="", data="", lr=_RATE)
    trainer = Trainer(
        Objective(model),
        mean_over_tokens,
        optimizer_for(settings, model),
        schedule=schedule_for(settings, _STEPS),
        clip_norm=1.0,
        callbacks=list(callbacks),
    )
    trainer.fit(batches, steps=_STEPS)


def _echoes() -> list[dict[str, Any]]:
    return example_texts.echoes()


def _write_tokenizer(folder: Path, texts: list[str]) -> None:
    tokenizers = library("tokenizers", "text")
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[END_OF_TEXT, TURN, END_OF_TURN],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(texts, trainer)
    _write(folder / "tokenizer.json", made.to_str(pretty=True))
    about = {"eos_token": END_OF_TURN, "pad_token": END_OF_TEXT, "chat_template": _TEMPLATE}
    _write(folder / "tokenizer_config.json", json.dumps(about, indent=2) + "\n")


def _write(path: Path, text: str) -> None:
    with atomic_write(path) as file:
        file.write(text.encode())
