"""NumPy kernels: losses."""
