"""`pullback quantize`: a model with the weights of its layers in a few bits each, as a folder of its own."""

from __future__ import annotations

from argparse import Namespace

from .. import models
from ..errors import ConfigurationError
from ..finetune.loading import loaded
from ..quant import Deviation, QuantizedLinear, deviations
from .folders import new_folder
from .tables import aligned, size


def run(options: Namespace) -> int:
    """Quantize as the command line says, and show what it has changed."""
    out = new_folder(options.out)
    plain = loaded(options.model, dtype=options.dtype)
    if any(isinstance(module, QuantizedLinear) for module in plain.modules()):
        raise ConfigurationError(f"{options.model}: its weights are quantized already.")
    model = loaded(options.model, dtype=options.dtype, quant=options.quant)
    models.save(model, out, like=options.model)
    if not options.quiet:
        found = deviations(model, plain)
        rows = [_row(name, one) for name, one in found.items()]
        print(aligned([("layer", "bits", "error of the weights", "largest"), *rows]), end="\n\n")
    before, after = ([*made.parameters(), *made.buffers()] for made in (plain, model))
    sizes = " to ".join(size(sum(tensor.nbytes for tensor in tensors)) for tensors in (before, after))
    print(f"quantized: {out.resolve()} ({sizes})")
    return 0


def _row(name: str, one: Deviation) -> tuple[str, str, str, str]:
    return name, f"{one.bits:.2f}", f"{one.relative:.2%}", f"{one.largest:.3g}"
