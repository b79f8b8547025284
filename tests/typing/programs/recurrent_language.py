"""An LSTM with the loss, metrics, mixed precision and averaging that go around it, and adapters on a language model."""

import numpy as np

import pullback as pb
from pullback import Tensor, nn


class Tagger(nn.Module):
    weights: Tensor

    def __init__(self, words: int, tags: int, width: int = 12) -> None:
        self.embed = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(width, 2, dim_feedforward=16, batch_first=True), num_layers=1
        )
        self.out = nn.Linear(width, tags)
        self.register_buffer("weights", pb.ones(tags))

    def forward(self, words: Tensor) -> Tensor:
        x, _ = self.lstm(self.embed(words))
        return self.out(self.encoder(x)) * self.weights


def tag_loss(scores: Tensor, tags: Tensor) -> Tensor:
    return pb.cross_entropy(scores.reshape(-1, scores.shape[-1]), tags.reshape(-1))


def main() -> float:
    pb.random.seed(0)
    words = np.random.default_rng(0).integers(0, 20, (32, 6))
    data = pb.data.Batches((words, words % 3), batch_size=8)
    model = Tagger(20, 3)
    average = pb.optim.ExponentialMovingAverage(model, 0.9)
    trainer = pb.train.Trainer(
        model, tag_loss, pb.optim.Adam(model.parameters(), lr=1e-2), clip_norm=1.0, average=average, compile=False
    )
    trainer.fit(data, steps=8)
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and name.endswith("bias"):
            print(name, parameter.shape)
    with pb.autocast("bfloat16"):
        scores = model(pb.asarray(words[:2]))
    print(scores.dtype)

    config = pb.models.DecoderConfig(
        "qwen3", vocab_size=20, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, head_dim=8,
    )  # fmt: skip
    language = pb.models.qwen3(config)
    pb.peft.add_lora(language, pb.peft.LoraConfig(rank=2, targets=("q_proj", "v_proj")), seed=0)
    learned = [p for p in language.parameters() if p.requires_grad]
    adapting = pb.optim.AdamW(learned, lr=1e-2)
    tokens = pb.asarray(words[:2])
    for _ in range(2):
        step_loss = language.loss(tokens)
        step_loss.backward()
        adapting.step()
        adapting.zero_grad()
    assert language(tokens).shape == (2, 6, 20)
    return trainer.evaluate(data)["loss"]


if __name__ == "__main__":
    print(main())
