"""Models and adapters from folders that a user names: what does not fit together is for the user to put right."""

from __future__ import annotations

from typing import Any

from .. import models, peft
from ..errors import ConfigurationError, DtypeError, ShapeError


def loaded(
    model: str, device: str | None = None, dtype: Any = None, *, adapter: str | None = None, quant: str = "none"
) -> models.LanguageModel:
    """The model in a folder, with the adapter in another one if that is given; quantized if `quant` says how."""
    try:
        found = models.load(model, device, dtype, None if quant == "none" else quant)
        return found if adapter is None else peft.load_adapter(found, adapter)
    except (ShapeError, DtypeError) as error:
        raise ConfigurationError(str(error)) from error


def check_tokens(largest: int, model: str, vocabulary: int) -> None:
    """Refuse tokens that a model does not know: its folder has another one's tokenizer."""
    if largest >= vocabulary:
        raise ConfigurationError(
            f"{model}: the tokenizer makes the token {largest}, and the model has {vocabulary} (vocab_size in "
            "config.json): they do not belong together."
        )
