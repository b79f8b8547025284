"""Losses."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback as pb

from .sample import Sample, rng

REDUCTIONS = ("mean", "sum", "none")
LOGITS = rng("logits").normal(size=(4, 3, 2))
CLASSES = np.array([[0, 2], [1, -100], [-100, -100], [2, 2]])
CLASS_WEIGHTS = np.array([0.5, 1.5, 2.0])
PROBABILITIES = rng("probabilities").dirichlet(np.ones(3), (4, 2)).transpose(0, 2, 1).copy()
SHARES = rng("shares").uniform(0.1, 0.9, size=(4, 3))
X, TARGET = rng("x").normal(size=(4, 3)) * 2, rng("target").uniform(size=(4, 3))


def _torch(name: str, *fixed: Any, **options: Any) -> Any:
    def function(*args: Any) -> Any:
        import torch.nn.functional

        named = {k: torch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
        return getattr(torch.nn.functional, name)(*args, *map(torch.tensor, fixed), **named)

    return function


SAMPLES: list[Sample] = []
for _reduction in REDUCTIONS:
    for _case, _options in (
        ("plain", {}),
        ("weight", {"weight": CLASS_WEIGHTS}),
        ("smooth", {"label_smoothing": 0.2}),
        ("weight-smooth", {"weight": CLASS_WEIGHTS, "label_smoothing": 0.2}),
    ):
        _options = {"reduction": _reduction, **_options}
        SAMPLES += [
            Sample(
                "cross_entropy",
                f"{_case}-{_reduction}",
                lambda x, o=_options: pb.cross_entropy(x, CLASSES, **o),
                (LOGITS,),
                torch=_torch("cross_entropy", CLASSES, **_options),
            ),
            Sample(
                "soft_cross_entropy",
                f"{_case}-{_reduction}",
                lambda x, t, o=_options: pb.cross_entropy(x, t, **o),
                (LOGITS, PROBABILITIES),
                torch=_torch("cross_entropy", **_options),
            ),
        ]
    SAMPLES += [
        Sample(
            name,
            _reduction,
            lambda x, t, name=name, r=_reduction: getattr(pb, name)(x, t, reduction=r),
            (X, TARGET),
            torch=_torch(name, reduction=_reduction),
        )
        for name in ("mse_loss", "l1_loss", "huber_loss", "binary_cross_entropy_with_logits")
    ]
    SAMPLES += [
        Sample(
            "huber_loss",
            f"delta-{_reduction}",
            lambda x, t, r=_reduction: pb.huber_loss(x, t, r, 0.5),
            (X, TARGET),
            torch=_torch("huber_loss", reduction=_reduction, delta=0.5),
        ),
        Sample(
            "binary_cross_entropy_with_logits",
            f"weights-{_reduction}",
            lambda x, t, w, p, r=_reduction: pb.binary_cross_entropy_with_logits(x, t, w, r, p),
            (X, TARGET, rng("w").uniform(0.5, 2, (4, 1)), rng("p").uniform(0.5, 2, 3)),
        ),
        Sample(
            "binary_cross_entropy",
            _reduction,
            lambda x, t, r=_reduction: pb.binary_cross_entropy(x, t, reduction=r),
            (SHARES, TARGET),
            torch=_torch("binary_cross_entropy", reduction=_reduction),
        ),
        Sample(
            "nll_loss",
            _reduction,
            lambda x, r=_reduction: pb.nll_loss(x, CLASSES, reduction=r),
            (LOGITS,),
            torch=_torch("nll_loss", CLASSES, reduction=_reduction),
        ),
        Sample(
            "binary_cross_entropy_with_logits",
            f"weight-{_reduction}",
            lambda x, t, w, r=_reduction: pb.binary_cross_entropy_with_logits(x, t, w, r),
            (X, TARGET, rng("w").uniform(0.5, 2, 3)),
        ),
    ]
SAMPLES += [
    Sample(
        "cross_entropy",
        "two-dimensional",
        lambda x: pb.cross_entropy(x, np.array([2, 0, 1, 1])),
        (LOGITS[..., 0].copy(),),
        torch=_torch("cross_entropy", np.array([2, 0, 1, 1])),
    ),
    Sample("cross_entropy", "one-dimensional", lambda x: pb.cross_entropy(x, np.array(2)), (LOGITS[0, :, 0].copy(),)),
    Sample(
        "soft_cross_entropy",
        "one-dimensional",
        pb.cross_entropy,
        (LOGITS[0, :, 0].copy(), PROBABILITIES[0, :, 0].copy()),
    ),
    Sample(
        "smooth_l1_loss",
        "beta",
        lambda x, t: pb.smooth_l1_loss(x, t, "mean", 0.5),
        (X, TARGET),
        torch=_torch("smooth_l1_loss", reduction="mean", beta=0.5),
    ),
    Sample(
        "binary_cross_entropy",
        "weight",
        lambda x, t, w: pb.binary_cross_entropy(x, t, w, "sum"),
        (SHARES, TARGET, rng("w").uniform(0.5, 2, 3)),
    ),
    Sample(
        "nll_loss",
        "weight",
        lambda x, w: pb.nll_loss(x, CLASSES, w, reduction="mean"),
        (LOGITS, CLASS_WEIGHTS),
    ),
    Sample(
        "nll_loss",
        "weight-two-dimensional",
        lambda x: pb.nll_loss(x, np.array([2, 0, 1, 1]), CLASS_WEIGHTS),
        (LOGITS[..., 0].copy(),),
        torch=_torch("nll_loss", np.array([2, 0, 1, 1]), weight=CLASS_WEIGHTS),
    ),
    Sample("nll_loss", "one-dimensional", lambda x: pb.nll_loss(x, np.array(2)), (LOGITS[0, :, 0].copy(),)),
    *[
        Sample(
            "kl_div",
            f"{_reduction}-{_kind}",
            lambda x, t, r=_reduction, is_log=_kind == "logs": pb.kl_div(x, t, r, is_log),
            (X, TARGET if _kind == "plain" else X[::-1].copy()),
            torch=_torch("kl_div", reduction=_reduction, log_target=_kind == "logs"),
        )
        for _reduction, _kind in (("batchmean", "plain"), ("none", "logs"), ("sum", "plain"))
    ],
]
