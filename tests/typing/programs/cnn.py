"""A convolutional network in a loop of one's own, in PyTorch's manner, and evaluated; saved and loaded."""

import tempfile
from pathlib import Path

import numpy as np

import pullback as pb
import pullback.nn as nn


class Net(nn.Module):
    def __init__(self, classes: int = 3) -> None:
        self.features = nn.Sequential(
            nn.Conv2d(1, 4, kernel_size=3, padding=1),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.conv = nn.Conv2d(4, 8, 3, padding=1)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.classify = nn.Linear(8, classes)

    def forward(self, images: pb.Tensor) -> pb.Tensor:
        x = self.features(images)
        x = pb.relu(self.conv(x))
        return self.classify(self.flatten(self.pool(x)))


def downsampled(images: pb.Tensor) -> pb.Tensor:
    return pb.max_pool2d(images, 2)


def accuracy(model: Net, images: pb.Tensor, labels: pb.Tensor) -> float:
    model.eval()
    with pb.no_grad():
        right = pb.argmax(model(images), axis=1) == labels
    model.train()
    return right.astype(pb.float32).mean().item()


def main() -> float:
    pb.random.seed(0)
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 3, 48)
    images = generator.normal(size=(48, 1, 8, 8)).astype(np.float32) + labels[:, None, None, None]

    model = Net()
    criterion = nn.CrossEntropyLoss()
    optimizer = pb.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    batches = pb.data.Batches((images, labels), batch_size=16, shuffle=True)
    for _ in range(3):
        total = 0.0
        for x, y in batches:
            optimizer.zero_grad()
            loss = criterion(model(pb.asarray(x)), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {batches.epoch}: {total / len(batches):.3f}")

    print(downsampled(pb.asarray(images)).shape)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.safetensors"
        pb.save(model.state_dict(), path)
        again = Net()
        again.load_state_dict(pb.load(path))
    gradient = again.classify.weight.grad
    assert gradient is None
    return accuracy(again, pb.asarray(images), pb.asarray(labels))


if __name__ == "__main__":
    print(main())
