"""NumPy kernels: special functions."""
