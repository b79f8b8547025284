"""NumPy kernels: sorting and searching."""
