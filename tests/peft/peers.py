"""Adapters of the `peft` library on tiny models of `transformers`, with values large enough that all of them matter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..backends.installed import optional
from ..models import peers

torch = optional("torch")
peft = optional("peft")

TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
#: Options of PEFT's configuration, by what is told apart.
KINDS: dict[str, dict[str, Any]] = {
    "lora": {},
    "rslora": {"use_rslora": True},
    "dora": {"use_dora": True},
    "dora and rslora": {"use_dora": True, "use_rslora": True},
}


def make(model: str, folder: Path, kind: str = "lora", **options: Any) -> Any:
    """An adapted model; the plain one is saved in `folder`."""
    base = peers.make(model, folder)
    given = {"r": 4, "lora_alpha": 6, "target_modules": TARGETS, "task_type": "CAUSAL_LM", **KINDS[kind], **options}
    adapted = peft.get_peft_model(base, peft.LoraConfig(**given))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in adapted.named_parameters():
            if "lora_magnitude" in name:
                parameter *= 1 + 0.2 * torch.randn(parameter.shape, generator=generator)
            elif "lora_" in name:
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)
    return adapted


def own_name(name: str) -> str:
    """The name that a parameter of PEFT's has in a model of ours."""
    name = name.removeprefix("base_model.model.").replace(".default", "").replace(".base_layer", "")
    return name.removesuffix(".weight") if "lora_" in name else name
