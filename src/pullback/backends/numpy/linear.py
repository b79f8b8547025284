"""NumPy kernels: matrix products."""
