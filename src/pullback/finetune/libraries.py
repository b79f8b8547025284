"""Libraries that only fine-tuning needs: imported when they are first used."""

from __future__ import annotations

import importlib
from typing import Any

from ..errors import ConfigurationError


def library(name: str, purpose: str) -> Any:
    """The module `name`, or an error that says what it is for and how to install it.

    >>> from pullback.finetune.libraries import library
    >>> library("json", "reading records").loads("[1]")
    [1]
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConfigurationError(
            f"{purpose} needs the library {name}, which cannot be imported here ({error}). "
            "Install it with `pip install 'pullback[finetune]'`."
        ) from None
