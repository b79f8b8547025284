"""array-api-strict as a backend: it has nothing beyond the standard, and its `device1` refuses NumPy."""

from __future__ import annotations

import array_api_strict

import pullback as pb
from pullback.backends.standard import StandardBackend

STRICT = StandardBackend(
    array_api_strict,
    "strict",
    (type(array_api_strict.asarray(0.0)),),
    {name: array_api_strict.Device(label) for name, label in (("cpu", "CPU_DEVICE"), ("device1", "device1"))},
)
pb.backends.register(STRICT)
DEVICE = "strict:device1"
