"""A step of LoRA on two layers of Qwen3-0.6B's shape, whole vocabulary, 4 x 128 tokens: time, and peak memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from . import peers
from .measure import Effort, Measurement, best_times

NAME = "finetune"
BASELINE = "torch"
SYSTEMS = ("pullback", "torch", "transformers", "peft")
NOTES = (
    "pullback: compiled, on NumPy's device; torch: transformers with peft, eagerly; float32, AdamW, two threads.",
    "memory: the most of a process that loads the model and makes three steps, what the libraries need by themselves "
    "taken off.",
)
RANK, ALPHA, RATE, BATCH, LENGTH = 16, 32, 1e-3, 4, 128
TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
SHAPE = {
    "vocab_size": 151936,
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 2,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "tie_word_embeddings": True,
}
SMALL = {**SHAPE, "vocab_size": 1000, "hidden_size": 64, "intermediate_size": 96, "head_dim": 8}
Step = Callable[[], Any]


def tokens(vocabulary: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, vocabulary, (BATCH, LENGTH)).astype(np.int32)


def first_values(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """What an adapter begins with in all systems: the second factor would be zero, and is small here."""
    generator = np.random.default_rng(sum(name.encode()))
    return (generator.standard_normal(shape) * 0.02).astype(np.float32)


def pullback(folder: str) -> Step:
    import pullback as pb

    model = pb.models.load(folder)
    pb.peft.add_lora(model, pb.peft.LoraConfig(rank=RANK, alpha=ALPHA, targets=TARGETS), seed=0)
    learned = {name: tensor for name, tensor in model.named_parameters() if tensor.requires_grad}
    with pb.no_grad():
        for name, tensor in learned.items():
            tensor[...] = first_values(name, tensor.shape)
    optimizer = pb.optim.AdamW(learned.values(), lr=RATE)
    batch = pb.asarray(tokens(model.config.vocab_size))

    @pb.compile
    def step(batch: Any) -> Any:
        loss = model.loss(batch)
        optimizer.step(pb.backward(loss))
        return loss

    return lambda: step(batch)


def torch(folder: str) -> Step:
    import peft
    import torch as library
    import transformers

    library.set_num_threads(peers.THREADS)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=library.float32)
    options = {"r": RANK, "lora_alpha": ALPHA, "lora_dropout": 0.0, "target_modules": list(TARGETS)}
    model = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **options))
    model.train()
    learned = {name: tensor for name, tensor in model.named_parameters() if tensor.requires_grad}
    with library.no_grad():
        for name, tensor in learned.items():
            plain = name.removeprefix("base_model.model.").replace(".default.weight", "")
            tensor.copy_(library.from_numpy(first_values(plain, tuple(tensor.shape))))
    optimizer = library.optim.AdamW(learned.values(), lr=RATE)
    batch = library.from_numpy(tokens(model.config.vocab_size).astype(np.int64))

    def step() -> Any:
        optimizer.zero_grad()
        loss = model(input_ids=batch, labels=batch).loss
        loss.backward()
        optimizer.step()
        return loss

    return step


MAKERS: dict[str, Callable[[str], Step]] = {"pullback": pullback, "torch": torch}


def written(folder: str, shape: dict[str, Any]) -> None:
    """A model's folder, with weights drawn at random."""
    import pullback as pb

    pb.random.seed(0)
    config = pb.models.DecoderConfig("qwen3", rope_parameters={"rope_type": "default", "rope_theta": 1e6}, **shape)
    pb.models.save(pb.models.qwen3(config), folder)


def run(effort: Effort) -> Iterator[Measurement]:
    systems = ["pullback", *(["torch"] if peers.is_installed("transformers") and peers.is_installed("peft") else [])]
    with tempfile.TemporaryDirectory() as folder:
        written(folder, SMALL if effort.is_quick else SHAPE)
        steps = {system: MAKERS[system](folder) for system in systems}
        losses = {system: np.array([float(step().item()) for _ in range(4)]) for system, step in steps.items()}
        peers.check_equal(losses, NAME, 1e-3)
        turns = effort if effort.is_quick else Effort(rounds=8, seconds=0.1)
        for system, microseconds in best_times(steps, turns).items():
            yield Measurement(NAME, "lora", system, "time", microseconds, "us")
        del steps
        for system in systems:
            yield Measurement(NAME, "lora", system, "memory", _peak(system, folder), "bytes")


# Writing 5 there starts the high-water mark anew (Linux). What is loaded when the libraries are is not counted.
_PROCESS = """
import gc, sys
from benchmarks import finetune
def status(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))
if sys.argv[1] == "torch":
    import peft, torch, transformers
    from transformers.models.qwen3 import modeling_qwen3
    torch.nn.Linear(2, 2)(torch.zeros(1, 2)).sum().backward()
else:
    import pullback as pb
    pb.compile(lambda x: x * 2)(pb.asarray([1.0]))
    pb.models, pb.peft, pb.optim
gc.collect()
before = status("VmRSS")
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
step = finetune.MAKERS[sys.argv[1]](sys.argv[2])
for _ in range(3):
    step()
print(status("VmHWM") - before)
"""


def _peak(system: str, folder: str) -> float:
    command = [sys.executable, "-c", _PROCESS, system, folder]
    place = Path(__file__).parent.parent
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=place, env=dict(os.environ))
    return float(done.stdout.split()[-1])
