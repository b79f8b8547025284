"""The operation suite on GPUs: values, gradients and second derivatives are NumPy's.

    python -m benchmarks.gpu.operations [torch:cuda:0] [jax:gpu:0] [cupy:0]

Prints for each device how many samples pass, and each that does not.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np

import pullback as pb
from tests.backends.test_operations import check, derivatives
from tests.operations.harness_samples import SAMPLES


def failures(device: str) -> Iterator[tuple[str, str]]:
    """The samples that differ from NumPy, or raise, with what they say."""
    for sample in SAMPLES:
        try:
            check(derivatives(sample, device, 2), derivatives(sample, "numpy", 2))
        except Exception as error:
            yield f"{sample.operation}-{sample.name}", f"{type(error).__name__}: {str(error).strip()[:300]}"


def main(devices: list[str]) -> None:
    for device in devices or ["torch:cuda:0"]:
        if device.startswith("jax"):
            import jax

            jax.config.update("jax_enable_x64", True)
        pb.asarray(np.zeros(1), device=device)
        found = list(failures(device))
        print(f"{device}: {len(SAMPLES) - len(found)} of {len(SAMPLES)} samples pass", flush=True)
        for name, message in found:
            print(f"  {name}: {message}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
