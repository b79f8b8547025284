"""Made the files beside it, once; they must be readable for ever. Run it only to add a file for a new version."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import pullback as pb

HERE = Path(__file__).parent


def main() -> None:
    # Numbers that every machine adds up exactly, in whatever order; and a unit of awkward ones that nothing reads.
    generator = np.random.default_rng(20)
    mlp = pb.Mlp.builder(input=3).layer(5, "relu").layer(4, "relu").layer(2).build()
    mlp.parameters[...] = generator.integers(-16, 17, mlp.parameters.size) / 8
    mlp.weights(0)[4] = [1 / 3, 1e-42, -3.4028235e38 / 1e30]
    mlp.weights(1)[:, 4] = 0.0
    x = (generator.integers(-8, 9, (4, 3)) / 4).astype(np.float32)
    for suffix in ("json", "safetensors"):
        mlp.save(HERE / f"version_1.{suffix}")
    expected = {"x": x.tolist(), "parameters": mlp.parameters.tolist(), "outputs": mlp.predict(x).tolist()}
    (HERE / "version_1_expected.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    main()
