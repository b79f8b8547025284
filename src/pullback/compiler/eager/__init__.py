"""What eager code has of the compiler: kernels, rules and updates as native code, for large arrays of NumPy's."""

from .allocation import keep_large_arrays_memory
from .kernels import native_result
from .updates import update_in_place

__all__ = ["native_result", "update_in_place"]

keep_large_arrays_memory()  # who comes here has large arrays
