"""Tensors as values: writes in place, clones, hooks of gradients, dtypes, devices, NumPy's functions on them."""

import numpy as np

import pullback as pb


@pb.no_grad()
def scale(x: pb.Tensor, factor: float) -> None:
    x *= factor


def main() -> list[float]:
    w = pb.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = w * w
    with pb.no_grad():
        w[0] = 100.0
    y.sum().backward()
    assert w.grad is not None and w.grad.tolist() == [2.0, 4.0, 6.0]

    with pb.guard("raise"), pb.checkpointing(pb.BudgetCheckpointing(1_000_000)):
        loss = pb.sum(pb.exp(pb.sin(w)))
    grads = pb.backward(loss, wrt=[w])
    print(grads[w], len(grads), grads.get(w), grads.global_norm().item())

    names = {w: "weight"}
    assert names[w] == "weight"
    copy = w.detach().clone()
    copy[1:] += 1
    scale(copy, 2.0)
    array: np.ndarray[tuple[int, ...], np.dtype[np.float32]] = copy.numpy()
    total: float = copy.sum().item()
    row = pb.linspace(0.0, 1.0, 5).astype(pb.float64)
    print(array.shape, total, row.dtype, row.device, row.shape[0], float(row[1]), int(pb.asarray(3)))
    values, indices = pb.topk(copy, 2)
    q, r = pb.linalg.qr(pb.eye(3) + 1.0)
    largest = pb.maximum(values[0], 0.0)
    same = bool(pb.all(pb.sort(copy) == pb.sort(copy, descending=True)[::-1]))
    spectrum = pb.fft.rfft(row)
    print(indices, (q @ r).mT.shape, largest, same, spectrum.real.shape)
    with pb.GradientTape() as tape:
        out = pb.sum(w**2)
    (slope,) = tape.gradient(out, [w])
    print(slope)
    if not copy.requires_grad and copy.ndim == 1:
        copy = pb.where(copy > 3.0, copy, -copy) / (1 + copy.abs())
    return [x.item() for x in copy]


if __name__ == "__main__":
    print(main())
