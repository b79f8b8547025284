"""Special functions."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback as pb

from .sample import Sample, rng


def _torch(name: str) -> Any:
    def function(*args: Any) -> Any:
        import torch

        return getattr(torch.special, name)(*args)

    return function


def _jax(name: str) -> Any:
    def function(*args: Any) -> Any:
        import jax.scipy.special

        return getattr(jax.scipy.special, name)(*args)

    return function


def _uniform(name: str, low: float, high: float) -> np.ndarray:
    return rng(name).uniform(low, high, (3, 4))


def _sample(name: str, case: str, low: float, high: float, torch: bool = True, jax: bool = True, **more: Any) -> Sample:
    return Sample(
        name, case, getattr(pb, name), (_uniform(name + case, low, high),),
        torch=_torch(name) if torch else None, jax=_jax(name) if jax else None, **more,
    )  # fmt: skip


SAMPLES: list[Sample] = [
    _sample("erf", "plain", -3, 3),
    _sample("erf", "near-zero", -0.4, 0.4),
    _sample("erfc", "plain", -3, 3),
    _sample("erfc", "tail", 3, 6),
    _sample("erfcx", "plain", -2, 3, jax=False),
    _sample("erfcx", "tail", 3, 40, jax=False),
    _sample("erfinv", "middle", -0.45, 0.45),
    _sample("erfinv", "plain", -0.9, 0.9),
    _sample("erfinv", "tail", 0.95, 0.99),
    _sample("ndtr", "plain", -3, 3),
    _sample("ndtr", "tail", -8, -4),
    _sample("log_ndtr", "plain", -3, 3),
    _sample("log_ndtr", "tail", -40, -10),
    _sample("logit", "plain", 0.02, 0.98),
    _sample("logit", "middle", 0.35, 0.65),
    _sample("gammaln", "plain", 0.2, 4),
    _sample("gammaln", "large", 4, 60),
    _sample("gammaln", "negative", -2.8, -2.2, torch=False),
    _sample("digamma", "plain", 0.5, 4, torch=False),
    _sample("digamma", "large", 4, 60),
    _sample("digamma", "negative", -2.8, -2.2, torch=False),
    Sample("polygamma", "1", lambda x: pb.polygamma(1, x), (_uniform("trigamma", 0.5, 12),)),
    Sample("polygamma", "3", lambda x: pb.polygamma(3, x), (_uniform("polygamma", 0.5, 6),)),
    Sample("polygamma", "2-negative", lambda x: pb.polygamma(2, x), (_uniform("polygamma-", -1.7, -1.3),)),
    *[
        Sample("zeta", case, lambda q, x=x: pb.zeta(x, q), (values,), torch=lambda q, x=x: _torch("zeta")(x, q))
        for case, x, values in (
            ("2.5", 2.5, _uniform("zeta", 0.3, 4)),
            ("far", 1.2, _uniform("zeta far", 4, 60)),
            ("negative", 3.0, _uniform("zeta negative", -2.8, -2.2)),
        )
    ],
    Sample("zeta", "exponents", lambda q: pb.zeta(np.array([[1.5], [2.0], [9.0]]), q), (_uniform("zetas", 1, 3)[0],)),
    _sample("i0", "plain", -10, 10),
    _sample("i0", "large", 14, 20),
    _sample("i1", "plain", -10, 10),
    _sample("i1", "large", 14, 20),
    _sample("i0e", "plain", -10, 10),
    _sample("i0e", "large", 14, 40),
    _sample("i1e", "plain", -10, 10),
    _sample("i1e", "large", 14, 40),
    Sample(
        "xlogy", "plain", pb.xlogy, (_uniform("xlogy-x", -2, 2), _uniform("xlogy-y", 0.3, 3)),
        torch=_torch("xlogy"), jax=_jax("xlogy"),
    ),
    Sample("xlogy", "broadcast", pb.xlogy, (rng("xlogy").normal(size=(3, 1)), rng("xlogy2").uniform(0.3, 3, 4))),
    Sample("xlogy", "x-zero", pb.xlogy, (np.zeros(3), np.array([0.5, 1.0, 2.0])), orders=2),
]  # fmt: skip
