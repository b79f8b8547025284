"""`pullback merge`: a model with what an adapter has learned in its weights, as a folder of its own."""

from __future__ import annotations

from argparse import Namespace

from .. import models, peft, quant
from ..finetune.loading import loaded
from .folders import new_folder


def run(options: Namespace) -> int:
    """Merge as the command line says."""
    out = new_folder(options.out)
    model = loaded(options.model, dtype=options.dtype, adapter=options.adapter, quant=options.quant)
    peft.remove(peft.merge(model))
    quant.dequantize(model)  # what has no adapter
    models.save(model, out, like=options.model)
    print(f"merged: {out.resolve()}")
    return 0
