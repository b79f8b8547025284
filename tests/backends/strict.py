"""array-api-strict as a backend: it has nothing beyond the standard, and its `device1` refuses NumPy."""

from __future__ import annotations

import pullback as pb
from pullback.backends.standard import StandardBackend

from .installed import is_installed, optional

array_api_strict = optional("array_api_strict")
DEVICE = "strict:device1"

if is_installed("array_api_strict"):
    devices = {name: array_api_strict.Device(label) for name, label in (("cpu", "CPU_DEVICE"), ("device1", "device1"))}
    array_types = (type(array_api_strict.asarray(0.0)),)
    pb.backends.register(StandardBackend(array_api_strict, "strict", array_types, devices))
