"""The texts of a run: read, checked, and cut into batches, before any weight is loaded."""

from __future__ import annotations

import json
import os
from datetime import datetime
from functools import cached_property
from hashlib import blake2b
from typing import Any, Iterator

from ..errors import ConfigurationError
from ..models.config import DecoderConfig, read_config
from .batches import PackedBatches
from .description import describe, fingerprint
from .loading import check_tokens
from .records import read_records
from .samples import SampleSet, TooLongError, make_samples
from .settings import Settings
from .tokenizer import Tokenizer

_PARTS, _PART_BYTES = 64, 4096  # of a file of weights that are looked at


class Texts:
    """The configuration and the tokenizer of a model, and the batches to learn from and to evaluate with."""

    def __init__(self, settings: Settings) -> None:
        for name in ("data", "validation"):
            path = getattr(settings, name)
            if path is not None and not os.path.exists(path):
                raise FileNotFoundError(f"{path}: no such file (--{name}).")
        if not os.path.isdir(settings.model):
            raise FileNotFoundError(f"{settings.model}: no such folder (--model).")
        self.settings = settings
        self.config: DecoderConfig = read_config(settings.model)
        self.tokenizer = Tokenizer(settings.model, datetime.fromisoformat(settings.date) if settings.date else None)
        self.samples = self._samples(settings.data)
        self.batches = self._batches(self.samples, shuffle=True)
        self.held_out: SampleSet | None = None
        self.validation: PackedBatches | None = None
        if settings.validation is not None:
            self.held_out = self._samples(settings.validation)
            self.validation = self._batches(self.held_out, shuffle=False)

    @cached_property
    def fingerprint(self) -> str:
        """A checksum of what the run learns from, and of the model that it begins with."""
        digest = blake2b(digest_size=32)
        for found in (self.samples, self.held_out):
            digest.update(b"-" if found is None else fingerprint(found.samples).encode())
        digest.update(json.dumps(_outline(self.settings.model)).encode())
        return digest.hexdigest()

    def described(self) -> Iterator[tuple[str, ...]]:
        """A table of the samples in numbers."""
        yield "texts", "samples", "tokens", "learned", "longest", "rows", "filled", "left out", "cut"
        for name, found in (("data", self.samples), ("validation", self.held_out)):
            if found is not None:
                about = describe(found.samples, self.settings.seq, self.settings.pack)
                counts = [about[key] for key in ("samples", "tokens", "loss_tokens", "longest", "rows")]
                left_out = (f"{len(found.skipped):,}", f"{len(found.truncated):,}")
                yield name, *(f"{count:,}" for count in counts), f"{about['fill_rate']:.0%}", *left_out

    def _samples(self, path: str) -> SampleSet:
        settings = self.settings
        records = read_records(path)
        try:
            found = make_samples(
                records, self.tokenizer, settings.seq, train_on=settings.train_on, too_long=settings.too_long
            )
        except TooLongError as error:
            raise ConfigurationError(f"{path}: {error.found}\n{_way_out(error)}") from None
        largest = describe(found.samples, settings.seq, settings.pack)["largest_token"]
        check_tokens(largest, settings.model, self.config.vocab_size)
        return found

    def _batches(self, found: SampleSet, shuffle: bool) -> PackedBatches:
        settings = self.settings
        padding = self.tokenizer.pad_id or 0
        return PackedBatches(
            found.samples,
            settings.batch,
            settings.seq,
            pack=settings.pack,
            shuffle=shuffle,
            seed=settings.seed,
            padding=padding if padding < self.config.vocab_size else 0,
        )


def _way_out(error: TooLongError) -> str:
    """What to write on a command line."""
    if error.longest is None:
        return "Pass a larger --seq."
    return (
        f"Pass --seq {error.longest} to have them all, --too-long truncate to leave out their ends, or --too-long skip "
        "to leave them out."
    )


def _outline(folder: str) -> list[Any]:
    """The text of a model's configuration, and of its files names, sizes and a few bytes: cheap, and rarely equal."""
    names = sorted(name for name in os.listdir(folder) if name.endswith(".safetensors"))
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        return [file.read(), *([name, *_size_and_some_bytes(os.path.join(folder, name))] for name in names)]


def _size_and_some_bytes(path: str) -> tuple[int, str]:
    """The size of a file, and a checksum of parts of it from its beginning to its end."""
    digest, size = blake2b(digest_size=16), os.path.getsize(path)
    with open(path, "rb") as file:
        for part in range(_PARTS):
            file.seek(max(0, size - _PART_BYTES) * part // (_PARTS - 1))
            digest.update(file.read(_PART_BYTES))
    return size, digest.hexdigest()
