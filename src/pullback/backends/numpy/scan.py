"""NumPy kernels: linear recurrences."""
