"""Text from text: a prompt is read into a cache of keys and values, then token after token is chosen and read.

One step reads one token of every text. It is compiled once, for the cache keeps its shape, and the cache is written in
place. Prompts are read in chunks of few sizes, so that no length of a prompt is compiled for itself.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Iterable, Iterator

import numpy as np

from ..autodiff.base import values_of
from ..autodiff.creation import asarray
from ..compiler.calling import compile
from ..errors import ConfigurationError, DtypeError, ShapeError
from ..modes import no_grad
from ..random import Generator, default_generator
from ..targets import target_for
from .cache import Cache
from .prompts import as_prompts
from .sampling import Sampling

if TYPE_CHECKING:
    from ..nn.module import Module
    from ..tensors.tensor import Tensor
    from .language_model import LanguageModel

_CHUNKS = (128, 16)  # tokens of a prompt that are read at once: as many as there are, then what is left
_ROUNDED = 64  # capacities that are not given are multiples of it, for texts of about one length to share native code


class Generation:
    """A model with a cache for `samples` texts at a time, of up to `capacity` tokens each, prompts included.

    What is compiled is kept for all texts that are generated with it, one batch after the other. For one call
    `model.generate` and `model.stream` do without it.

    Parameters
    ----------
    model : LanguageModel
        What generates.
    samples : int
        How many texts are generated together.
    capacity : int
        The most tokens that a text can have.
    compile : bool, optional
        By default steps are compiled where they can be: where llvmlite is installed, and on devices with a
        compiler.

    Examples
    --------
    >>> import pullback as pb
    >>> config = pb.models.DecoderConfig("qwen3", vocab_size=100, hidden_size=64, intermediate_size=128,
    ...     num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=16)
    >>> generation = pb.models.Generation(pb.models.qwen3(config), capacity=32, compile=False)
    >>> text = generation.generate([1, 2, 3], max_new_tokens=5)
    >>> text == list(generation.stream([1, 2, 3], max_new_tokens=5)), len(text)
    (True, 5)
    """

    def __init__(
        self, model: LanguageModel, samples: int = 1, capacity: int = 1024, compile: bool | None = None
    ) -> None:
        weight = model.model.embed_tokens.weight
        self.model = model
        self.cache = Cache(model.config, samples, capacity, weight.dtype, weight.device)
        self.step, self.read = steps(model, self.cache, _is_compiled(weight.device, compile))
        self._device = weight.device
        self._modules: list[Any] = []
        self._turn = 0  # how many batches of texts have begun: each writes over the cache of the one before

    def generate(
        self,
        prompts: Any,
        max_new_tokens: int = 128,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        stop: int | Iterable[int] | None = None,
        seed: int | None = None,
    ) -> list[Any]:
        """New tokens for each of some prompts, or for the one; see `pb.models.LanguageModel.generate`."""
        texts: list[list[int]] = []
        is_single = True
        for step in self.stream(prompts, max_new_tokens, temperature, top_k, top_p, stop, seed):
            is_single = not isinstance(step, tuple)
            tokens = (step,) if is_single else step
            texts = texts or [[] for _ in tokens]
            for text, token in zip(texts, tokens):
                if token is not None:
                    text.append(token)
        return texts[0] if is_single else texts

    def stream(
        self,
        prompts: Any,
        max_new_tokens: int = 128,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        stop: int | Iterable[int] | None = None,
        seed: int | None = None,
    ) -> Iterator[Any]:
        """New tokens as they come; see `pb.models.LanguageModel.generate` for the arguments."""
        texts, is_single = as_prompts(prompts, self.model.config.vocab_size)
        sampling = Sampling(temperature, top_k, top_p)
        stops = _stops(self.model.config.stop_tokens if stop is None else stop)
        if type(max_new_tokens) is not int or max_new_tokens < 1:
            raise ConfigurationError(f"max_new_tokens must be an integer from 1 on, got {max_new_tokens!r}.")
        samples = self.cache.lengths.shape[0]
        if len(texts) != samples:
            raise ShapeError(f"{len(texts)} prompts for a Generation of {samples} samples; their number is fixed.")
        needed = needed_capacity(texts, max_new_tokens)
        if needed > self.cache.capacity:
            raise ShapeError(
                f"the longest prompt has {max(map(len, texts))} tokens, and with {max_new_tokens} new ones it takes a "
                f"capacity of {needed}; this one is {self.cache.capacity}. Write capacity={needed}, or fewer "
                "max_new_tokens, or a shorter prompt."
            )
        source = default_generator() if seed is None else Generator(seed)
        # Each text has numbers of its own: it does not depend on when the others end.
        chances = source.split(samples) if temperature else []
        self._turn += 1
        tokens = self._tokens(texts, max_new_tokens, sampling, stops, chances)
        return (step[0] for step in tokens) if is_single else tokens

    def _tokens(
        self, texts: list[Any], count: int, sampling: Sampling, stops: frozenset[int], chances: list[Generator]
    ) -> Iterator[tuple[int | None, ...]]:
        """The next token of each text, None for those that have ended, until all have."""
        turn, self._modules = self._turn, list(self.model.modules())
        self._read_prompts([text[:-1] for text in texts])
        places = np.array([len(text) - 1 for text in texts], np.int32)
        last = np.array([text[-1] for text in texts], np.int32)
        is_open = [True] * len(texts)
        for _ in range(count):
            if turn != self._turn:
                raise ConfigurationError(
                    "this Generation has begun another text, which took the cache. Make one for each text at a time."
                )
            logits = values_of(self._run(self.step, last[:, None], places))
            rows = logits if isinstance(logits, np.ndarray) else np.asarray(logits)
            found: list[int | None] = [None] * len(texts)
            for number, row in enumerate(rows):
                if is_open[number]:
                    chance = float(values_of(chances[number].uniform(dtype="float64"))) if chances else 0.0
                    found[number] = last[number] = sampling.choose(row, chance)
                    places[number] += 1
                    is_open[number] = last[number] not in stops
            yield tuple(found)
            if not any(is_open):
                return

    def _read_prompts(self, texts: list[Any]) -> None:
        """Read tokens (all but the last ones) into the cache.

        Texts that have nothing left read what they have read last: the same keys and values at the same places.
        """
        read = [0] * len(texts)
        while left := max(len(text) - done for text, done in zip(texts, read)):
            size = min(next((size for size in _CHUNKS if size <= left), _CHUNKS[-1]), self.cache.capacity)
            starts = [min(done, max(0, len(text) - size)) for text, done in zip(texts, read)]
            tokens = np.zeros((len(texts), size), np.int32)
            for number, (text, start) in enumerate(zip(texts, starts)):
                part = text[start : start + size]
                tokens[number, : len(part)] = part  # what is behind them is written over by the tokens to come
                read[number] = start + len(part)
            self._run(self.read, tokens, np.array(starts, np.int32))

    def _run(self, step: Any, tokens: Any, places: Any) -> Any:
        # Here and not around the whole, for between two tokens others' code runs.
        with no_grad(), _evaluating(self._modules):
            return step(asarray(tokens, device=self._device), asarray(places, device=self._device))

    def __repr__(self) -> str:
        return f"Generation({self.cache!r})"


def needed_capacity(texts: list[Any], max_new_tokens: int) -> int:
    """The room that prompts and new tokens take in a cache; the last new token is not read any more."""
    return max(map(len, texts)) + max_new_tokens - 1


def for_prompts(
    model: LanguageModel, prompts: Any, max_new_tokens: Any, capacity: int | None, compile: bool | None
) -> Generation:
    """A `Generation` for just these prompts."""
    texts, _ = as_prompts(prompts, model.config.vocab_size)
    if capacity is None:
        count = max_new_tokens if type(max_new_tokens) is int and max_new_tokens > 0 else 1
        capacity = -(-needed_capacity(texts, count) // _ROUNDED) * _ROUNDED
    return Generation(model, len(texts), capacity, compile)


def steps(model: LanguageModel, cache: Cache, is_compiled: bool) -> tuple[Any, Any]:
    """Two functions of tokens (samples, length) and of the places (samples) in the cache where they begin.

    The first one gives logits (samples, vocabulary) after one token of each text, the other one only reads.
    """

    def step(tokens: Tensor, places: Tensor) -> Tensor:
        cache.lengths[:] = places
        return model(tokens, cache=cache)[:, 0].astype("float32")

    def read(tokens: Tensor, places: Tensor) -> None:
        cache.lengths[:] = places
        model.model(tokens, cache=cache)

    return (compile(step), compile(read)) if is_compiled else (step, read)


def _is_compiled(device: str, wanted: bool | None) -> bool:
    """Whether steps are compiled on a device; an error if they should be and cannot."""
    target = target_for(device)
    missing = f"no compiler for {device!r}" if target is None else target.missing()
    if wanted and missing is not None:
        raise ConfigurationError(f"compile=True: there is {missing}. Leave it out, and steps run without.")
    return missing is None and wanted is not False


def _stops(stop: Any) -> frozenset[int]:
    tokens = [stop] if isinstance(stop, (int, np.integer)) else list(stop)
    for token in tokens:
        if isinstance(token, bool) or not isinstance(token, (int, np.integer)):
            raise DtypeError(f"stop must be a token or several, as integers; got {token!r:.40}.")
    return frozenset(int(token) for token in tokens)


@contextmanager
def _evaluating(modules: list[Module]) -> Iterator[None]:
    """Modules without dropout, if they have any; afterwards each is in the mode that it was in."""
    training = [module for module in modules if module.training]
    for module in training:
        vars(module)["training"] = False
    try:
        yield
    finally:
        for module in training:
            vars(module)["training"] = True
