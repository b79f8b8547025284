"""200 steps of fine-tuning, here and by transformers with peft: the same data, first values and schedule."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from . import peers
from .measure import Effort, Measurement

NAME = "finetune-curve"
SYSTEMS = ("pullback", "transformers", "peft")
NOTES = (
    "loss: that of the last step; difference: the largest one of any step.",
    "the model and the chats of `pullback finetune --example`; float32; LORA_CURVE=loss.svg draws both curves.",
)
STEPS = 200


def settings(folder: Path, steps: int) -> Any:
    from pullback.finetune import Settings

    return Settings(
        model=str(folder / "model"),
        data=str(folder / "chats.jsonl"),
        rank=8,
        alpha=16,
        lr=2e-3,
        batch=8,
        seq=48,
        pack=False,
        steps=steps,
    )


def pullback(chosen: Any, folder: Path) -> tuple[list[float], dict[str, np.ndarray], Any]:
    """The losses, the adapters before the first step, and the texts."""
    import pullback as pb
    from pullback.finetune import Run, Texts

    texts = Texts(chosen)
    run = Run(chosen, texts, folder)
    first = {name: tensor.numpy().copy() for name, tensor in pb.peft.adapter_state(run.model).items()}
    history = run.fit()
    return history.steps.column("loss"), first, texts


def transformers(chosen: Any, first: dict[str, np.ndarray], texts: Any) -> list[float]:
    """The losses of the same steps in PyTorch."""
    import peft
    import torch
    import transformers as library

    from pullback.finetune.step import schedule_for

    torch.set_num_threads(peers.THREADS)
    model: Any = library.AutoModelForCausalLM.from_pretrained(chosen.model, dtype=torch.float32)
    options = {"r": chosen.rank, "lora_alpha": chosen.alpha, "target_modules": "all-linear"}
    model = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **options))
    learned = {name: tensor for name, tensor in model.named_parameters() if tensor.requires_grad}
    with torch.no_grad():
        for name, tensor in learned.items():
            tensor.copy_(torch.from_numpy(first[name.removeprefix("base_model.model.").replace(".default.weight", "")]))
    optimizer = torch.optim.AdamW(learned.values(), lr=chosen.lr, weight_decay=chosen.weight_decay)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule_for(chosen, chosen.steps))
    losses: list[float] = []
    texts.batches.restart()
    while len(losses) < chosen.steps:
        for batch in texts.batches:
            tokens, labels = (torch.from_numpy(part.astype(np.int64)) for part in (batch.tokens, batch.labels))
            seen = torch.from_numpy((batch.segments >= 0).astype(np.int64))
            loss = model(input_ids=tokens, attention_mask=seen, labels=labels).loss
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(learned.values(), chosen.clip_norm)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
            if len(losses) == chosen.steps:
                break
    return losses


def curves(steps: int = STEPS) -> dict[str, list[float]]:
    """The losses of each step by system."""
    from pullback.finetune.example import write_chats, write_model

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_model(folder / "model")
        write_chats(folder)
        chosen = settings(folder, steps)
        ours, first, texts = pullback(chosen, folder / "run")
        found = {"pullback": ours}
        if peers.is_installed("transformers") and peers.is_installed("peft"):
            found["transformers + peft"] = transformers(chosen, first, texts)
    return found


def drawn(found: dict[str, list[float]]) -> str:
    """The curves as a picture."""
    from pullback import train

    lines = [
        train.Line(name, list(enumerate(losses, 1)), number, dotted=bool(number))
        for number, (name, losses) in enumerate(found.items())
    ]
    return train.standalone(train.line_chart(lines, title="Loss", width=760, height=340))


def run(effort: Effort) -> Iterator[Measurement]:
    import os

    found = curves(4 if effort.is_quick else STEPS)
    for system, losses in found.items():
        yield Measurement(NAME, "lora", system, "first loss", losses[0], "")
        yield Measurement(NAME, "lora", system, "loss", losses[-1], "")
    if len(found) > 1:
        ours, theirs = (np.array(losses) for losses in found.values())
        yield Measurement(NAME, "lora", "pullback", "difference", float(np.abs(ours - theirs).max()), "")
    if place := os.environ.get("LORA_CURVE"):
        Path(place).write_text(drawn(found))
