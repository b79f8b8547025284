"""A small GPT, written out: blocks, a loop with warm-up and clipping, sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator

import numpy as np

import pullback as pb
from pullback import Tensor, nn, optim


@dataclass
class Config:
    vocabulary: int = 11
    length: int = 16
    width: int = 16
    heads: int = 2
    layers: int = 2
    dropout: float = 0.0


class Attention(nn.Module):
    def __init__(self, config: Config) -> None:
        self.heads = config.heads
        self.project = nn.Linear(config.width, 3 * config.width, bias=False)
        self.out = nn.Linear(config.width, config.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.project(x).reshape(batch, length, 3, self.heads, width // self.heads)
        q, k, v = pb.unstack(parts.permute_dims(2, 0, 3, 1, 4))
        mixed = pb.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.swapaxes(1, 2).reshape((batch, length, width)))


class Block(nn.Module):
    def __init__(self, config: Config) -> None:
        self.norm1 = nn.LayerNorm(config.width)
        self.attention = Attention(config)
        self.norm2 = nn.LayerNorm(config.width)
        self.mlp = nn.Sequential(
            nn.Linear(config.width, 4 * config.width), nn.GELU(), nn.Linear(4 * config.width, config.width)
        )
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.dropout(self.mlp(self.norm2(x)))


class GPT(nn.Module):
    def __init__(self, config: Config) -> None:
        self.config = config
        self.tokens = nn.Embedding(config.vocabulary, config.width)
        self.positions = nn.Parameter(pb.random.normal((config.length, config.width)) * 0.02)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)

    def forward(self, tokens: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        length = tokens.shape[-1]
        x = self.tokens(tokens) + self.positions[:length]
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        if targets is None:
            return logits, None
        return logits, pb.cross_entropy(logits.reshape(-1, self.config.vocabulary), targets.reshape(-1))

    @pb.no_grad()
    def generate(self, tokens: Tensor, count: int, temperature: float = 1.0) -> Tensor:
        for _ in range(count):
            logits, _ = self(tokens[:, -self.config.length :])
            probabilities = pb.softmax(logits[:, -1] / temperature, axis=-1)
            following = pb.argmax(probabilities, axis=-1, keepdims=True)
            tokens = pb.concat([tokens, following], axis=1)
        return tokens


def windows(text: list[int], length: int, batch: int) -> Iterator[tuple[Tensor, Tensor]]:
    generator = np.random.default_rng(0)
    data = np.array(text)
    while True:
        starts = generator.integers(0, len(text) - length - 1, batch)
        rows = np.stack([data[start : start + length + 1] for start in starts])
        yield pb.asarray(rows[:, :-1]), pb.asarray(rows[:, 1:])


def main(steps: int = 8) -> list[float]:
    pb.random.seed(0)
    config = Config()
    model = GPT(config)
    decayed = [p for p in model.parameters() if p.ndim >= 2]
    others = [p for p in model.parameters() if p.ndim < 2]
    optimizer = optim.AdamW([{"params": decayed}, {"params": others, "weight_decay": 0.0}], lr=3e-3)
    schedule = optim.schedules.Cosine(total=steps, warmup=2)
    scheduler = optim.Scheduler(optimizer, schedule)

    losses: list[float] = []
    text = [i * i % config.vocabulary for i in range(200)]
    batches = windows(text, config.length, batch=4)
    for number in range(steps):
        tokens, targets = next(batches)
        _, loss = model(tokens, targets)
        assert loss is not None
        grads = pb.backward(loss)
        norm: Tensor = grads.clip_global_norm(1.0)
        optimizer.step(grads)
        scheduler.step()
        losses.append(loss.item())
        if number % 4 == 0:
            print(f"{number}: loss {losses[-1]:.3f}, norm {norm.item():.2f}, {model.num_parameters()} parameters")

    model.eval()
    print(model.generate(pb.asarray([text[:4]]), 5).tolist())
    state = model.state_dict()
    model.load_state_dict(state)
    return losses


if __name__ == "__main__":
    main()
