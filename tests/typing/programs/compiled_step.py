"""The README's training step as one native call, and what can be looked at."""

import pullback as pb


def main() -> tuple[float, float]:
    pb.random.seed(0)
    model = pb.nn.Sequential(pb.nn.Linear(2, 16), pb.nn.Tanh(), pb.nn.Linear(16, 1))
    optimizer = pb.optim.AdamW(model.parameters(), lr=0.01)

    @pb.compile
    def step(x: pb.Tensor, y: pb.Tensor, scale: float = 1.0) -> pb.Tensor:
        loss = scale * pb.mse_loss(model(x), y)
        optimizer.step(pb.backward(loss))
        return loss

    @pb.compile(max_traces=2)
    def predict(x: pb.Tensor) -> pb.Tensor:
        return model(x)

    x, y = pb.ones((8, 2)), pb.zeros((8, 1))
    losses: list[float] = [step(x, y, scale=1.0).item() for _ in range(50)]
    text: str = step.source
    print(len(text), step.traces, step.recompilations, step.guards[:1], step.memory["inputs"])
    for kernel in step.kernels:
        print(kernel)
    assert predict(x).shape == (8, 1)
    fast = pb.compile(model)
    print(fast(x).mean().item(), fast.training)
    return losses[0], losses[-1]


if __name__ == "__main__":
    print(main())
