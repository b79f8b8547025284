"""A tiny language model made on the spot, and chats to fine-tune it on: the beginning of the example."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Iterable

from .. import models, random
from ..files.atomic import atomic_write
from ..models import DecoderConfig, LanguageModel
from ..train import Callback, Trainer
from . import example_texts
from .batches import PackedBatches
from .libraries import library
from .objective import Objective, mean_over_tokens
from .records import ChatRecord, Record, TextRecord
from .samples import Sample, make_samples
from .settings import Settings
from .step import optimizer_for, schedule_for
from .tokenizer import Tokenizer

END_OF_TEXT, TURN, END_OF_TURN = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
VOCABULARY = 384
LENGTH = 64
_STEPS, _BATCH, _RATE = 300, 16, 4e-3
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


def write_model(folder: Path, callbacks: Iterable[Callback] = (), steps: int = _STEPS) -> None:
    """Make a tokenizer and a Qwen3 with a quarter of a million parameters, let it read, and save both."""
    os.makedirs(folder, exist_ok=True)
    texts, echoes = example_texts.sentences(), example_texts.echoes()
    write_tokenizer(folder, [*texts, *(message["content"] for chat in echoes for message in chat["messages"])])
    tokenizer = Tokenizer(folder)
    with random.using(random.Generator(0)):
        model = models.qwen3(_config(tokenizer))
    if steps:
        records: list[Record] = [TextRecord(text, "a sentence") for text in texts]
        # Chats of another kind than those to come, which show what a chat looks like.
        records += [ChatRecord(tuple(chat["messages"]), "a chat") for chat in echoes]
        _learn_to_read(model, make_samples(records, tokenizer, LENGTH, train_on="all").samples, callbacks, steps)
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


def _learn_to_read(model: LanguageModel, samples: list[Sample], callbacks: Iterable[Callback], steps: int) -> None:
    """Train all weights."""
    settings = Settings(model="", data="", lr=_RATE)
    trainer = Trainer(
        Objective(model),
        mean_over_tokens,
        optimizer_for(settings, model),
        schedule=schedule_for(settings, steps),
        clip_norm=settings.clip_norm,
        callbacks=list(callbacks),
        progress=False,
    )
    trainer.fit(PackedBatches(samples, _BATCH, LENGTH), steps=steps)


def write_tokenizer(folder: Path, texts: list[str]) -> None:
    """Write a small tokenizer for these texts, with a chat template, as a Hugging Face folder has it."""
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
