"""ResNet-18 with the stem for large images: bfloat16 weights, SGD with momentum, as every system would have it.

PyTorch's network is kept with its channels last in memory, JAX's has them last in its shapes; Pullback's is written
as its documentation says, with channels before rows and columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

import pullback as pb

from .measuring import Row, measured, measured_on_jax

STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))  # channels, and by how much images shrink
CLASSES = 1000
BATCH, SIDE = 256, 64
RATE, MOMENTUM = 0.1, 0.9
_FIRST_LOSSES = 3


def batch(samples: int, side: int, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Images (samples, 3, side, side), and their classes."""
    random = torch.Generator().manual_seed(1)
    images = torch.randn(samples, 3, side, side, generator=random)
    classes = torch.randint(0, CLASSES, (samples,), generator=random)
    return images.to(device, torch.bfloat16), classes.to(device)


# -- Pullback ------------------------------------------------------------------------------------------


class Block(pb.nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, channels: int, features: int, stride: int) -> None:
        nn = pb.nn
        self.conv1 = nn.Conv2d(channels, features, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(features)
        self.conv2 = nn.Conv2d(features, features, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(features)
        self.shortcut = None
        if stride != 1 or channels != features:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels, features, 1, stride=stride, bias=False), nn.BatchNorm2d(features)
            )

    def forward(self, x: Any) -> Any:
        made = self.bn2(self.conv2(pb.relu(self.bn1(self.conv1(x)))))
        return pb.relu(made + (x if self.shortcut is None else self.shortcut(x)))


class ResNet(pb.nn.Module):
    """Four stages of two blocks."""

    def __init__(self) -> None:
        nn = pb.nn
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        blocks, channels = [], 64
        for features, stride in STAGES:
            blocks += [Block(channels, features, stride), Block(features, features, 1)]
            channels = features
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(channels, CLASSES)

    def forward(self, x: Any) -> Any:
        h = pb.max_pool2d(pb.relu(self.bn1(self.conv1(x))), 3, stride=2, padding=1)
        return self.fc(pb.adaptive_avg_pool2d(self.blocks(h), 1).reshape(x.shape[0], -1))


def pullback_step(device: str) -> tuple[Callable[..., Any], ResNet]:
    """A step from images and classes to the loss, and the network that it trains."""
    network = ResNet().to_device(f"torch:{device}").astype("bfloat16")
    network.load_state_dict(torch_network(device).state_dict())
    optimizer = pb.optim.SGD(network.parameters(), lr=RATE, momentum=MOMENTUM)

    def step(x: Any, y: Any) -> Any:
        loss = pb.cross_entropy(network(x), y)
        optimizer.step(pb.backward(loss))
        return loss

    return step, network


def resnet_pullback(device: str = "cuda") -> Row:
    step = pb.compile(pullback_step(device)[0])
    x, y = map(pb.asarray, batch(BATCH, SIDE, device))
    return measured("resnet", "pullback", lambda: step(x, y))


# -- PyTorch -------------------------------------------------------------------------------------------


class TorchBlock(torch.nn.Module):
    def __init__(self, channels: int, features: int, stride: int) -> None:
        super().__init__()
        nn = torch.nn
        self.conv1 = nn.Conv2d(channels, features, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(features)
        self.conv2 = nn.Conv2d(features, features, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(features)
        self.shortcut = None
        if stride != 1 or channels != features:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels, features, 1, stride=stride, bias=False), nn.BatchNorm2d(features)
            )

    def forward(self, x: Any) -> Any:
        made = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        return functional.relu(made + (x if self.shortcut is None else self.shortcut(x)))


