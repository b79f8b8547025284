"""Storage formats of quantized arrays. Each is a `Scheme`; `register_scheme` makes another one known."""

from .float8 import Float8
from .integers import Int4, Int8
from .normal_float import NF4
from .scheme import SCHEMES, Scheme, register_scheme

for _scheme in (Int8(), Int4(), NF4(), Float8()):
    register_scheme(_scheme)

__all__ = ["SCHEMES", "Scheme", "register_scheme"]
