"""What eager code has of the compiler: kernels, rules and updates as native code, for large arrays of NumPy's."""

from .kernels import native_result
from .updates import update_in_place

__all__ = ["native_result", "update_in_place"]