class TorchResNet(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        nn = torch.nn
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        blocks, channels = [], 64
        for features, stride in STAGES:
            blocks += [TorchBlock(channels, features, stride), TorchBlock(features, features, 1)]
            channels = features
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(channels, CLASSES)

    def forward(self, x: Any) -> Any:
        h = functional.max_pool2d(functional.relu(self.bn1(self.conv1(x))), 3, stride=2, padding=1)
        return self.fc(functional.adaptive_avg_pool2d(self.blocks(h), 1).flatten(1))


def torch_network(device: str) -> TorchResNet:
    """The network with the weights that all systems begin with."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return TorchResNet().to(device, torch.bfloat16)


def resnet_torch(mode: str | None, device: str = "cuda") -> Row:
    network = torch_network(device).to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(network.parameters(), lr=RATE, momentum=MOMENTUM, fused=True)
    x, y = batch(BATCH, SIDE, device)
    x = x.to(memory_format=torch.channels_last)
    torch._dynamo.reset()

    def loss_of(x: Any, y: Any) -> Any:
        return functional.cross_entropy(network(x), y)

    called: Any = loss_of if mode is None else torch.compile(loss_of, mode=mode)

    def step() -> Any:
        loss = called(x, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return measured("resnet", "torch" if mode is None else f"torch.compile {mode}", step)


# -- JAX -----------------------------------------------------------------------------------------------


def resnet_jax() -> Row:
    import jax
    import jax.numpy as jnp

    names = ("running_mean", "running_var", "num_batches_tracked")
    state = torch_network("cpu").state_dict()
    weights = {
        name: jnp.asarray((w.permute(2, 3, 1, 0) if w.ndim == 4 else w).float().numpy(), jnp.bfloat16)
        for name, w in state.items()
        if not name.endswith(names)
    }
    running = {
        name: jnp.asarray(w.float().numpy(), jnp.bfloat16)
        for name, w in state.items()
        if name.endswith(names[:2])
    }  # fmt: skip
    images, classes = batch(BATCH, SIDE, "cpu")
    x = jnp.asarray(images.permute(0, 2, 3, 1).float().numpy(), jnp.bfloat16)
    y = jnp.asarray(classes.numpy())

    def loss(weights: Any, running: Any, x: Any, y: Any) -> Any:
        moved = {}

        def conv(h: Any, name: str, stride: int, padding: int) -> Any:
            return jax.lax.conv_general_dilated(
                h,
                weights[f"{name}.weight"],
                (stride, stride),
                ((padding, padding),) * 2,
                dimension_numbers=("NHWC", "HWIO", "NHWC"),
            )

        def norm(h: Any, name: str) -> Any:
            wide = h.astype(jnp.float32)
            mean = wide.mean((0, 1, 2))
            variance = (wide * wide).mean((0, 1, 2)) - mean * mean
            count = h.size // h.shape[-1]
            for label, value in (("running_mean", mean), ("running_var", variance * (count / (count - 1)))):
                old = running[f"{name}.{label}"]
                moved[f"{name}.{label}"] = (0.9 * old + 0.1 * jax.lax.stop_gradient(value)).astype(old.dtype)
            made = (wide - mean) * jax.lax.rsqrt(variance + 1e-5) * weights[f"{name}.weight"] + weights[f"{name}.bias"]
            return made.astype(h.dtype)

        h = jax.nn.relu(norm(conv(x, "conv1", 2, 3), "bn1"))
        h = jax.lax.reduce_window(
            h, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (1, 1), (1, 1), (0, 0))
        )
        channels = 64
        for stage, (features, first) in enumerate(STAGES):
            for number, stride in enumerate((first, 1)):
                name = f"blocks.{2 * stage + number}"
                made = jax.nn.relu(norm(conv(h, f"{name}.conv1", stride, 1), f"{name}.bn1"))
                made = norm(conv(made, f"{name}.conv2", 1, 1), f"{name}.bn2")
                if stride != 1 or channels != features:
                    h = norm(conv(h, f"{name}.shortcut.0", stride, 0), f"{name}.shortcut.1")
                h, channels = jax.nn.relu(made + h), features
        logits = h.mean((1, 2)) @ weights["fc.weight"].T + weights["fc.bias"]
        return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(y.shape[0]), y]), moved

    def step(weights: Any, momenta: Any, running: Any, x: Any, y: Any) -> Any:
        (value, running), gradients = jax.value_and_grad(loss, has_aux=True)(weights, running, x, y)
        momenta = jax.tree.map(lambda m, g: MOMENTUM * m + g, momenta, gradients)
        weights = jax.tree.map(lambda w, m: w - RATE * m, weights, momenta)
        return weights, momenta, running, value

    compiled = jax.jit(step, donate_argnums=(0, 1, 2))
    made = weights, jax.tree.map(jnp.zeros_like, weights), running

    def again() -> Any:
        nonlocal made
        *made, value = compiled(*made, x, y)
        return value

    return measured_on_jax("resnet", again, 20)
