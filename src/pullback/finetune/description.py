"""What samples are, in numbers: for the start of a run, and for one that goes on."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Sequence

import numpy as np

from ..errors import ConfigurationError
from .packing import fitted
from .samples import Sample


def describe(samples: Sequence[Sample], length: int, pack: bool = True) -> dict[str, Any]:
    """Samples in numbers, as plain data.

    Parameters
    ----------
    samples : list of Sample
    length : int
        Tokens of a row.
    pack : bool
        Whether rows hold several samples.

    Returns
    -------
    dict
        "samples", "tokens", "loss_tokens" (those that have a loss), "longest" and "median" (tokens of a sample),
        "largest_token" (which must be below the size of the model's vocabulary), "rows", and "fill_rate", the part of
        the rows that is tokens of samples.

    Examples
    --------
    >>> import numpy as np
    >>> from pullback.finetune import Sample, describe
    >>> tokens = np.array([3, 1, 2], np.int32)
    >>> describe([Sample(tokens, np.array([-100, -100, 2], np.int32), "a"), Sample(tokens, tokens, "b")], length=8)
    {'samples': 2, 'tokens': 6, 'loss_tokens': 3, 'longest': 3, 'median': 3, 'largest_token': 3, 'rows': 1,
     'fill_rate': 0.75}
    """
    if not samples:
        raise ConfigurationError("describe: no samples were given.")
    lengths = sorted([len(sample.tokens) for sample in samples], reverse=True)
    if lengths[0] > length:
        raise ConfigurationError(f"describe: a sample has {lengths[0]} tokens, a row {length}.")
    rows = len(fitted(lengths, length)) if pack else len(lengths)
    return {
        "samples": len(lengths),
        "tokens": sum(lengths),
        "loss_tokens": sum(sample.loss_tokens for sample in samples),
        "longest": lengths[0],
        "median": lengths[len(lengths) // 2],
        "largest_token": max(int(sample.tokens.max(initial=0)) for sample in samples),
        "rows": rows,
        "fill_rate": sum(lengths) / (rows * length),
    }


def fingerprint(samples: Sequence[Sample]) -> str:
    """A checksum of the tokens and labels of samples, in their order: equal on every machine for equal data.

    Where the samples come from is no part of it: a file can be moved.

    >>> import numpy as np
    >>> from pullback.finetune import Sample, fingerprint
    >>> tokens = np.array([1, 2], np.int32)
    >>> fingerprint([Sample(tokens, tokens, "a")]) == fingerprint([Sample(tokens, tokens, "b")])
    True
    """
    digest = blake2b(digest_size=16, person=b"samples")
    for sample in samples:
        digest.update(len(sample.tokens).to_bytes(8, "little"))
        for array in (sample.tokens, sample.labels):
            digest.update(np.ascontiguousarray(array, "<i4").tobytes())
    return digest.hexdigest()
