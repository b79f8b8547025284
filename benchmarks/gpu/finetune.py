"""`python -m benchmarks.gpu.finetune [--small]`: Qwen3-4B from a folder of random weights, by `pullback finetune`.

One process: `transformers` with `peft` makes the model, takes steps of 8 x 512 tokens by itself and saves the folder;
then the command runs on it, with progress and checkpoints, and its log says what it took. `--small`: a tiny model on
PyTorch's processor, to see that it runs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from pullback.finetune.example import write_tokenizer

SHAPE = {
    "hidden_size": 2560,
    "intermediate_size": 9728,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151936,
}
SMALL = {**SHAPE, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "head_dim": 16}
TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
RANK, ALPHA, BATCH = 16, 32, 8
_WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


def peer(folder: Path, shape: dict[str, Any], device: str, length: int, steps: int) -> tuple[float, float]:
    """Milliseconds of a step and gibibytes at most, in PyTorch; the model is saved in `folder`."""
    import peft
    import transformers

    config = transformers.Qwen3Config(**shape, tie_word_embeddings=True, rope_theta=1e6, use_cache=False)
    config._attn_implementation = "sdpa"
    torch.manual_seed(0)
    with torch.device(device):
        model: Any = transformers.Qwen3ForCausalLM(config).to(torch.bfloat16)
    model.save_pretrained(folder)
    options = {"r": RANK, "lora_alpha": ALPHA, "target_modules": TARGETS, "task_type": "CAUSAL_LM"}
    model = peft.get_peft_model(model, peft.LoraConfig(**options))
    learned = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(learned, lr=1e-4)
    tokens = torch.randint(0, shape["vocab_size"], (BATCH, length), device=device)
    is_gpu = device.startswith("cuda")
    times = []
    for _ in range(steps):
        began = time.perf_counter()
        optimizer.zero_grad()
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
        if is_gpu:
            torch.cuda.synchronize()
        times.append(1000 * (time.perf_counter() - began))
    peak = torch.cuda.max_memory_allocated() / 2**30 if is_gpu else 0.0
    return statistics.median(times[len(times) // 2 :]), peak


def texts(path: Path, length: int) -> None:
    """Texts that fill rows."""
    line = json.dumps({"text": " ".join(_WORDS * (length // 4))}) + "\n"
    path.write_text(line * 16)


def command(folder: Path, data: Path, out: Path, device: str, length: int, steps: int, *more: str) -> None:
    arguments = [
        "finetune", "--model", str(folder), "--data", str(data), "--out", str(out), "--device", device,
        "--rank", str(RANK), "--alpha", str(ALPHA), "--batch", str(BATCH), "--seq", str(length), "--steps", str(steps),
        "--checkpoint-every", str(max(1, steps // 2)), "--overwrite", *more,
    ]  # fmt: skip
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "pullback", *arguments], check=True)
    records = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    of_steps = [record for record in records if "tokens_per_second" in record][steps // 2 :]
    speed = statistics.median(record["tokens_per_second"] for record in of_steps)
    memory = max(record.get("memory_gib", 0.0) for record in of_steps)
    kept = sorted((out / "checkpoints").glob("*.safetensors"))
    size = kept[-1].stat().st_size / 2**20
    print(
        f"pullback finetune {' '.join(more):24s} {1000 * BATCH * length / speed:9.1f} ms  {speed:9.0f} tokens/s  "
        f"peak {memory:6.2f} GiB  all {time.perf_counter() - began:6.1f} s  checkpoint {size:.0f} MiB",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--steps", type=int, default=16)
    options = parser.parse_args()
    kind, shape, length = ("cpu", SMALL, 32) if options.small else ("cuda", SHAPE, options.length)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "model"
        took, peak = peer(folder, shape, kind, length, options.steps)
        print(f"transformers + peft, eager        {took:9.1f} ms  peak {peak:6.2f} GiB", flush=True)
        if kind == "cuda":
            torch.cuda.empty_cache()
        write_tokenizer(folder, _WORDS)
        texts(Path(place) / "texts.jsonl", length)
        for more in ([], ["--checkpointing", "layers"], ["--no-compile"]):
            command(
                folder, Path(place) / "texts.jsonl", Path(place) / "run", f"torch:{kind}", length, options.steps, *more
            )


if __name__ == "__main__":
    main()
