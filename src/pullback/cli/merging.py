"""`pullback merge`: a model with what an adapter has learned in its weights, as a folder of its own."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from .. import models, peft, quant
from ..errors import ConfigurationError
from ..finetune.loading import loaded


def run(options: Namespace) -> int:
    """Merge as the command line says."""
    out = Path(options.out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigurationError(f"{out} is there and not an empty folder: name another --out.")
    model = loaded(options.model, dtype=options.dtype, adapter=options.adapter, quant=options.quant)
    peft.remove(peft.merge(model))
    quant.dequantize(model)  # what has no adapter
    models.save(model, out, like=options.model)
    print(f"merged: {out.resolve()}")
    return 0
