"""Tiny models of `transformers`, drawn at random, and the folders they are saved in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..backends.installed import optional

torch = optional("torch")
transformers = optional("transformers")

SIZES = {
    "vocab_size": 97,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
    "rope_theta": 500.0,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "rope_theta": 1000.0}
#: What is told apart: a name, the class's name, and options beside the sizes.
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "qwen3": ("Qwen3", {"head_dim": 16}),
    "qwen3 tied": ("Qwen3", {"head_dim": 16, "tie_word_embeddings": True}),
    "qwen3 biased": ("Qwen3", {"head_dim": 6, "attention_bias": True}),
    "qwen3 yarn": ("Qwen3", {"head_dim": 16, "rope_parameters": YARN}),
    "qwen2": ("Qwen2", {}),
    "llama": ("Llama", {"rope_parameters": LLAMA3, "rms_norm_eps": 1e-5}),
    "llama biased": ("Llama", {"attention_bias": True, "mlp_bias": True, "num_key_value_heads": 4}),
    "llama linear": ("Llama", {"rope_parameters": {"rope_type": "linear", "factor": 3.0, "rope_theta": 10000.0}}),
}


def make(name: str, folder: Path, **options: Any) -> Any:
    """A model of `transformers`, saved in `folder`, with parameters large enough that all of them matter."""
    family, own = MODELS[name]
    torch.manual_seed(len(name))
    config = getattr(transformers, f"{family}Config")(**{**SIZES, **own, **options})
    config._attn_implementation = "eager"
    model = getattr(transformers, f"{family}ForCausalLM")(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape) * (0.3 if parameter.ndim > 1 else 0.1))
            if parameter.ndim == 1:
                parameter += 1.0
    model.save_pretrained(folder)
    return model
