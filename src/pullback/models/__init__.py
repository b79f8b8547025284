"""Language models: Llama 3, Qwen2 and Qwen3, from Hugging Face's folders or drawn at random."""

from .cache import Cache
from .config import DecoderConfig
from .folder import load
from .generation import Generation
from .language_model import LanguageModel
from .saving import save
from .sizes import llama3, qwen2, qwen3

__all__ = ["Cache", "DecoderConfig", "Generation", "LanguageModel", "llama3", "load", "qwen2", "qwen3", "save"]


def __dir__() -> list[str]:
    return __all__
