"""Kernels that only a GPU has, against PyTorch's own autograd: values and gradients in each precision.

    python -m benchmarks.gpu.checks [cuda]

Prints what is further apart than the precision allows, and how many comparisons there were.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn import functional

import pullback as pb

Function = Callable[..., Any]
TOLERANCE = {torch.float32: 2e-3, torch.bfloat16: 4e-2, torch.float16: 6e-3}  # of the largest element


def cases() -> Iterator[tuple[str, Function, Function, list[tuple[int, ...]]]]:
    """Name, ours, theirs, and the shapes of the inputs that get a gradient."""
    sdpa, ours = functional.scaled_dot_product_attention, pb.scaled_dot_product_attention
    for width in (16, 64, 128, 136, 256):
        heads = [(2, 3, 40, width)] * 3
        for causal in (False, True):

            def attend(q: Any, k: Any, v: Any, causal: bool = causal) -> Any:
                return ours(q, k, v, is_causal=causal)

            def attend_there(q: Any, k: Any, v: Any, causal: bool = causal) -> Any:
                return sdpa(q, k, v, is_causal=causal)

            yield f"attention {width} causal={causal}", attend, attend_there, heads
    yield (
        "attention, sum",
        lambda q, k, v: ours(q, k, v).sum(),
        lambda q, k, v: sdpa(q, k, v).sum(),
        [(2, 3, 33, 64)] * 3,
    )
    grouped = [(2, 6, 24, 64), (2, 2, 24, 64), (2, 2, 24, 64)]
    yield (
        "attention, grouped",
        lambda q, k, v: ours(q, k, v, is_causal=True, enable_gqa=True),
        lambda q, k, v: sdpa(q, k, v, is_causal=True, enable_gqa=True),
        grouped,
    )
    hidden = torch.rand(2, 1, 24, 40) > 0.3
    hidden[..., 0] = True
    crossed = [(2, 3, 24, 64), (2, 3, 40, 64), (2, 3, 40, 64)]
    yield (
        "attention, boolean mask",
        lambda q, k, v: ours(q, k, v, attn_mask=pb.asarray(hidden.to(q._raw.device))),
        lambda q, k, v: sdpa(q, k, v, attn_mask=hidden.to(q.device)),
        crossed,
    )
    yield (
        "attention, added mask",
        lambda q, k, v, m: ours(q, k, v, attn_mask=m),
        lambda q, k, v, m: sdpa(q, k, v, attn_mask=m),
        [*crossed, (2, 3, 24, 40)],
    )
    for rows, width in ((7, 33), (64, 768)):
        normed = [(3, rows, width), (width,), (width,)]
        yield (
            f"layer_norm {width}",
            lambda x, w, b: pb.layer_norm(x, x.shape[-1:], w, b),
            lambda x, w, b: functional.layer_norm(x, x.shape[-1:], w, b),
            normed,
        )
        yield (
            f"rms_norm {width}",
            lambda x, w: pb.rms_norm(x, x.shape[-1:], w, eps=1e-5),
            lambda x, w: functional.rms_norm(x, x.shape[-1:], w, eps=1e-5),
            normed[:2],
        )
    target = torch.randint(0, 50, (40,))
    target[::7] = -100
    for reduction in ("mean", "sum", "none"):

        def loss(x: Any, reduction: str = reduction) -> Any:
            return pb.cross_entropy(x, pb.asarray(target.to(x._raw.device)), reduction=reduction)

        def loss_there(x: Any, reduction: str = reduction) -> Any:
            return functional.cross_entropy(x, target.to(x.device), reduction=reduction)

        yield f"cross_entropy {reduction}", loss, loss_there, [(40, 50)]
    rows = torch.randint(0, 30, (5, 6))
    yield (
        "embedding",
        lambda w: pb.embedding(pb.asarray(rows.to(w._raw.device)), w),
        lambda w: functional.embedding(rows.to(w.device), w),
        [(30, 16)],
    )
    image = [(2, 4, 9, 10), (6, 4, 3, 3), (6,)]
    yield (
        "convolution",
        lambda x, w, b: pb.conv2d(x, w, b, stride=2, padding=1),
        lambda x, w, b: functional.conv2d(x, w, b, stride=2, padding=1),
        image,
    )
    yield "max_pool", lambda x: pb.max_pool2d(x, 3, 2, 1), lambda x: functional.max_pool2d(x, 3, 2, 1), image[:1]
    yield "avg_pool", lambda x: pb.avg_pool2d(x, 3, 2, 1), lambda x: functional.avg_pool2d(x, 3, 2, 1), image[:1]
    yield (
        "batch_norm",
        lambda x, w, b: pb.batch_norm(x, None, None, w, b, training=True)[0],
        lambda x, w, b: functional.batch_norm(x, None, None, w, b, training=True),
        [(4, 5, 6, 7), (5,), (5,)],
    )
    yield (
        "mean over planes",
        lambda x: pb.adaptive_avg_pool2d(x, 1),
        lambda x: functional.adaptive_avg_pool2d(x, 1),
        image[:1],
    )
    yield (
        "interpolate",
        lambda x: pb.interpolate(x, size=(5, 17), mode="bilinear"),
        lambda x: functional.interpolate(x, size=(5, 17), mode="bilinear"),
        image[:1],
    )
    yield "gelu", lambda x: pb.gelu(x, approximate="tanh"), lambda x: functional.gelu(x, approximate="tanh"), [(9, 33)]
    yield "softmax", lambda x: pb.softmax(x), lambda x: functional.softmax(x, -1), [(9, 33)]


def check_random_numbers(device: str) -> int:
    """Dropout must drop what NumPy's drops; the number of arrays for which it does not."""
    failures = 0
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        for p, seed, before in ((0.3, 1, 0), (0.5, 2**63 + 7, 4 * 2**32 - 40)):
            results = []
            for where in ("numpy", f"torch:{device}"):
                generator = pb.random.Generator(seed)
                generator.state = {"key": seed, "offset": before}
                ones = pb.ones((37, 53), dtype=str(dtype)[6:] if where != "numpy" else "float32", device=where)
                results.append(pb.dropout(ones, p, generator=generator).astype("float32").numpy() > 0)
            if (results[0] != results[1]).any():
                failures += 1
    return failures


