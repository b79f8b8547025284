"""A language model as something to train: its output is the sum of its tokens' losses, its state what is learned."""

from __future__ import annotations

from typing import Any, Mapping

from ..models import LanguageModel
from ..nn import Module, state
from ..tensors.tensor import Tensor


class Objective(Module):
    """The sum of the losses of a batch: tokens, labels, positions and segments, each (rows, length).

    Frozen weights are no part of its state, so that checkpoints hold what is learned and nothing else.
    """

    def __init__(self, model: LanguageModel) -> None:
        self.language_model = model

    def forward(self, tokens: Any, labels: Any, positions: Any, segments: Any) -> Tensor:
        return self.language_model.loss(tokens, labels, positions, segments, reduction="sum")

    def state_dict(self) -> dict[str, Tensor]:
        """What is learned, by its name in the language model."""
        return {name: tensor.detach() for name, tensor in self._learned().items()}

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> state.Differences:
        """Write what was learned into the language model; everything fits, or nothing is written."""
        return state.load(type(self.language_model).__name__, self._learned(), state_dict, strict)

    def _learned(self) -> dict[str, Tensor]:
        return {name: tensor for name, tensor in self.language_model.named_parameters() if tensor.requires_grad}


def mean_over_tokens(total: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """The sum of losses and how many there are: what a `Trainer` makes a mean of, over all batches of a step."""
    return total, counts.sum().astype("float32")
