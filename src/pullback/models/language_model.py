"""A decoder with a head: logits of the next token, the loss of a text, and text from a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, Iterator

from ..autodiff.creation import asarray
from ..errors import ShapeError
from ..functions.filled import full
from ..functions.losses import cross_entropy
from ..functions.manipulation import concat, reshape
from ..functions.sorting import where
from ..nn.module import Module
from .decoder import Decoder, layer_of
from .generation import for_prompts

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from .cache import Cache
    from .config import DecoderConfig
    from .decoder import Weights

IGNORED = -100  # the label of tokens without a loss


class LanguageModel(Module):
    """Logits of the next token (samples, length, vocabulary) for tokens (samples, length).

    It is called as `model(tokens)`. With `segments`, numbers in the shape of the tokens, a row holds several texts that
    do not see each other; `positions` are the places of the tokens in their texts, from 0 on (0, 1, 2, ... in the whole
    row without). Make one with `pb.models.load`, `pb.models.qwen3`, `pb.models.qwen2` or `pb.models.llama3`; `weights`
    come from there.

    >>> import pullback as pb
    >>> config = pb.models.DecoderConfig("qwen3", vocab_size=100, hidden_size=64, intermediate_size=128,
    ...     num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=16)
    >>> model = pb.models.qwen3(config)
    >>> model(pb.asarray([[1, 2, 3]])).shape
    (1, 3, 100)
    """

    def __init__(self, config: DecoderConfig, weights: Weights) -> None:
        self.config = config
        self.model = Decoder(config, weights, "model")
        table = self.model.embed_tokens.weight
        shape = (config.vocab_size, config.hidden_size)
        self.lm_head = layer_of(table if config.tie_word_embeddings else weights("lm_head.weight", shape))

    def forward(self, tokens: Any, positions: Any = None, segments: Any = None, cache: Cache | None = None) -> Tensor:
        """Logits (samples, length, vocabulary) of the tokens that follow `tokens` (samples, length).

        `positions` and `segments` have the shape of the tokens. With a `cache` the tokens are appended to those in it,
        and see them.
        """
        return self.lm_head(self.model(tokens, positions, segments, cache))

    def loss(
        self, tokens: Any, labels: Any = None, positions: Any = None, segments: Any = None, reduction: str = "mean"
    ) -> Tensor:
        """The cross-entropy of each token after those before it.

        Parameters
        ----------
        tokens : array of int
            (samples, length).
        labels : array of int, optional
            In the shape of the tokens: the tokens again, or -100 for those that have no loss (a question, padding).
            The label of a place is compared with what is predicted one place before. By default the tokens.
        positions, segments : array of int, optional
            As in a call of the model. The first token of a segment has no loss.
        reduction : str
            "mean" over the tokens that have a loss, or "sum".

        Returns
        -------
        Tensor
            A number.

        Examples
        --------
        >>> import pullback as pb
        >>> model = pb.models.qwen3(pb.models.DecoderConfig("qwen3", vocab_size=100, hidden_size=8,
        ...     intermediate_size=8, num_hidden_layers=1, num_attention_heads=1, num_key_value_heads=1, head_dim=8))
        >>> 4.4 < model.loss(pb.asarray([[1, 2, 3]])).item() < 4.8
        True
        """
        tokens = asarray(tokens)
        labels = tokens if labels is None else asarray(labels)
        if labels.shape != tokens.shape:
            raise ShapeError(f"loss: tokens have shape {tokens.shape}, labels {labels.shape}; they must be equal.")
        targets = _next(labels, IGNORED)
        if segments is not None:
            segments = asarray(segments)
            targets = where(_next(segments, -1) == segments, targets, IGNORED)
        hidden = self.model(tokens, positions, segments)
        logits = self.lm_head(reshape(hidden, (-1, hidden.shape[-1])))
        if logits.dtype.itemsize < 4:  # a sum over thousands of tokens is no number for half precision
            logits = logits.astype("float32")
        return cross_entropy(logits, reshape(targets, (-1,)), ignore_index=IGNORED, reduction=reduction)

    def generate(
        self,
        prompts: Any,
        max_new_tokens: int = 128,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        stop: int | Iterable[int] | None = None,
        seed: int | None = None,
        capacity: int | None = None,
        compile: bool | None = None,
    ) -> list[Any]:
        """What the model writes after a prompt, or after each of several: lists of tokens, without the prompts.

        Gradients are never tracked, and dropout does not act. To generate again and again, make a
        `pb.models.Generation`, which keeps what it has compiled.

        Parameters
        ----------
        prompts : list or array of int
            Tokens of one text, or a list of such, of any lengths.
        max_new_tokens : int
            When a text ends that no stop token has ended.
        temperature : float
            0 for the likeliest token each time; else what logits are divided by before a token is drawn.
        top_k, top_p : optional
            Draw only from the `top_k` likeliest tokens; only from the likeliest ones that together reach `top_p`.
        stop : int or several, optional
            Tokens after which a text ends; they are part of it. By default `config.stop_tokens`, from the model's
            folder; `()` for none.
        seed : int, optional
            Of the numbers that tokens are drawn with: equal seeds and logits give equal texts on every device. A text's
            numbers do not depend on the other texts. By default those of `pb.random`'s generator.
        capacity : int, optional
            The room for tokens, prompt included, by default just enough.
        compile : bool, optional
            By default steps are compiled where they can be.

        Returns
        -------
        list of int, or list of these for several prompts

        Examples
        --------
        >>> import pullback as pb
        >>> model = pb.models.qwen3(pb.models.DecoderConfig("qwen3", vocab_size=100, hidden_size=8,
        ...     intermediate_size=8, num_hidden_layers=1, num_attention_heads=1, num_key_value_heads=1, head_dim=8))
        >>> [len(text) for text in model.generate([[1, 2, 3], [4]], max_new_tokens=2, compile=False)]
        [2, 2]
        """
        generation = for_prompts(self, prompts, max_new_tokens, capacity, compile)
        return generation.generate(prompts, max_new_tokens, temperature, top_k, top_p, stop, seed)

    def stream(
        self,
        prompts: Any,
        max_new_tokens: int = 128,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        stop: int | Iterable[int] | None = None,
        seed: int | None = None,
        capacity: int | None = None,
        compile: bool | None = None,
    ) -> Iterator[Any]:
        """The tokens that `generate` gives, as they come: one at a time; for several prompts a tuple with one of each.

        A text that has ended has None in these tuples. The arguments are those of `pb.models.LanguageModel.generate`.

        >>> import pullback as pb
        >>> model = pb.models.qwen3(pb.models.DecoderConfig("qwen3", vocab_size=100, hidden_size=8,
        ...     intermediate_size=8, num_hidden_layers=1, num_attention_heads=1, num_key_value_heads=1, head_dim=8))
        >>> len([token for token in model.stream([1, 2, 3], max_new_tokens=4, compile=False)])
        4
        """
        generation = for_prompts(self, prompts, max_new_tokens, capacity, compile)
        return generation.stream(prompts, max_new_tokens, temperature, top_k, top_p, stop, seed)


def _next(x: Tensor, last: int) -> Tensor:
    """What is one place to the right, and `last` at the end."""
    end = full((x.shape[0], 1), last, dtype=x.dtype, device=x.device)
    return concat([x[:, 1:], end], axis=1)