def apart(a: Any, b: Any) -> float:
    """How far two arrays are apart, as a share of the largest element."""
    a, b = a.float(), b.float()
    return ((a - b).abs().max() / a.abs().max().clamp(min=1e-6)).item()


def check_optimizers(device: str) -> Iterator[tuple[str, float, float]]:
    """Name, how far parameters are apart from PyTorch's after some steps, and how far they may be."""
    made: dict[str, tuple[Any, Any, dict[str, Any]]] = {
        "SGD": (pb.optim.SGD, torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
        "Adam": (pb.optim.Adam, torch.optim.Adam, {"lr": 0.01, "amsgrad": True}),
        "AdamW": (pb.optim.AdamW, torch.optim.AdamW, {"lr": 0.01}),
        "RMSprop": (pb.optim.RMSprop, torch.optim.RMSprop, {"lr": 0.01, "centered": True}),
        "Adagrad": (pb.optim.Adagrad, torch.optim.Adagrad, {"lr": 0.1}),
    }
    for name, (ours, theirs, options) in made.items():
        for dtype, tolerance in ((torch.float32, 1e-4), (torch.bfloat16, 4e-2)):
            raws = [torch.randn(shape).to(device, dtype) for shape in ((3, 4), (50,), (2, 3, 5), ())]
            mine = [pb.asarray(raw.clone()).set_requires_grad(True) for raw in raws]
            others = [raw.clone() for raw in raws]
            optimizer, reference = ours(mine, **options), theirs(others, **options)
            for step in range(4):
                torch.manual_seed(step)
                gradients = [torch.randn_like(raw) for raw in raws]
                for other, g in zip(others, gradients):
                    other.grad = g.clone()
                optimizer.step([pb.asarray(g) for g in gradients])
                reference.step()
                if step == 0:
                    addresses = [w._raw.data_ptr() for w in mine]
            moved = addresses != [w._raw.data_ptr() for w in mine]
            worst = max(apart(a, w._raw) for a, w in zip(others, mine))
            yield f"{name}, {str(dtype)[6:]}", float("inf") if moved else worst, tolerance


def check_guard(device: str) -> str:
    """What is wrong with the guard's flag, if anything."""
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
        w = pb.asarray(torch.tensor([0.0, 1.0], device=device, dtype=dtype)).set_requires_grad(True)
        fine = pb.asarray(torch.ones(3, device=device, dtype=dtype)).set_requires_grad(True)
        try:
            loss = pb.sum(pb.sqrt(w)) + pb.sum(fine * fine)
            loss.backward()
            loss.item()
            return f"an infinite gradient in {dtype} was not found"
        except pb.NumericalInstabilityError as error:
            if "1 of 2 variables" not in str(error):
                return str(error)
    return ""


def main(device: str) -> None:
    torch.manual_seed(0)
    count = 0
    problems: list[str] = []

    def note(name: str, problem: str) -> None:
        nonlocal count
        count += 1
        if problem:
            problems.append(f"{name}: {problem}")
            print(f"  {name}: {problem}", flush=True)

    for dtype, tolerance in TOLERANCE.items():
        for name, ours, theirs, shapes in cases():
            try:
                worst = compare(ours, theirs, [torch.randn(shape).to(device, dtype) for shape in shapes])
                problem = "" if worst <= tolerance else f"apart by {worst:.2g}"
            except Exception as error:
                problem = f"{type(error).__name__}: {str(error).strip()[:300]}"
            note(f"{name}, {str(dtype)[6:]}", problem)
    for name, worst, tolerance in check_optimizers(device):
        note(name, "" if worst <= tolerance else f"apart by {worst:.2g}")
    note("dropout", "other elements than on NumPy" if check_random_numbers(device) else "")
    note("guard", check_guard(device) if device != "cpu" else "")
    print(f"{device}: {count - len(problems)} of {count} agree with PyTorch's autograd", flush=True)
    if problems:
        raise SystemExit(f"the first that does not: {problems[0]}")


def compare(ours: Function, theirs: Function, arrays: list[Any]) -> float:
    """How far value and gradients are apart at most."""
    mine = [pb.asarray(a.clone()).set_requires_grad(True) for a in arrays]
    others = [a.clone().requires_grad_() for a in arrays]
    out, reference = ours(*mine), theirs(*others)
    g = torch.randn_like(reference)
    found = pb.backward(out, gradient=pb.asarray(g))
    expected = torch.autograd.grad(reference, others, g)
    return max([apart(reference.detach(), out._raw)] + [apart(e, found[m]._raw) for e, m in zip(expected, mine)])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "cuda")
